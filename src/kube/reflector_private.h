/* SPDX-License-Identifier: Apache-2.0 */
/* What reflector.c (requests and time), view.c (objects and the view) and reflector_request.c share. */
#pragma once

#include "kube/list.h"
#include "kube/reflector.h"
#include "kube/reflector_policy.h"
#include "kube/store.h"
#include "kube/stream.h"

struct kube_reflector {
        struct kube_client *client;
        struct kube_listener listener;
        bool awaits_server; /* there was no answer: the next request is made when one is to be had */
        struct kube_reflector_callbacks callbacks;
        void *userdata;
        struct kube_reflector_sources sources;
        char *resource, *path, *field_selector, *label_selector;
        struct reflector_policy policy;
        struct reflector_step step;
        sd_event_source *next_timer;  /* for the next request */
        sd_event_source *stale_timer; /* until the view is stale */
        struct store view, pending;   /* pending: of a list that is not complete */
        char *version;
        char *continue_token;
        bool synced, stale;
        bool watching;     /* a watch is open, past its initial events */
        uint64_t heard_ns; /* the server, on this collection */

        /* of the request that runs */
        struct kube_request *request;
        struct kube_list *list;
        struct kube_stream *stream;
        bool opened;
        bool initial; /* the initial events of a watch list are coming */
        unsigned early_bookmarks;
        uint64_t begun_ns, events;
        struct kube_status *error_event; /* that the server has sent, or NULL */
        struct kube_status error_event_status;

        struct kube_reflector_counters counters;
        char problem[REFLECTOR_MESSAGE_MAX];
};

/* view.c */
int view_read_item(const json_t *item, void *userdata);   /* of a list */
int view_read_event(const json_t *event, void *userdata); /* of a watch */
int view_swap(struct kube_reflector *reflector, const char *version);

/* reflector_request.c: begins what the step says. Returns 0 or -errno. */
int reflector_request(struct kube_reflector *reflector, const struct kube_request_callbacks *callbacks);

/* reflector.c */
void reflector_synced(struct kube_reflector *reflector); /* the initial events are complete */
