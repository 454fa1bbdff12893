/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/diagnose.h"

#include <stdbool.h>
#include <string.h>

#include "base/macros.h"
#include "base/text.h"

/* What keeps a container from running, as the kubelet says it (k8s.io/kubernetes/pkg/kubelet/images/types.go, container/sync_result.go);
 * what comes first is worth more than what comes later. */
static const struct {
        const char *waiting, *reason, *words;
} obstacles[] = {
        { "ErrImagePull", "ImageUnavailable", "its image cannot be pulled" },
        { "ImagePullBackOff", "ImageUnavailable", "its image cannot be pulled" },
        { "ErrImageNeverPull", "ImageUnavailable", "its image is not on the node, and may not be pulled" },
        { "InvalidImageName", "ImageUnavailable", "its image has no valid name" },
        { "ImageInspectError", "ImageUnavailable", "its image cannot be read" },
        { "RegistryUnavailable", "ImageUnavailable", "the registry cannot be reached" },
        { "CreateContainerConfigError", "ContainerCannotStart", "it cannot be made" },
        { "CreateContainerError", "ContainerCannotStart", "it cannot be made" },
        { "RunContainerError", "ContainerCannotStart", "it cannot be run" },
        { "CrashLoopBackOff", "CrashLoop", "it keeps ending" },
};
enum { RANK_CRASH = ELEMENTSOF(obstacles), RANK_UNSCHEDULABLE, RANK_NOT_READY, RANK_NOTHING };

struct diagnosing {
        struct finding *finding;
        size_t rank; /* of what has been found; the lowest is the worst */
};

static const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

static const char *pod_name(const json_t *pod)
{
        return text_of(json_object_get(pod, "metadata"), "name");
}

static const char *image_of(const json_t *pod, const char *container)
{
        static const char *const lists[] = { "initContainers", "containers" };
        const json_t *spec = json_object_get(pod, "spec"), *entry;
        size_t i;

        for (size_t list = 0; list < ELEMENTSOF(lists); list++)
                json_array_foreach(json_object_get(spec, lists[list]), i, entry)
                        if (strcmp(text_of(entry, "name"), container) == 0)
                                return text_of(entry, "image");
        return "";
}

/* Whether @rank is worse than what has been found; it is found then. */
static bool found(struct diagnosing *diagnosing, size_t rank, const char *reason)
{
        if (rank >= diagnosing->rank)
                return false;
        diagnosing->rank = rank;
        diagnosing->finding->reason = reason;
        return true;
}

static const json_t *how_it_ended(const json_t *container)
{
        const json_t *ended = json_object_get(json_object_get(container, "state"), "terminated");

        return ended ? ended : json_object_get(json_object_get(container, "lastState"), "terminated");
}

/* A container that cannot even be started ends too, with the runtime's message; any other has one if it wrote one. */
static void say_crash(struct finding *finding, const json_t *pod, const json_t *container)
{
        const json_t *ended = how_it_ended(container);
        const char *message = text_of(ended, "message");

        if (!ended)
                text_format(finding->message, sizeof(finding->message), "pod \"%s\", container \"%s\": it keeps ending",
                            pod_name(pod), text_of(container, "name"));
        else
                text_format(finding->message, sizeof(finding->message),
                            "pod \"%s\", container \"%s\": it keeps ending, last with status %lld (%s)%s%s", pod_name(pod),
                            text_of(container, "name"), (long long)json_integer_value(json_object_get(ended, "exitCode")),
                            text_of(ended, "reason"), *message ? ": " : "", message);
}

static void say_obstacle(struct finding *finding, const json_t *pod, const json_t *container, size_t obstacle)
{
        const char *message = text_of(json_object_get(json_object_get(container, "state"), "waiting"), "message");
        const char *name = text_of(container, "name");

        if (strcmp(obstacles[obstacle].reason, "CrashLoop") == 0)
                say_crash(finding, pod, container);
        else if (strcmp(obstacles[obstacle].reason, "ImageUnavailable") == 0)
                text_format(finding->message, sizeof(finding->message), "pod \"%s\", container \"%s\", image \"%s\": %s: %s",
                            pod_name(pod), name, image_of(pod, name), obstacles[obstacle].words, message);
        else
                text_format(finding->message, sizeof(finding->message), "pod \"%s\", container \"%s\": %s: %s", pod_name(pod), name,
                            obstacles[obstacle].words, message);
}

static void look_at_container(struct diagnosing *diagnosing, const json_t *pod, const json_t *container)
{
        const json_t *state = json_object_get(container, "state"), *waiting = json_object_get(state, "waiting");
        const json_t *ended = how_it_ended(container);

        if (json_is_true(json_object_get(container, "ready")))
                return;
        for (size_t rank = 0; waiting && rank < ELEMENTSOF(obstacles); rank++)
                if (strcmp(text_of(waiting, "reason"), obstacles[rank].waiting) == 0 &&
                    found(diagnosing, rank, obstacles[rank].reason))
                        say_obstacle(diagnosing->finding, pod, container, rank);
        if (ended && json_integer_value(json_object_get(ended, "exitCode")) != 0 && found(diagnosing, RANK_CRASH, "CrashLoop"))
                say_crash(diagnosing->finding, pod, container);
}

static void look_at_scheduling(struct diagnosing *diagnosing, const json_t *pod)
{
        const json_t *conditions = json_object_get(json_object_get(pod, "status"), "conditions"), *condition;
        size_t i;

        json_array_foreach((json_t *)conditions, i, condition) {
                if (strcmp(text_of(condition, "type"), "PodScheduled") != 0 || strcmp(text_of(condition, "status"), "False") != 0)
                        continue;
                if (found(diagnosing, RANK_UNSCHEDULABLE, "Unschedulable"))
                        text_format(diagnosing->finding->message, FINDING_MESSAGE_MAX, "pod \"%s\" fits on no node: %s",
                                    pod_name(pod), text_of(condition, "message"));
        }
}

static void look_at_pod(struct diagnosing *diagnosing, const json_t *pod)
{
        static const char *const lists[] = { "initContainerStatuses", "containerStatuses" };
        const json_t *status = json_object_get(pod, "status"), *container;
        size_t i;

        if (json_object_get(json_object_get(pod, "metadata"), "deletionTimestamp"))
                return;
        for (size_t list = 0; list < ELEMENTSOF(lists); list++)
                json_array_foreach(json_object_get(status, lists[list]), i, container)
                        look_at_container(diagnosing, pod, container);
        look_at_scheduling(diagnosing, pod);
        if (found(diagnosing, RANK_NOT_READY, "NotReady"))
                text_format(diagnosing->finding->message, FINDING_MESSAGE_MAX, "pod \"%s\" is %s, but not ready", pod_name(pod),
                            text_of(status, "phase"));
}

static void look_at_target(struct diagnosing *diagnosing, const char *failure)
{
        struct finding *finding = diagnosing->finding;

        if (failure && diagnosing->rank >= RANK_NOT_READY) {
                finding->reason = strstr(failure, "exceeded quota") ? "QuotaExceeded" : "CannotCreatePods";
                text_format(finding->message, sizeof(finding->message), "%s", failure);
        } else if (diagnosing->rank == RANK_NOTHING) {
                finding->reason = "NoPods";
                text_format(finding->message, sizeof(finding->message), "its target has made no pods");
        }
}

void diagnose(const json_t *pods, const char *failure, struct finding *ret_finding)
{
        struct diagnosing diagnosing = { .finding = ret_finding, .rank = RANK_NOTHING };
        const json_t *pod;
        size_t i;

        json_array_foreach(json_object_get(pods, "items"), i, pod)
                look_at_pod(&diagnosing, pod);
        look_at_target(&diagnosing, failure);
}
