/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/pod_cache.h"

#include <string.h>
#include <sys/queue.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/time.h"
#include "controller/pod_probe.h"
#include "kube/patch.h"
#include "kube/resource.h"

#define TIMER_ACCURACY_US 10000

struct known_pod {
        struct pod_cache *cache;
        char *policy, *name; /* who asked first, with the namespace; the pod */
        struct pod_probe probe;
        bool known;
        struct kube_request *request;
        sd_event_source *timer; /* looks again */
        uint64_t retry_ns, asked_ns;
        TAILQ_ENTRY(known_pod) by_use; /* asked for longest ago first */
        UT_hash_handle hh;
        char uid[];
};

struct pod_cache {
        struct kube_client *client;
        pod_cache_changed changed;
        void *userdata;
        struct known_pod *pods;
        TAILQ_HEAD(known_pods, known_pod) by_use;
};

int pod_cache_new(struct kube_client *client, pod_cache_changed changed, void *userdata, struct pod_cache **ret_cache)
{
        struct pod_cache *cache = calloc(1, sizeof(*cache));

        if (!cache)
                return -ENOMEM;
        cache->client = client;
        cache->changed = changed;
        cache->userdata = userdata;
        TAILQ_INIT(&cache->by_use);
        *ret_cache = cache;
        return 0;
}

static void pod_done(struct known_pod *pod)
{
        kube_request_cancel(pod->request);
        sd_event_source_disable_unref(pod->timer);
        pod_probe_done(&pod->probe);
        free(pod->policy);
        free(pod->name);
        free(pod);
}

static void pod_forget(struct known_pod *pod)
{
        HASH_DEL(pod->cache->pods, pod);
        TAILQ_REMOVE(&pod->cache->by_use, pod, by_use);
        pod_done(pod);
}

struct pod_cache *pod_cache_free(struct pod_cache *cache)
{
        if (!cache)
                return NULL;
        while (!TAILQ_EMPTY(&cache->by_use))
                pod_forget(TAILQ_FIRST(&cache->by_use));
        free(cache);
        return NULL;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

static void look_later(struct known_pod *pod)
{
        sd_event *event = kube_client_event(pod->cache->client);

        if (now_monotonic_ns() - pod->asked_ns > POD_CACHE_INTEREST_NS)
                return;
        pod->timer = sd_event_source_disable_unref(pod->timer);
        (void)sd_event_add_time_relative(event, &pod->timer, CLOCK_MONOTONIC, pod->retry_ns / NSEC_PER_USEC, TIMER_ACCURACY_US,
                                         on_timer, pod);
        pod->retry_ns = MIN(pod->retry_ns * 2, POD_CACHE_RETRY_MAX_NS);
}

/* Ready, or on its way out: nobody waits for its probe. So is one whose name another has by now. */
static bool is_settled(const json_t *object, const char *uid)
{
        _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;
        const char *field;

        if (kube_pod_read(object, &pod, &field) < 0)
                return true;
        return pod->ready || pod->metadata.deleting || strcmp(pod->metadata.uid, uid) != 0;
}

static void pod_take(struct known_pod *pod, const json_t *object)
{
        struct pod_probe probe;

        pod->known = true;
        if (is_settled(object, pod->uid) || pod_probe_read(object, &probe) < 0)
                return;
        pod_probe_done(&pod->probe);
        pod->probe = probe;
        if (probe.pending)
                look_later(pod);
        else if (probe.probe.type != PROBE_NONE)
                pod->cache->changed(pod->policy, pod->cache->userdata);
}

static void on_pod(const struct kube_reply *reply, void *userdata)
{
        struct known_pod *pod = userdata;

        pod->request = NULL;
        if (kube_reply_is_ok(reply))
                pod_take(pod, reply->body);
        else if (reply->status.code == 404 || reply->status.code == 403)
                pod->known = true;
        else
                look_later(pod);
}

static void look(struct known_pod *pod)
{
        static const struct kube_request_callbacks callbacks = { .done = on_pod };
        const char *slash = strchr(pod->policy, '/');
        _cleanup_(freep) char *namespace = slash ? strndup(pod->policy, (size_t)(slash - pod->policy)) : NULL;
        const struct kube_object object = { .api = "v1", .resource = "pods", .namespace = namespace, .name = pod->name };

        if (!namespace || kube_get(pod->cache->client, &object, NULL, &callbacks, pod, &pod->request) < 0)
                look_later(pod);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        look(userdata);
        return 0;
}

static struct known_pod *pod_add(struct pod_cache *cache, const char *policy, const struct status_endpoint *endpoint)
{
        size_t length = strlen(endpoint->pod_uid) + 1;
        struct known_pod *pod = calloc(1, sizeof(*pod) + length);

        if (!pod)
                return NULL;
        memcpy(pod->uid, endpoint->pod_uid, length);
        pod->cache = cache;
        pod->retry_ns = POD_CACHE_RETRY_MIN_NS;
        pod->policy = strdup(policy);
        pod->name = strdup(endpoint->pod);
        if (pod->policy && pod->name)
                HASH_ADD_STR(cache->pods, uid, pod);
        if (!pod->policy || !pod->name || !pod->hh.tbl) {
                pod_done(pod);
                return NULL;
        }
        TAILQ_INSERT_TAIL(&cache->by_use, pod, by_use);
        pod->asked_ns = now_monotonic_ns();
        if (HASH_COUNT(cache->pods) > POD_CACHE_MAX)
                pod_forget(TAILQ_FIRST(&cache->by_use));
        look(pod);
        return pod;
}

static struct known_pod *pod_get(struct pod_cache *cache, const char *policy, const struct status_endpoint *endpoint)
{
        struct known_pod *pod;

        HASH_FIND_STR(cache->pods, endpoint->pod_uid, pod);
        if (!pod)
                return pod_add(cache, policy, endpoint);
        TAILQ_REMOVE(&cache->by_use, pod, by_use);
        TAILQ_INSERT_TAIL(&cache->by_use, pod, by_use);
        pod->asked_ns = now_monotonic_ns();
        return pod;
}

size_t pod_cache_probes(struct pod_cache *cache, const char *policy, const struct resolution *resolution,
                        struct resolve_probe ret[static STATUS_ENDPOINTS_MAX])
{
        size_t n = 0;

        for (size_t i = 0; i < resolution->n_endpoints; i++) {
                const struct status_endpoint *endpoint = &resolution->endpoints[i];
                const struct known_pod *pod = endpoint->ready ? NULL : pod_get(cache, policy, endpoint);

                if (pod && pod->known && pod->probe.probe.type != PROBE_NONE)
                        ret[n++] = (struct resolve_probe){ .pod_uid = pod->uid,
                                                           .probe = pod->probe.probe,
                                                           .started_realtime_ns = pod->probe.started_realtime_ns };
        }
        return n;
}
