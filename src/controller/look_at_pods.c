/* SPDX-License-Identifier: Apache-2.0 */
/* One look at the pods of a target that was not ready in time. */
#include <string.h>

#include "base/log.h"
#include "controller/controller_private.h"
#include "controller/diagnose.h"
#include "kube/query.h"

struct diagnosis {
        struct subject *subject;
        struct kube_request *request;
        char *failure; /* why the target makes no pods, or NULL */
        struct finding finding;
        bool known;
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

static void on_pods(const struct kube_reply *reply, void *userdata)
{
        struct diagnosis *diagnosis = userdata;
        struct subject *subject = diagnosis->subject;

        diagnosis->request = NULL;
        if (kube_reply_is_ok(reply)) {
                diagnose(reply->body, diagnosis->failure, &diagnosis->finding);
                diagnosis->known = true;
                /* By its own reason: another one is no repetition of it. */
                tell(subject, KUBE_EVENT_WARNING, diagnosis->finding.reason, "Wake", "the wake has failed: %s",
                     diagnosis->finding.message);
                subject_is_due(subject, false);
        } else {
                log_warning("policy \"%s\": cannot look at its pods: %s", subject->key,
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
        int r = kube_object_path(&collection, &path);

        kube_query_add(&query, "labelSelector", selector);
        kube_query_add(&query, "limit", "20");
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
        snprintf(diagnosis->finding.message, sizeof(diagnosis->finding.message), "its target could not be scaled up: %.300s",
                 problem);
        diagnosis->known = true;
}

void diagnosis_begin(struct subject *subject, const struct target_state *target)
{
        struct diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));
        int r = 0;

        if (!diagnosis)
                return;
        diagnosis->subject = subject;
        diagnosis_free(subject->diagnosis);
        subject->diagnosis = diagnosis;
        if (subject->scale_problem) {
                refused(diagnosis, subject->scale_problem);
                return;
        }
        if (!target->known || !target->exists || !target->selector || !*target->selector)
                return; /* the condition of the target says it */
        if (target->failure)
                diagnosis->failure = strdup(target->failure);
        r = pods_ask(diagnosis, target->selector);
        if (r < 0)
                log_warning("policy \"%s\": cannot look at its pods: %s", subject->key, strerror(-r));
}
