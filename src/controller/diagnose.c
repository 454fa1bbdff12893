/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/diagnose.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"

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

/* Whether @rank is worse than what has been found; it is found then. */
static bool found(struct diagnosing *diagnosing, size_t rank, const char *reason)
{
        if (rank >= diagnosing->rank)
                return false;
        diagnosing->rank = rank;
        diagnosing->finding->reason = reason;
        return true;
}

static void say_exit(char *text, size_t size, const json_t *container)
{
        const json_t *ended = json_object_get(json_object_get(container, "state"), "terminated");

        if (!ended)
                ended = json_object_get(json_object_get(container, "lastState"), "terminated");
        if (!ended)
                text[0] = '\0';
        else
                snprintf(text, size, ", last with status %lld (%.32s)",
                         (long long)json_integer_value(json_object_get(ended, "exitCode")), text_of(ended, "reason"));
}

static void look_at_container(struct diagnosing *diagnosing, const json_t *pod, const json_t *container)
{
        const json_t *state = json_object_get(container, "state"), *waiting = json_object_get(state, "waiting");
        const json_t *ended = json_object_get(state, "terminated");
        struct finding *finding = diagnosing->finding;
        char exit[80];

        say_exit(exit, sizeof(exit), container);
        for (size_t rank = 0; waiting && rank < ELEMENTSOF(obstacles); rank++) {
                if (strcmp(text_of(waiting, "reason"), obstacles[rank].waiting) != 0 ||
                    !found(diagnosing, rank, obstacles[rank].reason))
                        continue;
                if (strcmp(obstacles[rank].reason, "CrashLoop") == 0)
                        snprintf(finding->message, sizeof(finding->message), "pod \"%s\", container \"%s\": %s%s", pod_name(pod),
                                 text_of(container, "name"), obstacles[rank].words, exit);
                else
                        snprintf(finding->message, sizeof(finding->message), "pod \"%s\", container \"%s\": %s: %.200s",
                                 pod_name(pod), text_of(container, "name"), obstacles[rank].words, text_of(waiting, "message"));
        }
        if (ended && json_integer_value(json_object_get(ended, "exitCode")) != 0 && found(diagnosing, RANK_CRASH, "CrashLoop"))
                snprintf(finding->message, sizeof(finding->message), "pod \"%s\", container \"%s\": it keeps ending%s",
                         pod_name(pod), text_of(container, "name"), exit);
}

static void look_at_scheduling(struct diagnosing *diagnosing, const json_t *pod)
{
        const json_t *conditions = json_object_get(json_object_get(pod, "status"), "conditions"), *condition;
        size_t i;

        json_array_foreach((json_t *)conditions, i, condition) {
                if (strcmp(text_of(condition, "type"), "PodScheduled") != 0 || strcmp(text_of(condition, "status"), "False") != 0)
                        continue;
                if (found(diagnosing, RANK_UNSCHEDULABLE, "Unschedulable"))
                        snprintf(diagnosing->finding->message, FINDING_MESSAGE_MAX, "pod \"%s\" fits on no node: %.250s",
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
                snprintf(diagnosing->finding->message, FINDING_MESSAGE_MAX, "pod \"%s\" is %s, but not ready", pod_name(pod),
                         text_of(status, "phase"));
}

void diagnose(const json_t *pods, const char *failure, struct finding *ret_finding)
{
        struct diagnosing diagnosing = { .finding = ret_finding, .rank = RANK_NOTHING };
        const json_t *pod;
        size_t i;

        json_array_foreach(json_object_get(pods, "items"), i, pod)
                look_at_pod(&diagnosing, pod);
        if (diagnosing.rank < RANK_NOTHING && !(failure && diagnosing.rank == RANK_NOT_READY))
                return;
        if (failure) {
                ret_finding->reason = strstr(failure, "exceeded quota") ? "QuotaExceeded" : "CannotCreatePods";
                snprintf(ret_finding->message, sizeof(ret_finding->message), "%s", failure);
        } else {
                ret_finding->reason = "NoPods";
                snprintf(ret_finding->message, sizeof(ret_finding->message), "its target has made no pods");
        }
}
