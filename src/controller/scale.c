/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "controller/controller_private.h"

/* The watch of the target shows a change of scale a moment after it was made. */
static const uint64_t seen_within_ns = 1 * NSEC_PER_SEC;

static void note_problem(struct subject *subject, const struct kube_reply *reply)
{
        const char *problem = reply->status.message[0] ? reply->status.message : strerror(-reply->error);

        free(subject->scale_problem);
        subject->scale_problem = kube_reply_is_ok(reply) || kube_status_is_conflict(&reply->status) ? NULL : strdup(problem);
}

static void on_scaled(const struct kube_reply *reply, void *userdata)
{
        struct subject *subject = userdata;

        note_problem(subject, reply);
        if (kube_reply_is_ok(reply))
                subject->scale_again_ns = now_monotonic_ns() + seen_within_ns;
        request_ended(subject, reply, "scale its target");
}

bool scale_write(struct subject *subject, const struct decision *decision)
{
        bool up = decision->scale == SCALE_UP;
        int r;

        if (now_monotonic_ns() < subject->scale_again_ns)
                return false;
        if (!up && !controller_leads(subject->controller))
                return false;
        if (!request_may_begin(subject, up))
                return true;
        r = target_scale(subject->target, up ? decision->replicas : 0, on_scaled, subject);
        if (r < 0) {
                request_failed(subject, r, "scale its target");
                return true;
        }
        subject->scaling = true;
        request_begun(subject);
        return true;
}
