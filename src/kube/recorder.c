/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/recorder.h"

#include <inttypes.h>
#include <string.h>

#include "base/time.h"
#include "kube/micro_time.h"
#include "kube/note.h"
#include "kube/patch.h"
#include "kube/recorder_table.h"

#define API "events.k8s.io/v1"

struct kube_recorder {
        struct kube_client *client;
        char *controller, *instance;
        uint64_t (*now_ns)(void);
        struct recorder_table table;
        sd_event_source *timer;
        uint64_t armed_ns; /* UINT64_MAX: not */
        struct kube_request *request;
        struct recorder_series *writing; /* whose request it is */
        uint64_t named_ns;               /* the last event's name, so that no two have the same */
        struct kube_recorder_counters counters;
};

static void on_reply(const struct kube_reply *reply, void *userdata);

/* What is sent */

static json_t *make_event(struct kube_recorder *recorder, const struct kube_reference *about, enum kube_event_type type,
                          const char *reason, const char *action, const char *note)
{
        char name[RECORDER_INSTANCE_MAX + 32], time[MICRO_TIME_TEXT_MAX];
        uint64_t realtime_ns = now_realtime_ns();

        recorder->named_ns = MAX(realtime_ns, recorder->named_ns + 1);
        snprintf(name, sizeof(name), "%s.%016" PRIx64, recorder->instance, recorder->named_ns);
        micro_time_format(realtime_ns / NSEC_PER_USEC, time);
        /* An event about an object without a namespace has to be in "default" (ValidateEventCreate). */
        return json_pack("{s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s*, s:s, s:s*, s:s*}}",
                         "apiVersion", API, "kind", "Event", "metadata", "namespace",
                         about->namespace ? about->namespace : "default", "name", name, "eventTime", time, "reportingController",
                         recorder->controller, "reportingInstance", recorder->instance, "action", action, "reason", reason, "note",
                         note, "type", type == KUBE_EVENT_WARNING ? "Warning" : "Normal", "regarding", "apiVersion", about->api,
                         "kind", about->kind, "namespace", about->namespace, "name", about->name, "uid", about->uid,
                         "resourceVersion", about->resource_version);
}

static json_t *make_series(const struct recorder_series *series)
{
        char time[MICRO_TIME_TEXT_MAX];

        return json_pack("{s:{s:I, s:s}}", "series", "count", (json_int_t)series->count, "lastObservedTime",
                         micro_time_format(series->last_realtime_us, time));
}

static int send_create(struct kube_recorder *recorder, struct recorder_series *series, const struct kube_object *object)
{
        const struct kube_request_callbacks callbacks = { .done = on_reply };
        _cleanup_(json_decrefp) json_t *body = json_copy(series->event);
        _cleanup_(json_decrefp) json_t *times = make_series(series);

        if (!body || !times || (series->count > 1 && json_object_update(body, times) < 0))
                return -ENOMEM;
        return kube_create(recorder->client, object, body, NULL, &callbacks, recorder, &recorder->request);
}

static int send_patch(struct kube_recorder *recorder, struct recorder_series *series, struct kube_object *object, const char *name)
{
        const struct kube_request_callbacks callbacks = { .done = on_reply };
        _cleanup_(json_decrefp) json_t *body = make_series(series);

        if (!body)
                return -ENOMEM;
        object->name = name;
        return kube_patch(recorder->client, object, KUBE_PATCH_MERGE, body, NULL, &callbacks, recorder, &recorder->request);
}

static int send_series(struct kube_recorder *recorder, struct recorder_series *series)
{
        const json_t *metadata = json_object_get(series->event, "metadata");
        struct kube_object object = {
                .api = API,
                .resource = "events",
                .namespace = json_string_value(json_object_get(metadata, "namespace")),
        };

        if (series->exists)
                return send_patch(recorder, series, &object, json_string_value(json_object_get(metadata, "name")));
        return send_create(recorder, series, &object);
}

/* When it is sent */

static bool has_news(const struct recorder_series *series)
{
        return series->told < series->count;
}

static uint64_t due_ns(const struct recorder_series *series)
{
        return has_news(series) ? series->write_after_ns : series->last_ns + RECORDER_SERIES_NS;
}

static void arm(struct kube_recorder *recorder, uint64_t due, uint64_t now_ns)
{
        if (due >= recorder->armed_ns)
                return;
        recorder->armed_ns = due;
        /* The clock is the caller's in tests, so the timer is told how long. Setting a timer that exists cannot fail. */
        (void)sd_event_source_set_time_relative(recorder->timer, due > now_ns ? (due - now_ns) / NSEC_PER_USEC + 1 : 0);
        (void)sd_event_source_set_enabled(recorder->timer, SD_EVENT_ONESHOT);
}

/* @series has been written, or could not be. */
static void settle(struct kube_recorder *recorder, struct recorder_series *series, bool written, uint64_t now_ns)
{
        bool created = written && !series->exists;

        series->is_in_flight = false;
        series->told = series->sent;
        series->exists = series->exists || written;
        series->write_after_ns = created ? now_ns : now_ns + RECORDER_SERIES_WRITE_NS;
        if (written)
                recorder->counters.written++;
        else
                recorder->counters.failed++;
        arm(recorder, due_ns(series), now_ns);
}

static void pump(struct kube_recorder *recorder, uint64_t now_ns)
{
        struct recorder_series *series;

        while (!recorder->request && (series = recorder_table_dequeue(&recorder->table))) {
                series->sent = series->count;
                if (send_series(recorder, series) < 0) {
                        settle(recorder, series, false, now_ns);
                        continue;
                }
                series->is_in_flight = true;
                recorder->writing = series;
        }
}

/* Tells the server what it does not know, now or when it is time. */
static void schedule(struct kube_recorder *recorder, struct recorder_series *series, uint64_t now_ns)
{
        if (series->is_waiting || series->is_in_flight)
                return;
        if (has_news(series) && now_ns >= series->write_after_ns && !recorder_table_enqueue(&recorder->table, series))
                series->write_after_ns = now_ns + RECORDER_SERIES_WRITE_NS;
        if (!series->is_waiting)
                arm(recorder, due_ns(series), now_ns);
}

static void on_reply(const struct kube_reply *reply, void *userdata)
{
        struct kube_recorder *recorder = userdata;
        struct recorder_series *series = TAKE_PTR(recorder->writing);
        uint64_t now_ns = recorder->now_ns();

        recorder->request = NULL;
        if (series->exists && reply->error == 0 && reply->status.code == 404) {
                series->exists = series->is_in_flight = false;
                series->write_after_ns = now_ns;
        } else {
                settle(recorder, series, kube_reply_is_ok(reply), now_ns);
        }
        schedule(recorder, series, now_ns);
        pump(recorder, now_ns);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct kube_recorder *recorder = userdata;
        struct recorder_series *series, *next;
        uint64_t now_ns = recorder->now_ns();

        recorder->armed_ns = UINT64_MAX;
        for (series = TAILQ_FIRST(&recorder->table.used); series; series = next) {
                bool is_busy = series->is_waiting || series->is_in_flight;

                next = TAILQ_NEXT(series, used);
                if (!is_busy && !has_news(series) && now_ns >= due_ns(series))
                        recorder_table_remove(&recorder->table, series);
                else
                        schedule(recorder, series, now_ns);
        }
        pump(recorder, now_ns);
        return 0;
}

/* What is recorded */

static const char *or_empty(const char *text)
{
        return text ? text : "";
}

/* "\n" is in no name of the API. */
static char *object_key(const struct kube_reference *about)
{
        char *key;

        return asprintf(&key, "%s\n%s\n%s\n%s\n%s", about->api, about->kind, or_empty(about->namespace), about->name,
                        or_empty(about->uid)) < 0
                       ? NULL
                       : key;
}

static char *series_key(const char *object, enum kube_event_type type, const char *reason, const char *action)
{
        char *key;

        return asprintf(&key, "%s\n%d\n%s\n%s", object, type, reason, action) < 0 ? NULL : key;
}

static struct recorder_series *find_series(struct kube_recorder *recorder, const char *key, uint64_t now_ns)
{
        struct recorder_series *series = recorder_table_find(&recorder->table, key);
        bool has_ended = series && !series->is_waiting && !series->is_in_flight && !has_news(series) && now_ns >= due_ns(series);

        if (!has_ended)
                return series;
        recorder_table_remove(&recorder->table, series);
        return NULL;
}

/* Asked before anything is formatted, so that a flood of events costs little. */
static bool may_add(struct kube_recorder *recorder, const char *object, uint64_t now_ns)
{
        return recorder->table.n_waiting < RECORDER_WAITING_MAX && recorder_table_take(&recorder->table, object, now_ns);
}

static struct recorder_series *add_series(struct kube_recorder *recorder, const char *key, json_t *event, uint64_t now_ns)
{
        struct recorder_series *series;

        if (!event)
                return NULL;
        series = recorder_table_add(&recorder->table, key, event, &recorder->counters.dropped);
        if (series)
                series->write_after_ns = now_ns;
        return series;
}

void kube_recorder_event(struct kube_recorder *recorder, const struct kube_reference *about, enum kube_event_type type,
                         const char *reason, const char *action, const char *format, ...)
{
        _cleanup_(freep) char *object = object_key(about);
        _cleanup_(freep) char *key = object ? series_key(object, type, reason, action) : NULL;
        uint64_t now_ns = recorder->now_ns();
        struct recorder_series *series = key ? find_series(recorder, key, now_ns) : NULL;
        char note[NOTE_MAX + 1];
        va_list arguments;

        if (series) {
                recorder->counters.repeated++;
                recorder_table_use(&recorder->table, series);
        } else if (key && may_add(recorder, object, now_ns)) {
                va_start(arguments, format);
                note_format(note, format, arguments);
                va_end(arguments);
                series = add_series(recorder, key, make_event(recorder, about, type, reason, action, note), now_ns);
        }
        if (!series) {
                recorder->counters.dropped++;
                return;
        }

        series->count = MIN(series->count + 1, (uint32_t)INT32_MAX); /* the API's type */
        series->last_ns = now_ns;
        series->last_realtime_us = now_realtime_ns() / NSEC_PER_USEC;
        schedule(recorder, series, now_ns);
        pump(recorder, now_ns);
}

/* Life */

/* A DNS-1123 subdomain's characters and ends: events are named after it. */
static bool is_dns_name(const char *text)
{
        size_t length = strlen(text);

        if (length == 0 || length > RECORDER_INSTANCE_MAX || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") != length)
                return false;
        return !strchr("-.", text[0]) && !strchr("-.", text[length - 1]) && !strstr(text, "..");
}

int kube_recorder_new(struct kube_client *client, const struct kube_recorder_settings *settings, uint64_t (*now_ns)(void),
                      struct kube_recorder **ret_recorder)
{
        _cleanup_(kube_recorder_freep) struct kube_recorder *recorder = NULL;
        int r;

        if (!is_dns_name(settings->instance))
                return -EINVAL;
        recorder = calloc(1, sizeof(*recorder));
        if (!recorder)
                return -ENOMEM;
        recorder->client = client;
        recorder->now_ns = now_ns ? now_ns : now_monotonic_ns;
        recorder->armed_ns = UINT64_MAX;
        recorder_table_init(&recorder->table);
        recorder->controller = strdup(settings->controller);
        recorder->instance = strdup(settings->instance);
        if (!recorder->controller || !recorder->instance)
                return -ENOMEM;

        r = sd_event_add_time_relative(kube_client_event(client), &recorder->timer, CLOCK_MONOTONIC, UINT32_MAX, 0, on_timer,
                                       recorder);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(recorder->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;

        *ret_recorder = TAKE_PTR(recorder);
        return 0;
}

struct kube_recorder *kube_recorder_free(struct kube_recorder *recorder)
{
        if (!recorder)
                return NULL;
        kube_request_cancel(recorder->request);
        sd_event_source_disable_unref(recorder->timer);
        recorder_table_done(&recorder->table);
        free(recorder->controller);
        free(recorder->instance);
        free(recorder);
        return NULL;
}

const struct kube_recorder_counters *kube_recorder_counters(const struct kube_recorder *recorder)
{
        return &recorder->counters;
}
