/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/gone_nodes.h"

#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "kube/node_activity.h"
#include "kube/patch.h"
#include "kube/scale_to_zero.h"

#define DEADLINE_NS (5 * NSEC_PER_SEC)
#define ACCURACY_US 1000000

struct gone_nodes {
        struct kube_client *client;
        struct gone_nodes_settings settings;
        void *userdata;
        sd_event_source *timer;
        struct kube_request *request; /* about @node; NULL: none runs */
        char *node;
};

static void look(struct gone_nodes *gone);

static void look_at(struct gone_nodes *gone, uint64_t at_ns)
{
        sd_event_source_set_time(gone->timer, at_ns / NSEC_PER_USEC + 1);
        sd_event_source_set_enabled(gone->timer, SD_EVENT_ONESHOT);
}

static bool is_silent(const struct gone_nodes *gone)
{
        return agents_get(gone->settings.agents, gone->node, gone->settings.now_ns(gone->userdata)).freshness == AGENT_STALE;
}

/* This node is done with, for the time being; the next one has its turn. */
static void end(struct gone_nodes *gone, uint64_t again_ns)
{
        agents_ask_again(gone->settings.agents, gone->node, gone->settings.now_ns(gone->userdata) + again_ns);
        free(gone->node);
        gone->node = NULL;
        look(gone);
}

static void failed(struct gone_nodes *gone, const char *what, const struct kube_reply *reply, int error)
{
        log_warning("node \"%s\" is gone, but %s cannot be deleted: %s", gone->node, what,
                    reply && reply->status.message[0] ? reply->status.message : strerror(-(reply ? reply->error : error)));
        end(gone, GONE_AGAIN_NS);
}

static bool is_deleted(const struct kube_reply *reply)
{
        return kube_reply_is_ok(reply) || (reply->error == 0 && reply->status.code == 404);
}

static void on_lease_deleted(const struct kube_reply *reply, void *userdata)
{
        struct gone_nodes *gone = userdata;

        gone->request = NULL;
        if (!is_deleted(reply)) {
                failed(gone, "its agent's Lease", reply, 0);
                return;
        }
        log_info("node \"%s\" is gone: its NodeActivity and its agent's Lease have been deleted", gone->node);
        end(gone, GONE_AFTER_NS);
}

static void delete_lease(struct gone_nodes *gone)
{
        static const struct kube_request_callbacks callbacks = { .done = on_lease_deleted };
        static const struct kube_change change = { .priority = KUBE_PRIORITY_NORMAL, .deadline_ns = DEADLINE_NS };
        char name[sizeof(AGENT_LEASE_PREFIX) + 256];
        const struct kube_object lease = {
                .api = "coordination.k8s.io/v1", .resource = "leases", .namespace = gone->settings.namespace, .name = name
        };
        int r;

        snprintf(name, sizeof(name), AGENT_LEASE_PREFIX "%.255s", gone->node);
        r = kube_delete(gone->client, &lease, &change, &callbacks, gone, &gone->request);
        if (r < 0)
                failed(gone, "its agent's Lease", NULL, r);
}

static void on_activity_deleted(const struct kube_reply *reply, void *userdata)
{
        struct gone_nodes *gone = userdata;

        gone->request = NULL;
        if (!is_deleted(reply))
                failed(gone, "its NodeActivity", reply, 0);
        else if (!is_silent(gone))
                end(gone, GONE_AFTER_NS);
        else
                delete_lease(gone);
}

/* The Lease goes last: by it this is done again if it comes to nothing now. */
static void delete_activity(struct gone_nodes *gone)
{
        static const struct kube_request_callbacks callbacks = { .done = on_activity_deleted };
        static const struct kube_change change = { .priority = KUBE_PRIORITY_NORMAL, .deadline_ns = DEADLINE_NS };
        const struct kube_object activity = { .api = SCALE_TO_ZERO_API, .resource = NODE_ACTIVITY_RESOURCE, .name = gone->node };
        int r = kube_delete(gone->client, &activity, &change, &callbacks, gone, &gone->request);

        if (r < 0)
                failed(gone, "its NodeActivity", NULL, r);
}

static void on_node(const struct kube_reply *reply, void *userdata)
{
        struct gone_nodes *gone = userdata;

        gone->request = NULL;
        if (kube_reply_is_ok(reply) || !is_silent(gone)) {
                end(gone, GONE_AFTER_NS);
        } else if (reply->error == 0 && reply->status.code == 404) {
                delete_activity(gone);
        } else {
                log_warning("cannot ask whether node \"%s\" is gone: %s", gone->node,
                            reply->status.message[0] ? reply->status.message : strerror(-reply->error));
                end(gone, GONE_AGAIN_NS);
        }
}

static int ask_for_node(struct gone_nodes *gone)
{
        static const struct kube_request_callbacks callbacks = { .done = on_node };
        static const struct kube_change change = { .priority = KUBE_PRIORITY_NORMAL, .deadline_ns = DEADLINE_NS };
        const struct kube_object node = { .api = "v1", .resource = "nodes", .name = gone->node };

        return kube_get(gone->client, &node, &change, &callbacks, gone, &gone->request);
}

static void look(struct gone_nodes *gone)
{
        uint64_t now_ns = gone->settings.now_ns(gone->userdata), due_ns;
        const char *node = agents_silent_longest(gone->settings.agents, GONE_AFTER_NS, &due_ns);

        if (!node)
                return;
        if (due_ns > now_ns || !gone->settings.leads(gone->userdata)) {
                look_at(gone, due_ns > now_ns ? due_ns : now_ns + GONE_AGAIN_NS);
                return;
        }
        gone->node = strdup(node);
        if (gone->node && ask_for_node(gone) >= 0)
                return;
        free(gone->node);
        gone->node = NULL;
        look_at(gone, now_ns + GONE_AGAIN_NS);
}

void gone_nodes_look(struct gone_nodes *gone)
{
        int enabled;

        if (gone->node || sd_event_source_get_enabled(gone->timer, &enabled) > 0)
                return;
        look(gone);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        look(userdata);
        return 0;
}

int gone_nodes_new(struct kube_client *client, const struct gone_nodes_settings *settings, void *userdata,
                   struct gone_nodes **ret_gone)
{
        _cleanup_(gone_nodes_freep) struct gone_nodes *gone = calloc(1, sizeof(*gone));
        int r;

        if (!gone)
                return -ENOMEM;
        gone->client = client;
        gone->settings = *settings;
        gone->userdata = userdata;
        r = sd_event_add_time(kube_client_event(client), &gone->timer, CLOCK_MONOTONIC, UINT64_MAX, ACCURACY_US, on_timer, gone);
        if (r >= 0)
                r = sd_event_source_set_enabled(gone->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret_gone = TAKE_PTR(gone);
        return 0;
}

struct gone_nodes *gone_nodes_free(struct gone_nodes *gone)
{
        if (!gone)
                return NULL;
        kube_request_cancel(gone->request);
        sd_event_source_disable_unref(gone->timer);
        free(gone->node);
        free(gone);
        return NULL;
}
