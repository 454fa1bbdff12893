/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/recorder_table.h"

#include <string.h>

#include "kube/recorder.h"

void recorder_table_init(struct recorder_table *table)
{
        *table = (struct recorder_table){ 0 };
        TAILQ_INIT(&table->used);
        TAILQ_INIT(&table->waiting);
        TAILQ_INIT(&table->objects_used);
}

static struct recorder_series *series_free(struct recorder_series *series)
{
        json_decref(series->event);
        free(series->key);
        free(series);
        return NULL;
}
DEFINE_CLEANUP(struct recorder_series, series_free)

static struct recorder_object *object_free(struct recorder_object *object)
{
        free(object->key);
        free(object);
        return NULL;
}
DEFINE_CLEANUP(struct recorder_object, object_free)

static void object_remove(struct recorder_table *table, struct recorder_object *object)
{
        HASH_DEL(table->objects, object);
        TAILQ_REMOVE(&table->objects_used, object, used);
        object_free(object);
}

void recorder_table_done(struct recorder_table *table)
{
        struct recorder_series *series, *next_series;
        struct recorder_object *object, *next_object;

        HASH_CLEAR(hh, table->by_key);
        for (series = TAILQ_FIRST(&table->used); series; series = next_series) {
                next_series = TAILQ_NEXT(series, used);
                series_free(series);
        }
        HASH_CLEAR(hh, table->objects);
        for (object = TAILQ_FIRST(&table->objects_used); object; object = next_object) {
                next_object = TAILQ_NEXT(object, used);
                object_free(object);
        }
        recorder_table_init(table);
}

struct recorder_series *recorder_table_find(struct recorder_table *table, const char *key)
{
        struct recorder_series *series;

        HASH_FIND_STR(table->by_key, key, series);
        return series;
}

static void make_room(struct recorder_table *table, uint64_t *dropped)
{
        struct recorder_series *series;

        if (HASH_COUNT(table->by_key) < RECORDER_SERIES_MAX)
                return;
        TAILQ_FOREACH(series, &table->used, used) {
                if (series->is_in_flight)
                        continue;
                *dropped += series->count - series->told;
                recorder_table_remove(table, series);
                return;
        }
}

struct recorder_series *recorder_table_add(struct recorder_table *table, const char *key, json_t *event, uint64_t *dropped)
{
        _cleanup_(series_freep) struct recorder_series *series = calloc(1, sizeof(*series));

        if (!series) {
                json_decref(event);
                return NULL;
        }
        series->event = event;
        series->key = strdup(key);
        if (!series->key)
                return NULL;

        make_room(table, dropped);
        HASH_ADD_KEYPTR(hh, table->by_key, series->key, strlen(series->key), series);
        if (!series->hh.tbl)
                return NULL;
        TAILQ_INSERT_TAIL(&table->used, series, used);
        return TAKE_PTR(series);
}

void recorder_table_use(struct recorder_table *table, struct recorder_series *series)
{
        TAILQ_REMOVE(&table->used, series, used);
        TAILQ_INSERT_TAIL(&table->used, series, used);
}

static void leave_line(struct recorder_table *table, struct recorder_series *series)
{
        TAILQ_REMOVE(&table->waiting, series, waiting);
        series->is_waiting = false;
        table->n_waiting--;
}

void recorder_table_remove(struct recorder_table *table, struct recorder_series *series)
{
        if (series->is_waiting)
                leave_line(table, series);
        HASH_DEL(table->by_key, series);
        TAILQ_REMOVE(&table->used, series, used);
        series_free(series);
}

bool recorder_table_enqueue(struct recorder_table *table, struct recorder_series *series)
{
        if (series->is_waiting)
                return true;
        if (table->n_waiting >= RECORDER_WAITING_MAX)
                return false;
        TAILQ_INSERT_TAIL(&table->waiting, series, waiting);
        series->is_waiting = true;
        table->n_waiting++;
        return true;
}

struct recorder_series *recorder_table_dequeue(struct recorder_table *table)
{
        struct recorder_series *series = TAILQ_FIRST(&table->waiting);

        if (series)
                leave_line(table, series);
        return series;
}

static struct recorder_object *object_add(struct recorder_table *table, const char *key, uint64_t now_ns)
{
        _cleanup_(object_freep) struct recorder_object *object = calloc(1, sizeof(*object));

        if (!object)
                return NULL;
        *object = (struct recorder_object){ .key = strdup(key), .tokens = RECORDER_OBJECT_BURST, .refilled_ns = now_ns };
        if (!object->key)
                return NULL;

        if (HASH_COUNT(table->objects) >= RECORDER_OBJECTS_MAX)
                object_remove(table, TAILQ_FIRST(&table->objects_used));
        HASH_ADD_KEYPTR(hh, table->objects, object->key, strlen(object->key), object);
        if (!object->hh.tbl)
                return NULL;
        TAILQ_INSERT_TAIL(&table->objects_used, object, used);
        return TAKE_PTR(object);
}

static void refill(struct recorder_object *object, uint64_t now_ns)
{
        uint64_t due = (now_ns - object->refilled_ns) / RECORDER_OBJECT_REFILL_NS;

        object->tokens = (uint32_t)MIN(object->tokens + due, (uint64_t)RECORDER_OBJECT_BURST);
        object->refilled_ns += due * RECORDER_OBJECT_REFILL_NS;
}

bool recorder_table_take(struct recorder_table *table, const char *key, uint64_t now_ns)
{
        struct recorder_object *object;

        HASH_FIND_STR(table->objects, key, object);
        if (!object)
                object = object_add(table, key, now_ns);
        if (!object)
                return false;

        TAILQ_REMOVE(&table->objects_used, object, used);
        TAILQ_INSERT_TAIL(&table->objects_used, object, used);
        refill(object, now_ns);
        if (object->tokens == 0)
                return false;
        object->tokens--;
        return true;
}
