/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/time.h"
#include "kube/query.h"
#include "kube/reflector_private.h"

enum {
        WATCH_SECONDS_MIN = 300, /* and up to twice that, as in client-go */
        WATCH_SECONDS_GRACE = 30,
        LIST_SECONDS_MAX = 120,
        LIST_SILENCE_SECONDS = 60,
        INITIAL_SILENCE_SECONDS = 30, /* a server that does not know about initial events may just say nothing more */
};

static const char *version_text(const struct kube_reflector *reflector)
{
        switch (reflector->step.version) {
        case REFLECTOR_VERSION_ANY:
                return "0";
        case REFLECTOR_VERSION_LAST:
                return reflector->version;
        case REFLECTOR_VERSION_NEWEST:
                return NULL;
        }
        return NULL;
}

static void query_list(const struct kube_reflector *reflector, struct kube_query *query)
{
        char limit[24];

        snprintf(limit, sizeof(limit), "%d", REFLECTOR_PAGE_ITEMS);
        if (reflector->step.paged)
                kube_query_add(query, "limit", limit);
        if (reflector->continue_token)
                kube_query_add(query, "continue", reflector->continue_token);
        else
                kube_query_add(query, "resourceVersion", version_text(reflector));
}

static void query_watch(const struct kube_reflector *reflector, unsigned seconds, struct kube_query *query)
{
        char timeout[24];

        snprintf(timeout, sizeof(timeout), "%u", seconds);
        kube_query_add(query, "watch", "true");
        kube_query_add(query, "allowWatchBookmarks", "true");
        kube_query_add(query, "timeoutSeconds", timeout);
        kube_query_add(query, "resourceVersion", version_text(reflector));
        if (reflector->step.action == REFLECTOR_WATCH_LIST) {
                kube_query_add(query, "sendInitialEvents", "true");
                kube_query_add(query, "resourceVersionMatch", "NotOlderThan");
        }
}

static int readers_new(struct kube_reflector *reflector)
{
        reflector->list = kube_list_free(reflector->list);
        reflector->stream = kube_stream_free(reflector->stream);
        if (reflector->step.action == REFLECTOR_LIST)
                return kube_list_new(KUBE_BODY_MAX, view_read_item, reflector, &reflector->list);
        return kube_stream_new(KUBE_BODY_MAX, view_read_event, reflector, &reflector->stream);
}

static void settings_make(const struct kube_reflector *reflector, unsigned watch_seconds, struct kube_request_settings *settings)
{
        *settings = (struct kube_request_settings){
                .resource = reflector->resource,
                .path = reflector->path,
                .verb = KUBE_WATCH,
                .priority = KUBE_PRIORITY_WATCH,
                .deadline_ns = (watch_seconds + WATCH_SECONDS_GRACE) * NSEC_PER_SEC,
                .silence_ns = REFLECTOR_SILENCE_NS,
        };
        if (reflector->step.action == REFLECTOR_LIST) {
                settings->verb = KUBE_LIST;
                settings->deadline_ns = LIST_SECONDS_MAX * NSEC_PER_SEC;
                settings->silence_ns = LIST_SILENCE_SECONDS * NSEC_PER_SEC;
        }
        if (reflector->step.action == REFLECTOR_WATCH_LIST)
                settings->silence_ns = INITIAL_SILENCE_SECONDS * NSEC_PER_SEC;
        if (reflector->step.action != REFLECTOR_WATCH)
                settings->priority = KUBE_PRIORITY_LIST;
}

static void request_reset(struct kube_reflector *reflector)
{
        reflector->opened = false;
        reflector->initial = reflector->step.action == REFLECTOR_WATCH_LIST;
        reflector->early_bookmarks = 0;
        reflector->begun_ns = reflector->sources.now_ns();
        reflector->events = 0;
        reflector->error_event = NULL;
        if (reflector->step.action != REFLECTOR_WATCH && !reflector->continue_token)
                store_clear(&reflector->pending);
}

int reflector_request(struct kube_reflector *reflector, const struct kube_request_callbacks *callbacks)
{
        unsigned seconds = WATCH_SECONDS_MIN + (unsigned)(reflector->sources.chance() * WATCH_SECONDS_MIN);
        _cleanup_(kube_query_done) struct kube_query query = { 0 };
        struct kube_request_settings settings;
        int r;

        request_reset(reflector);
        if (reflector->step.action == REFLECTOR_LIST)
                query_list(reflector, &query);
        else
                query_watch(reflector, seconds, &query);
        kube_query_add(&query, "fieldSelector", reflector->field_selector);
        kube_query_add(&query, "labelSelector", reflector->label_selector);

        settings_make(reflector, seconds, &settings);
        r = kube_query_text(&query, &settings.query);
        if (r >= 0)
                r = readers_new(reflector);
        if (r < 0)
                return r;
        return kube_client_request(reflector->client, &settings, callbacks, reflector, &reflector->request);
}
