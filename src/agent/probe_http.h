/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP(S) request after another, as a readiness probe asks it. probe.h says by which rules. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

#include "kube/scale_to_zero.h"
#include "kube/transport.h"

struct probe_http;

/* @problem: NULL when it has passed; else for people, valid during the call. May free the probe_http. */
typedef void (*probe_http_ended)(const char *problem, void *userdata);

/* Returns 0, -EINVAL for a header or path that cannot be sent, or -ENOMEM. */
int probe_http_new(struct transport *transport, const struct status_probe *settings, const struct address *address,
                   probe_http_ended ended, void *userdata, struct probe_http **ret_http);
struct probe_http *probe_http_free(struct probe_http *http); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct probe_http, probe_http_free)

/* Returns 0, or -errno: then nothing is under way. */
int probe_http_start(struct probe_http *http);
void probe_http_stop(struct probe_http *http);
/* Whether the attempt that is under way has a connection. */
bool probe_http_is_connected(const struct probe_http *http);
/* For the transport's owner: what its finished() is told. */
void probe_http_finished(CURL *easy, CURLcode result);
