/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lease.h"

#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/time.h"
#include "kube/micro_time.h"
#include "kube/patch.h"

#define DEADLINE_NS (5 * NSEC_PER_SEC)
#define RETRY_NS (2 * NSEC_PER_SEC)

struct lease {
        struct kube_client *client;
        char *namespace, *name, *holder;
        const char *(*problem)(void *userdata);
        void *userdata;
        sd_event_source *timer;
        struct kube_request *request;
        struct lease_counters counters;
        uint64_t sent_ns, renewed_ns;
        bool failing;
};

static void again_at(struct lease *lease, uint64_t at_ns)
{
        sd_event_source_set_time(lease->timer, at_ns / NSEC_PER_USEC);
        sd_event_source_set_enabled(lease->timer, SD_EVENT_ONESHOT);
}

static void failed(struct lease *lease, const char *problem)
{
        lease->counters.failures++;
        if (!lease->failing)
                log_warning("cannot renew Lease \"%s/%s\": %s; trying again", lease->namespace, lease->name, problem);
        lease->failing = true;
        again_at(lease, now_monotonic_ns() + RETRY_NS);
}

static void renewed(struct lease *lease)
{
        if (lease->failing)
                log_info("Lease \"%s/%s\" is renewed again", lease->namespace, lease->name);
        lease->failing = false;
        lease->counters.renewals++;
        lease->renewed_ns = lease->sent_ns;
        again_at(lease, lease->sent_ns + LEASE_RENEW_NS);
}

static json_t *spec_json(const struct lease *lease, bool acquired)
{
        char now[MICRO_TIME_TEXT_MAX];
        json_t *spec;

        micro_time_format(now_realtime_ns() / NSEC_PER_USEC, now);
        spec = json_pack("{ss, si, ss}", "holderIdentity", lease->holder, "leaseDurationSeconds", LEASE_DURATION_SECONDS,
                         "renewTime", now);
        if (spec && acquired)
                json_object_set_new(spec, "acquireTime", json_string(now));
        return spec;
}

static void on_created(const struct kube_reply *reply, void *userdata)
{
        struct lease *lease = userdata;

        lease->request = NULL;
        if (kube_reply_is_ok(reply))
                renewed(lease);
        else
                failed(lease, reply->status.message);
}

static int create(struct lease *lease)
{
        static const struct kube_request_callbacks callbacks = { .done = on_created };
        const struct kube_object collection = { .api = "coordination.k8s.io/v1",
                                                .resource = "leases",
                                                .namespace = lease->namespace };
        const struct kube_change change = { .priority = KUBE_PRIORITY_NORMAL, .deadline_ns = DEADLINE_NS };
        _cleanup_(json_decrefp) json_t *body =
                json_pack("{ss, ss, s{ss, ss}, so}", "apiVersion", "coordination.k8s.io/v1", "kind", "Lease", "metadata",
                          "namespace", lease->namespace, "name", lease->name, "spec", spec_json(lease, true));

        if (!body)
                return -ENOMEM;
        return kube_create(lease->client, &collection, body, &change, &callbacks, lease, &lease->request);
}

static void on_patched(const struct kube_reply *reply, void *userdata)
{
        struct lease *lease = userdata;
        int r;

        lease->request = NULL;
        if (kube_reply_is_ok(reply)) {
                renewed(lease);
                return;
        }
        if (reply->status.code != 404) {
                failed(lease, reply->status.message);
                return;
        }
        r = create(lease);
        if (r < 0)
                failed(lease, strerror(-r));
}

static int patch(struct lease *lease)
{
        static const struct kube_request_callbacks callbacks = { .done = on_patched };
        const struct kube_object object = {
                .api = "coordination.k8s.io/v1", .resource = "leases", .namespace = lease->namespace, .name = lease->name
        };
        const struct kube_change change = { .priority = KUBE_PRIORITY_NORMAL, .deadline_ns = DEADLINE_NS };
        _cleanup_(json_decrefp) json_t *body = json_pack("{so}", "spec", spec_json(lease, false));

        if (!body)
                return -ENOMEM;
        return kube_patch(lease->client, &object, KUBE_PATCH_MERGE, body, &change, &callbacks, lease, &lease->request);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lease *lease = userdata;
        const char *problem = lease->problem(lease->userdata);
        int r;

        if (*problem) {
                failed(lease, problem);
                return 0;
        }
        lease->sent_ns = now_monotonic_ns();
        r = patch(lease);
        if (r < 0)
                failed(lease, strerror(-r));
        return 0;
}

int lease_new(struct kube_client *client, const struct lease_settings *settings, struct lease **ret_lease)
{
        _cleanup_(lease_freep) struct lease *lease = calloc(1, sizeof(*lease));
        int r;

        if (!lease)
                return -ENOMEM;
        lease->client = client;
        lease->problem = settings->problem;
        lease->userdata = settings->userdata;
        lease->namespace = strdup(settings->namespace);
        lease->name = strdup(settings->name);
        lease->holder = strdup(settings->holder);
        if (!lease->namespace || !lease->name || !lease->holder)
                return -ENOMEM;
        r = sd_event_add_time(kube_client_event(client), &lease->timer, CLOCK_MONOTONIC, 0, 0, on_timer, lease);
        if (r < 0)
                return r;

        *ret_lease = TAKE_PTR(lease);
        return 0;
}

struct lease *lease_free(struct lease *lease)
{
        if (!lease)
                return NULL;
        kube_request_cancel(lease->request);
        sd_event_source_disable_unref(lease->timer);
        free(lease->namespace);
        free(lease->name);
        free(lease->holder);
        free(lease);
        return NULL;
}

const struct lease_counters *lease_counters(const struct lease *lease)
{
        return &lease->counters;
}

uint64_t lease_renewed_ns(const struct lease *lease)
{
        return lease->renewed_ns;
}
