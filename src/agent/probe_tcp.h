/* SPDX-License-Identifier: Apache-2.0 */
/* One TCP connection after another, closed as soon as there, as a readiness probe asks it. probe.h says by which rules. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/address.h"
#include "base/macros.h"

struct probe_tcp;

/* @problem: NULL when it has passed; else for people, valid during the call. May free the probe_tcp. */
typedef void (*probe_tcp_ended)(const char *problem, void *userdata);

/* Returns 0 or -ENOMEM. */
int probe_tcp_new(sd_event *event, const struct address *address, uint16_t port, probe_tcp_ended ended, void *userdata,
                  struct probe_tcp **ret_tcp);
struct probe_tcp *probe_tcp_free(struct probe_tcp *tcp); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct probe_tcp, probe_tcp_free)

/* Returns 0, or -errno: then nothing is under way. */
int probe_tcp_start(struct probe_tcp *tcp);
void probe_tcp_stop(struct probe_tcp *tcp);
