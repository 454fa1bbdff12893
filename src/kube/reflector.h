/* SPDX-License-Identifier: Apache-2.0 */
/* A local view of one collection of objects, kept current by list and watch.
 *
 * The view holds what the caller makes of each object, not its JSON. Memory while reading is that of one object. A list or watch
 * list replaces the view only when it is complete; what did not change meanwhile (same resourceVersion) is not reported.
 *
 * The view is stale from the moment that no watch is open for REFLECTOR_STALE_AFTER_NS, or an open one has been silent for
 * longer than a server that sends bookmarks ever is, until a watch is open again. Before the first sync it is stale too.
 *
 * Callbacks come from the event loop and must not free the reflector.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/client.h"

#define REFLECTOR_SILENCE_NS (90 * UINT64_C(1000000000)) /* bookmarks come once a minute */
#define REFLECTOR_STALE_AFTER_NS (10 * UINT64_C(1000000000))

enum { REFLECTOR_PAGE_ITEMS = 500, REFLECTOR_OBJECTS_MAX = 1000000, REFLECTOR_MESSAGE_MAX = 384 };

struct kube_reflector;

struct kube_reflector_settings {
        const char *resource;       /* for the metrics: "pods" */
        const char *path;           /* "/api/v1/pods", "/apis/apps/v1/namespaces/default/deployments" */
        const char *field_selector; /* or NULL; not encoded */
        const char *label_selector; /* or NULL; not encoded */
        bool without_watch_list;    /* list first, then watch */
};

/* @key is "namespace/name", or "name" of what has no namespace. */
struct kube_reflector_callbacks {
        /* Makes a value of @object. Returns 0; -ENOENT to leave the object out of the view; or another -errno, which counts it
         * as unreadable and leaves it out too. */
        int (*read)(const char *key, const json_t *object, void **ret_value, void *userdata);
        void (*release)(void *value, void *userdata); /* frees it */
        void (*added)(const char *key, void *value, void *userdata);
        void (*modified)(const char *key, void *old, void *value, void *userdata); /* @old is released afterwards */
        void (*deleted)(const char *key, void *value, void *userdata);             /* likewise @value */
        void (*synced)(void *userdata);                                            /* the view is complete; after each list */
        void (*stale)(bool stale, void *userdata);                                 /* it is stale, or current again */
        /* A request has failed, so that changes may be missed; or a watch is open thereafter. */
        void (*broken)(bool broken, void *userdata);
};

/* Clocks and chance, for tests. */
struct kube_reflector_sources {
        uint64_t (*now_ns)(void);
        double (*chance)(void); /* uniform in [0, 1) */
};

struct kube_reflector_counters {
        uint64_t lists;          /* complete, watch lists among them */
        uint64_t relists;        /* of those, all but the first */
        uint64_t watches;        /* opened */
        uint64_t watch_restarts; /* of those, all but the first */
        uint64_t failures;       /* of requests of either kind */
        uint64_t events, bookmarks;
        uint64_t unreadable; /* objects that read() refused */
};

/* The first request is made from the event loop. @sources may be NULL. Returns 0 or -errno. */
int kube_reflector_new(struct kube_client *client, const struct kube_reflector_settings *settings,
                       const struct kube_reflector_callbacks *callbacks, void *userdata,
                       const struct kube_reflector_sources *sources, struct kube_reflector **ret_reflector);
/* Releases all values without deleted(). */
struct kube_reflector *kube_reflector_free(struct kube_reflector *reflector);
DEFINE_CLEANUP(struct kube_reflector, kube_reflector_free)

void *kube_reflector_get(const struct kube_reflector *reflector, const char *key); /* or NULL */
size_t kube_reflector_count(const struct kube_reflector *reflector);
/* A negative result ends the walk and is returned. */
int kube_reflector_each(const struct kube_reflector *reflector, int (*each)(const char *key, void *value, void *userdata),
                        void *userdata);

bool kube_reflector_is_synced(const struct kube_reflector *reflector); /* has been complete once */
bool kube_reflector_is_stale(const struct kube_reflector *reflector);
/* Since when the server has not been heard of on this collection; UINT64_MAX before the first sync. */
uint64_t kube_reflector_staleness_ns(const struct kube_reflector *reflector);
const char *kube_reflector_version(const struct kube_reflector *reflector); /* the last resourceVersion, "" before the first sync */
const char *kube_reflector_problem(const struct kube_reflector *reflector); /* why it is not current, for people; "" when it is */
const struct kube_reflector_counters *kube_reflector_counters(const struct kube_reflector *reflector);
