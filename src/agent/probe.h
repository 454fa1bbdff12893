/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a pod's own declared readiness probe from this node, often, until it has succeeded often enough.
 *
 * As the kubelet of 1.37 runs it (pkg/probe/http, pkg/probe/tcp): HTTP succeeds with 200–399, redirects to the same host are followed
 * and one that leads elsewhere is a success, 10 KiB of the body are read at most, nothing is verified, no proxy is used, each attempt
 * has a connection of its own; TCP succeeds when connected, and closes at once. An attempt begins every PROBE_PERIOD_NS, or as soon as
 * the last one has ended; each is bounded by the probe's timeout, and connecting by PROBE_CONNECT_NS: where a first SYN got lost, a
 * new attempt is faster than its retransmission. At most PROBES_MAX run at once; -ENOBUFS past that: then Ready decides. All together
 * they begin PROBE_RATE_MAX attempts a second at most: with more probes each has its turn less often.
 */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "kube/scale_to_zero.h"

#define PROBE_PERIOD_NS (25 * UINT64_C(1000000))
#define PROBE_CONNECT_NS (250 * UINT64_C(1000000))
enum { PROBES_MAX = 256, PROBE_RATE_MAX = 1000 };

struct prober; /* one a daemon: a libcurl multi handle on the event loop */
struct probe;

int prober_new(sd_event *event, struct prober **ret_prober);
struct prober *prober_free(struct prober *prober); /* its probes must have been freed */
DEFINE_CLEANUP(struct prober, prober_free)

struct probe_callbacks {
        /* It passed successThreshold times in a row; attempts have ended. Comes from the event loop; may free the probe. */
        void (*passed)(struct probe *probe, uint64_t at_ns, void *userdata);
};

/* Probes @settings at @address, not before @not_before_ns (monotonic: initialDelaySeconds). Copies what it needs. Returns 0, -EINVAL
 * for PROBE_NONE and for what cannot be sent (a line break in a header), -ENOBUFS, or -errno. */
int probe_new(struct prober *prober, const struct status_probe *settings, const struct address *address, uint64_t not_before_ns,
              const struct probe_callbacks *callbacks, void *userdata, struct probe **ret_probe);
struct probe *probe_free(struct probe *probe); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct probe, probe_free)
uint64_t probe_attempts(const struct probe *probe);
const char *probe_problem(const struct probe *probe); /* why the last attempt failed, for people; "" before the first */
