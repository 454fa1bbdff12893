/* SPDX-License-Identifier: Apache-2.0 */
/* Events about objects (events.k8s.io/v1), for people who look at them with kubectl. Nothing waits for them: they may be lost.
 *
 * The same event (object, type, reason, action) within RECORDER_SERIES_NS of its last time is not written again but makes a
 * series, with the note of the first: a create, then merge patches of series.count and series.lastObservedTime, of which the first
 * goes out at once and further ones once every RECORDER_SERIES_WRITE_NS. Where a patch finds the event gone (the server keeps
 * them for an hour or so) it is created anew, with its count.
 *
 * An object may have RECORDER_OBJECT_BURST new events and one more every RECORDER_OBJECT_REFILL_NS, as client-go's spam filter has
 * it; past that they are dropped and counted. RECORDER_OBJECTS_MAX objects are remembered for this, the least recently used
 * forgotten first. One request runs at a time and at most RECORDER_WAITING_MAX wait; past that new events are dropped and counted,
 * repetitions are told later. At most RECORDER_SERIES_MAX series are known; the least recently used goes first, and what it had
 * not told yet is dropped and counted. A write that fails is counted, and not repeated beyond what the client does.
 */
#pragma once

#include <stdint.h>

#include "kube/client.h"

#define RECORDER_SERIES_NS (360 * UINT64_C(1000000000)) /* client-go's finishTime */
#define RECORDER_SERIES_WRITE_NS (60 * UINT64_C(1000000000))
#define RECORDER_OBJECT_REFILL_NS (300 * UINT64_C(1000000000)) /* client-go's defaultSpamQPS, 1/300 */

enum {
        RECORDER_SERIES_MAX = 1024,
        RECORDER_WAITING_MAX = 64,
        RECORDER_OBJECTS_MAX = 1024,
        RECORDER_OBJECT_BURST = 25, /* client-go's defaultSpamBurst */
        RECORDER_INSTANCE_MAX = 128,
};

struct kube_recorder;

struct kube_recorder_settings {
        const char *controller; /* reportingController: "lull.dev/lulld" */
        const char *instance;   /* reportingInstance: the pod's name; events are named after it and the time */
};

/* What the event is about (core/v1 ObjectReference). */
struct kube_reference {
        const char *api, *kind, *namespace, *name, *uid, *resource_version; /* namespace, uid and resource_version may be NULL */
};

enum kube_event_type { KUBE_EVENT_NORMAL, KUBE_EVENT_WARNING };

struct kube_recorder_counters {
        uint64_t written;  /* requests that were done */
        uint64_t repeated; /* events that became part of a series */
        uint64_t dropped;  /* events that the server will not hear of: by the bounds above, or out of memory */
        uint64_t failed;   /* requests */
};

/* @now_ns may be NULL: CLOCK_MONOTONIC. Returns 0, -EINVAL for an instance that is no DNS name of at most RECORDER_INSTANCE_MAX
 * bytes, or -errno. */
int kube_recorder_new(struct kube_client *client, const struct kube_recorder_settings *settings, uint64_t (*now_ns)(void),
                      struct kube_recorder **ret_recorder);
/* What waits is lost. */
struct kube_recorder *kube_recorder_free(struct kube_recorder *recorder);
DEFINE_CLEANUP(struct kube_recorder, kube_recorder_free)

/* @reason and @action are in UpperCamelCase, "WakeFailed" and "Wake", of at most 128 bytes. The note is cut at a character to the
 * API's bound; what is not UTF-8 in it becomes "?". */
void kube_recorder_event(struct kube_recorder *recorder, const struct kube_reference *about, enum kube_event_type type,
                         const char *reason, const char *action, const char *format, ...) _printf_(6, 7);

const struct kube_recorder_counters *kube_recorder_counters(const struct kube_recorder *recorder);
