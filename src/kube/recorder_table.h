/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorder remembers: its series, and how many new events each object may still have. Pure: time is passed in.
 *
 * Both are bounded (RECORDER_SERIES_MAX, RECORDER_OBJECTS_MAX); past that the least recently used goes.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* A failed allocation in uthash would end the process; this way it leaves the element out and says so in hh.tbl. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/macros.h"

struct recorder_series {
        UT_hash_handle hh;
        TAILQ_ENTRY(recorder_series) used, waiting;
        char *key;
        json_t *event;              /* as it was created, without a series */
        uint32_t count, told, sent; /* its times; those the server has heard of; those in the request in flight */
        uint64_t last_ns, last_realtime_us;
        uint64_t write_after_ns; /* the next write, if there is something to tell */
        bool exists;             /* on the server */
        bool is_waiting, is_in_flight;
};

TAILQ_HEAD(recorder_series_list, recorder_series);

struct recorder_object {
        UT_hash_handle hh;
        TAILQ_ENTRY(recorder_object) used;
        char *key;
        uint32_t tokens;
        uint64_t refilled_ns;
};

struct recorder_table {
        struct recorder_series *by_key;
        struct recorder_series_list used, waiting; /* the least recently used first; the next to be written first */
        unsigned n_waiting;
        struct recorder_object *objects;
        TAILQ_HEAD(, recorder_object) objects_used;
};

void recorder_table_init(struct recorder_table *table);
void recorder_table_done(struct recorder_table *table);

struct recorder_series *recorder_table_find(struct recorder_table *table, const char *key);
/* Takes over @event, also on failure. Adds what the one that went had not told to *dropped. NULL: out of memory. */
struct recorder_series *recorder_table_add(struct recorder_table *table, const char *key, json_t *event, uint64_t *dropped);
void recorder_table_use(struct recorder_table *table, struct recorder_series *series);
void recorder_table_remove(struct recorder_table *table, struct recorder_series *series);

/* One that waits already stays where it is. Returns false when RECORDER_WAITING_MAX wait. */
bool recorder_table_enqueue(struct recorder_table *table, struct recorder_series *series);
struct recorder_series *recorder_table_dequeue(struct recorder_table *table); /* or NULL */

/* Takes one new event from the share of an object. Returns false when it is spent, or out of memory. */
bool recorder_table_take(struct recorder_table *table, const char *object, uint64_t now_ns);
