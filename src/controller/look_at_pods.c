/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the pods of a target that was not ready in time. Right after the first failure many a pod is still being made, and what keeps
 * it from running is yet to come: so they are looked at again for as long as it wakes, each time after twice as long. */
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "controller/controller_private.h"
#include "controller/diagnose.h"
#include "kube/query.h"

enum { PODS_MAX = 20 }; /* of a look: the others of a target are like them */
static const uint64_t again_first_ns = 1 * NSEC_PER_SEC;
static const uint64_t again_max_ns = 60 * NSEC_PER_SEC;

struct diagnosis {
        struct subject *subject;
        struct kube_request *request;
        char *failure; /* why the target made no pods at the last look, or NULL */
        struct finding finding;
        bool known;
        const char *told; /* the reason that people have been told last, or NULL */
        uint64_t next_ns, delay_ns;
};

struct diagnosis *diagnosis_free(struct diagnosis *diagnosis)
{
        if (!diagnosis)
                return NULL;
        kube_request_cancel(diagnosis->request);
        free(diagnosis->failure);
        free(diagnosis);
        return NULL;
}

const char *diagnosis_reason(const struct diagnosis *diagnosis)
{
        return diagnosis && diagnosis->known ? diagnosis->finding.reason : NULL;
}

const char *diagnosis_message(const struct diagnosis *diagnosis)
{
        return diagnosis && diagnosis->known ? diagnosis->finding.message : NULL;
}

/* What is told by an Event has a reason of its own: another one is no repetition of it. The same one is told once. */
static void found(struct diagnosis *diagnosis)
{
        const struct finding *finding = &diagnosis->finding;

        diagnosis->known = true;
        if (!diagnosis->told || strcmp(diagnosis->told, finding->reason) != 0)
                tell(diagnosis->subject, KUBE_EVENT_WARNING, finding->reason, "Wake", "the wake has failed: %s", finding->message);
        diagnosis->told = finding->reason;
        subject_is_due(diagnosis->subject, false);
}

static void on_pods(const struct kube_reply *reply, void *userdata)
{
        struct diagnosis *diagnosis = userdata;

        diagnosis->request = NULL;
        if (kube_reply_is_ok(reply)) {
                diagnose(reply->body, diagnosis->failure, &diagnosis->finding);
                found(diagnosis);
        } else {
                log_warning("policy \"%s\": cannot look at its pods: %s", diagnosis->subject->key,
                            reply->status.message[0] ? reply->status.message : strerror(-reply->error));
        }
}

static int pods_ask(struct diagnosis *diagnosis, const char *selector)
{
        static const struct kube_request_callbacks callbacks = { .done = on_pods };
        const struct kube_object collection = { "v1", "pods", diagnosis->subject->area->namespace, NULL, NULL };
        struct kube_request_settings settings = {
                .verb = KUBE_LIST, .priority = KUBE_PRIORITY_NORMAL, .resource = "pods", .deadline_ns = 10 * UINT64_C(1000000000)
        };
        _cleanup_(kube_query_done) struct kube_query query = { 0 };
        _cleanup_(freep) char *path = NULL;
        char limit[12];
        int r = kube_object_path(&collection, &path);

        kube_query_add(&query, "labelSelector", selector);
        snprintf(limit, sizeof(limit), "%d", PODS_MAX);
        kube_query_add(&query, "limit", limit);
        if (r >= 0)
                r = kube_query_text(&query, &settings.query);
        settings.path = path;
        if (r >= 0)
                r = kube_client_request(diagnosis->subject->controller->client, &settings, &callbacks, diagnosis,
                                        &diagnosis->request);
        return r;
}

static void refused(struct diagnosis *diagnosis, const char *problem)
{
        diagnosis->finding.reason = "ScaleRefused";
        text_format(diagnosis->finding.message, sizeof(diagnosis->finding.message), "its target could not be scaled up: %s",
                    problem);
        found(diagnosis);
}

static void look(struct diagnosis *diagnosis, const struct target_state *target)
{
        const struct subject *subject = diagnosis->subject;
        int r;

        if (subject->scale_problem) {
                refused(diagnosis, subject->scale_problem);
                return;
        }
        if (!target->known || !target->exists || !target->selector || !*target->selector)
                return; /* the condition of the target says it */
        free(diagnosis->failure);
        diagnosis->failure = target->failure ? strdup(target->failure) : NULL;
        r = pods_ask(diagnosis, target->selector);
        if (r < 0)
                log_warning("policy \"%s\": cannot look at its pods: %s", subject->key, strerror(-r));
}

void diagnosis_begin(struct subject *subject, uint64_t now_ns)
{
        if (!subject->diagnosis)
                subject->diagnosis = calloc(1, sizeof(*subject->diagnosis));
        if (!subject->diagnosis)
                return;
        subject->diagnosis->subject = subject;
        subject->diagnosis->next_ns = now_ns;
        subject->diagnosis->delay_ns = again_first_ns;
}

uint64_t diagnosis_go_on(struct subject *subject, const struct target_state *target, uint64_t now_ns)
{
        struct diagnosis *diagnosis = subject->diagnosis;

        if (!diagnosis)
                return 0;
        if (now_ns >= diagnosis->next_ns) {
                if (!diagnosis->request)
                        look(diagnosis, target);
                diagnosis->next_ns = now_ns + diagnosis->delay_ns;
                diagnosis->delay_ns = MIN(2 * diagnosis->delay_ns, again_max_ns);
        }
        return diagnosis->next_ns;
}
