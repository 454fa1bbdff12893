/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report.h"

#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/time.h"
#include "kube/chance.h"
#include "kube/node_activity.h"
#include "kube/patch.h"
#include "kube/scale_to_zero.h"

#define DEADLINE_NS (5 * NSEC_PER_SEC)
#define RETRY_FIRST_NS (100 * NSEC_PER_MSEC)
#define RETRY_LAST_NS (2 * NSEC_PER_SEC)

struct report {
        struct kube_client *client;
        char *node;
        struct report_callbacks callbacks;
        void *userdata;
        sd_event_source *timer;
        struct kube_request *request;
        json_t *sent;    /* the status that the request has */
        json_t *written; /* what the API server has, as far as is known; or NULL */
        bool urgent, sent_urgent;
        uint64_t due_ns;      /* when it is to be written; UINT64_MAX: nothing changed */
        uint64_t earliest_ns; /* the rules allow none before */
        uint64_t retry_ns;    /* 0: the last write was done */
        struct report_counters counters;
        char problem[KUBE_MESSAGE_MAX + 64];
};

static void send_or_wait(struct report *report);

static void forget_request(struct report *report)
{
        report->request = NULL;
        json_decref(report->sent);
        report->sent = NULL;
}

static void failed(struct report *report, const char *problem)
{
        uint64_t wait = report->retry_ns ? MIN(report->retry_ns * 2, RETRY_LAST_NS) : RETRY_FIRST_NS;

        report->counters.failures++;
        if (report->retry_ns == 0)
                log_warning("cannot write NodeActivity \"%s\": %s; trying again", report->node, problem);
        snprintf(report->problem, sizeof(report->problem), "%s", problem);
        report->retry_ns = wait;
        report->earliest_ns = now_monotonic_ns() + wait / 2 + (uint64_t)((double)wait / 2 * kube_chance());
        report->due_ns = 0;
        report->urgent |= report->sent_urgent;
        json_decref(report->written); /* it may have been done all the same */
        report->written = NULL;
        send_or_wait(report);
}

static void on_written(const struct kube_reply *reply, void *userdata)
{
        struct report *report = userdata;

        json_decref(report->written);
        report->written = TAKE_PTR(report->sent);
        report->request = NULL;
        if (report->retry_ns)
                log_info("NodeActivity \"%s\" is written again", report->node);
        report->retry_ns = 0;
        report->problem[0] = '\0';
        report->counters.writes++;
        report->callbacks.written(report->userdata);
        send_or_wait(report);
}

static void on_created(const struct kube_reply *reply, void *userdata)
{
        struct report *report = userdata;

        forget_request(report);
        if (kube_reply_is_ok(reply) || reply->status.code == 409) { /* 409: it is there after all */
                report->due_ns = 0;
                send_or_wait(report);
                return;
        }
        failed(report, reply->status.message);
}

static int create(struct report *report)
{
        static const struct kube_request_callbacks callbacks = { .done = on_created };
        const struct kube_object collection = { .api = SCALE_TO_ZERO_API, .resource = NODE_ACTIVITY_RESOURCE };
        const struct kube_change change = { .priority = KUBE_PRIORITY_WAKE, .deadline_ns = DEADLINE_NS };
        _cleanup_(json_decrefp) json_t *body = json_pack("{ss, ss, s{ss}}", "apiVersion", SCALE_TO_ZERO_API, "kind", "NodeActivity",
                                                         "metadata", "name", report->node);

        if (!body)
                return -ENOMEM;
        return kube_create(report->client, &collection, body, &change, &callbacks, report, &report->request);
}

static void on_patched(const struct kube_reply *reply, void *userdata)
{
        struct report *report = userdata;
        int r;

        if (kube_reply_is_ok(reply)) {
                on_written(reply, userdata);
                return;
        }
        forget_request(report);
        if (reply->status.code != 404) {
                failed(report, reply->status.message);
                return;
        }
        r = create(report);
        if (r < 0)
                failed(report, strerror(-r));
}

static int patch(struct report *report)
{
        static const struct kube_request_callbacks callbacks = { .done = on_patched };
        const struct kube_object object = {
                .api = SCALE_TO_ZERO_API, .resource = NODE_ACTIVITY_RESOURCE, .name = report->node, .subresource = "status"
        };
        const struct kube_change change = { .priority = report->urgent ? KUBE_PRIORITY_WAKE : KUBE_PRIORITY_NORMAL,
                                            .deadline_ns = DEADLINE_NS };
        _cleanup_(json_decrefp) json_t *body = json_pack("{sO}", "status", report->sent);

        if (!body)
                return -ENOMEM;
        return kube_patch(report->client, &object, KUBE_PATCH_MERGE, body, &change, &callbacks, report, &report->request);
}

static void write_status(struct report *report)
{
        int r = 0;

        report->due_ns = UINT64_MAX;
        report->sent = report->callbacks.status(report->userdata);
        if (!report->sent)
                r = -ENOMEM;
        if (r == 0 && json_equal(report->sent, report->written)) {
                forget_request(report);
                report->urgent = false;
                return;
        }

        report->sent_urgent = report->urgent;
        report->earliest_ns = now_monotonic_ns() + REPORT_INTERVAL_NS;
        if (r == 0)
                r = patch(report);
        if (r < 0) {
                forget_request(report);
                failed(report, strerror(-r));
                return;
        }
        report->urgent = false;
}

static void send_or_wait(struct report *report)
{
        uint64_t at = MAX(report->due_ns, report->earliest_ns);

        if (report->request || report->due_ns == UINT64_MAX)
                return;
        if (at <= now_monotonic_ns()) {
                write_status(report);
                return;
        }
        sd_event_source_set_time(report->timer, at / NSEC_PER_USEC + 1);
        sd_event_source_set_enabled(report->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        send_or_wait(userdata);
        return 0;
}

void report_changed_at(struct report *report, uint64_t at_ns)
{
        report->due_ns = MIN(report->due_ns, at_ns);
        send_or_wait(report);
}

void report_changed(struct report *report, bool urgent)
{
        report->urgent |= urgent;
        report_changed_at(report, 0);
}

int report_new(struct kube_client *client, const char *node, const struct report_callbacks *callbacks, void *userdata,
               struct report **ret_report)
{
        _cleanup_(report_freep) struct report *report = calloc(1, sizeof(*report));
        int r;

        if (!report)
                return -ENOMEM;
        report->client = client;
        report->callbacks = *callbacks;
        report->userdata = userdata;
        report->due_ns = UINT64_MAX;
        report->node = strdup(node);
        if (!report->node)
                return -ENOMEM;
        r = sd_event_add_time(kube_client_event(client), &report->timer, CLOCK_MONOTONIC, 0, 1, on_timer, report);
        if (r < 0)
                return r;
        sd_event_source_set_enabled(report->timer, SD_EVENT_OFF);

        *ret_report = TAKE_PTR(report);
        return 0;
}

struct report *report_free(struct report *report)
{
        if (!report)
                return NULL;
        kube_request_cancel(report->request);
        sd_event_source_disable_unref(report->timer);
        json_decref(report->sent);
        json_decref(report->written);
        free(report->node);
        free(report);
        return NULL;
}

const struct report_counters *report_counters(const struct report *report)
{
        return &report->counters;
}

const char *report_problem(const struct report *report)
{
        return report->problem;
}
