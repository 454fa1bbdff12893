/* SPDX-License-Identifier: Apache-2.0 */
/* Events about objects (events.k8s.io/v1), for people who look at them with kubectl.
 *
 * The same event (object, type, reason, action) within RECORDER_SERIES_NS is not written again but made a series: the first
 * write is a create, repetitions are counted here and sent as a merge patch of series.count and series.lastObservedTime, at most
 * one every RECORDER_SERIES_WRITE_NS and one at the series' end. A patch answered 404 is followed by a new event. At most
 * RECORDER_SERIES_MAX series are known; past that the least recently used goes. At most RECORDER_WAITING_MAX writes wait; past
 * that events are dropped and counted. A failed write is counted, not repeated beyond what the client does: events may be lost,
 * and nothing waits for them.
 */
#pragma once

#include <stdint.h>

#include "kube/client.h"

#define RECORDER_SERIES_NS (360 * UINT64_C(1000000000)) /* client-go's finishTime */
#define RECORDER_SERIES_WRITE_NS (60 * UINT64_C(1000000000))

enum { RECORDER_SERIES_MAX = 1024, RECORDER_WAITING_MAX = 64, RECORDER_NOTE_MAX = 1024, RECORDER_REASON_MAX = 128 };

struct kube_recorder;

struct kube_recorder_settings {
        const char *controller; /* reportingController: "lull.dev/lulld" */
        const char *instance;   /* reportingInstance: the pod's name */
        const char *namespace;  /* for events about objects that have none; "default" where NULL */
};

/* What the event is about (core/v1 ObjectReference). */
struct kube_reference {
        const char *api, *kind, *namespace, *name, *uid, *resource_version; /* namespace, uid and resource_version may be NULL */
};

enum kube_event_type { KUBE_EVENT_NORMAL, KUBE_EVENT_WARNING };

struct kube_recorder_counters {
        uint64_t written, repeated, dropped, failed;
};

int kube_recorder_new(struct kube_client *client, const struct kube_recorder_settings *settings, uint64_t (*now_ns)(void),
                      struct kube_recorder **ret_recorder); /* @now_ns may be NULL: CLOCK_MONOTONIC */
/* What waits is lost. */
struct kube_recorder *kube_recorder_free(struct kube_recorder *recorder);
DEFINE_CLEANUP(struct kube_recorder, kube_recorder_free)

/* @reason and @action are in UpperCamelCase, "WakeFailed" and "Wake"; a note past its bound is cut at a character. */
void kube_recorder_event(struct kube_recorder *recorder, const struct kube_reference *about, enum kube_event_type type,
                         const char *reason, const char *action, const char *format, ...) _printf_(6, 7);

const struct kube_recorder_counters *kube_recorder_counters(const struct kube_recorder *recorder);
