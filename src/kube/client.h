/* SPDX-License-Identifier: Apache-2.0 */
/* HTTPS to one API server on the daemon's event loop (libcurl's multi interface on sd-event; no threads, no polling).
 *
 * Certificates are always verified. HTTP/2 where the server has it. Tokens, certificates and the authority are read again when
 * their files change; a new certificate or authority means new connections, while those in use end by themselves.
 *
 * Lists and watches have connections of their own, so that nothing small waits behind them, not even in a socket's buffer; at
 * most KUBE_LISTS_MAX lists run at once, further ones wait in line. Of the other requests KUBE_SMALL_MAX run at once; wakes pass
 * all lines.
 *
 * Every request has a deadline. TCP keepalive and an upper bound on unacknowledged data end connections whose peer is silent
 * within KUBE_SILENCE_SECONDS. A plain request that is answered 429 or 5xx with Retry-After is repeated after that time and a
 * jitter, while its deadline allows and KUBE_RETRIES_MAX is not reached. One answered 401 is repeated once if the token has
 * changed.
 *
 * Callbacks come from the event loop, never from within a call; they may start and cancel requests, but must not free the client.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "base/macros.h"
#include "kube/config.h"
#include "kube/counters.h"
#include "kube/status.h"

enum {
        KUBE_REQUESTS_MAX = 512, /* running and waiting; past that -ENOBUFS */
        KUBE_LISTS_MAX = 4,
        KUBE_SMALL_MAX = 16,
        KUBE_RETRIES_MAX = 10,
        KUBE_BODY_MAX = 16 << 20, /* bytes of an answer that is not streamed, and of one object of a stream */
        KUBE_SILENCE_SECONDS = 35,
        KUBE_WAKE_SILENCE_SECONDS = 3,
};

struct kube_client;
struct kube_request;

enum kube_priority {
        KUBE_PRIORITY_WAKE,
        KUBE_PRIORITY_NORMAL,
        KUBE_PRIORITY_LIST,  /* also a watch that begins with the list */
        KUBE_PRIORITY_WATCH, /* never waits in line */
};

/* Copied; @path and @query are to be encoded already. */
struct kube_request_settings {
        enum kube_verb verb;
        enum kube_priority priority;
        const char *resource;     /* for the metrics: "deployments/scale" */
        const char *path;         /* "/api/v1/namespaces/default/pods" */
        const char *query;        /* "limit=500", or NULL */
        const char *content_type; /* of the body */
        const json_t *body;       /* or NULL */
        uint64_t deadline_ns;     /* from now, waiting in line counted; > 0 */
        uint64_t silence_ns;      /* without a byte for that long it has failed with -ETIMEDOUT; 0: no such limit */
};

struct kube_reply {
        int error; /* 0: the server has answered, whatever it said; else -errno, as -ECONNREFUSED, -ETIMEDOUT, -EPIPE
                                    * (broken off), -EMSGSIZE, -EBADMSG, -EKEYREJECTED (TLS), or what data() returned */
        struct kube_status status; /* code 2xx: it was done; message says what went wrong otherwise, also with an error */
        json_t *body;              /* of a plain request that was done, or NULL; owned by the client */
};

struct kube_request_callbacks {
        void (*opened)(void *userdata);                               /* streams: the server has begun to answer with 2xx */
        int (*data)(const char *data, size_t length, void *userdata); /* streams: a negative result ends the request */
        void (*done)(const struct kube_reply *reply, void *userdata); /* exactly once, unless cancelled; last */
};

static inline bool kube_reply_is_ok(const struct kube_reply *reply)
{
        return reply->error == 0 && reply->status.code >= 200 && reply->status.code < 300;
}

/* Who is to know when the server answers again, whatever it says, after it could not be reached: what waits longer and longer for
 * that need not wait any more. Owned by the caller; called from the event loop, also from within libcurl: it may set timers only. */
struct kube_listener {
        void (*reachable)(void *userdata);
        void *userdata;
        TAILQ_ENTRY(kube_listener) link;
};

/* @config is copied as far as it is needed. Returns 0 or -errno; unreadable credentials are a problem of the requests then. */
int kube_client_new(sd_event *event, const struct kube_config *config, struct kube_client **ret_client);
/* Pending requests are cancelled. */
struct kube_client *kube_client_free(struct kube_client *client);
DEFINE_CLEANUP(struct kube_client, kube_client_free)

/* Starts a request. With a data callback the body of an answer 2xx is streamed to it, else parsed. *ret_request, which may be
 * NULL, is valid until done() or cancel. Returns 0, -ENOBUFS, -EINVAL or -ENOMEM. */
int kube_client_request(struct kube_client *client, const struct kube_request_settings *settings,
                        const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request);
/* A watch that began with the list has it all: it leaves the line of the lists to others, and may be silent for @silence_ns from
 * now on. */
void kube_request_is_watch(struct kube_request *request, uint64_t silence_ns);
/* No callback comes after this. Accepts NULL, returns NULL. */
struct kube_request *kube_request_cancel(struct kube_request *request);

void kube_client_listen(struct kube_client *client, struct kube_listener *listener);
void kube_client_unlisten(struct kube_client *client, struct kube_listener *listener);

const struct kube_counters *kube_client_counters(const struct kube_client *client);
sd_event *kube_client_event(const struct kube_client *client);
const char *kube_client_namespace(const struct kube_client *client);
