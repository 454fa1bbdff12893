/* SPDX-License-Identifier: Apache-2.0 */
/* The last 1024 events of the daemon, in memory, numbered from 1 without gaps; past that the oldest is forgotten. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/macros.h"

struct event_log;

int event_log_new(struct event_log **ret_log);
struct event_log *event_log_free(struct event_log *log);
DEFINE_CLEANUP(struct event_log, event_log_free)

/* Adds {seq, time, policy, reason, message}; @policy may be NULL. @reason is CamelCase: "Woken", "Slept", "WakeFailed", … A failed
 * allocation loses the event and is counted. */
void event_log_add(struct event_log *log, const char *policy, const char *reason, const char *format, ...) _printf_(4, 5);

/* A new array of the events after @after, oldest first. */
json_t *event_log_list(const struct event_log *log, uint64_t after);
/* The first event after @after, owned by the log, or NULL. */
const json_t *event_log_next(const struct event_log *log, uint64_t after);
uint64_t event_log_newest(const struct event_log *log); /* its number; 0: none yet */
uint64_t event_log_lost(const struct event_log *log);

/* At most 16 at once are told of each new event, from within event_log_add(). Returns 0 or -ENOSPC. */
typedef void (*event_log_listener)(void *userdata);
int event_log_listen(struct event_log *log, event_log_listener listener, void *userdata);
void event_log_unlisten(struct event_log *log, event_log_listener listener, void *userdata);
