/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's multi interface on the event loop: one pool of connections. */
#pragma once

#include <curl/curl.h>
#include <systemd/sd-event.h>

#include "base/macros.h"

struct transport;

struct transport_callbacks {
        void (*finished)(CURL *easy, CURLcode result, void *userdata); /* it is no longer in the transport */
        void (*ran)(void *userdata); /* libcurl has returned: transfers may be added and removed */
};

int transport_new(sd_event *event, const struct transport_callbacks *callbacks, void *userdata, struct transport **ret_transport);
struct transport *transport_free(struct transport *transport); /* no transfer may be in it */
DEFINE_CLEANUP(struct transport, transport_free)

/* Not from within a transfer's own callbacks. */
int transport_add(struct transport *transport, CURL *easy);
void transport_remove(struct transport *transport, CURL *easy);
/* Has libcurl read from all its sockets soon, whether there is anything new in them or not. */
void transport_look_again(struct transport *transport);
