/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/event_log.h"

#include <stdarg.h>

#include "base/time.h"

enum { EVENTS_MAX = 1024, LISTENERS_MAX = 16 };

struct event_log {
        json_t *events[EVENTS_MAX]; /* number N is at N % EVENTS_MAX */
        uint64_t newest;
        uint64_t lost;
        struct {
                event_log_listener listener; /* NULL: free */
                void *userdata;
        } listeners[LISTENERS_MAX];
};

int event_log_new(struct event_log **ret_log)
{
        struct event_log *log = calloc(1, sizeof(*log));

        if (!log)
                return -ENOMEM;
        *ret_log = log;
        return 0;
}

struct event_log *event_log_free(struct event_log *log)
{
        if (!log)
                return NULL;
        for (size_t i = 0; i < EVENTS_MAX; i++)
                json_decref(log->events[i]);
        free(log);
        return NULL;
}

static json_t *event_new(uint64_t number, const char *policy, const char *reason, const char *message)
{
        char time[TIMESTAMP_TEXT_MAX];

        timestamp_format(now_realtime_ns(), time);
        return json_pack("{s:I, s:s, s:s?, s:s, s:s}", "seq", (json_int_t)number, "time", time, "policy", policy, "reason", reason,
                         "message", message);
}

/* JSON is UTF-8; a message may quote the name of a process, which is any bytes. */
static void replace_non_ascii(char *text)
{
        for (; *text; text++)
                if ((unsigned char)*text >= 0x80)
                        *text = '?';
}

void event_log_add(struct event_log *log, const char *policy, const char *reason, const char *format, ...)
{
        _cleanup_(freep) char *message = NULL;
        json_t **place = &log->events[(log->newest + 1) % EVENTS_MAX];
        json_t *event = NULL;
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&message, format, arguments) < 0)
                message = NULL;
        va_end(arguments);

        if (message)
                event = event_new(log->newest + 1, policy, reason, message);
        if (message && !event) {
                replace_non_ascii(message);
                event = event_new(log->newest + 1, policy, reason, message);
        }
        if (!event) {
                log->lost++;
                return;
        }

        json_decref(*place);
        *place = event;
        log->newest++;
        for (size_t i = 0; i < LISTENERS_MAX; i++)
                if (log->listeners[i].listener)
                        log->listeners[i].listener(log->listeners[i].userdata);
}

const json_t *event_log_next(const struct event_log *log, uint64_t after)
{
        uint64_t forgotten = log->newest > EVENTS_MAX ? log->newest - EVENTS_MAX : 0;

        after = MAX(after, forgotten);
        return after < log->newest ? log->events[(after + 1) % EVENTS_MAX] : NULL;
}

json_t *event_log_list(const struct event_log *log, uint64_t after)
{
        json_t *list = json_array();
        const json_t *event;

        while (list && (event = event_log_next(log, after))) {
                if (json_array_append(list, (json_t *)event) < 0) {
                        json_decref(list);
                        return NULL;
                }
                after = (uint64_t)json_integer_value(json_object_get(event, "seq"));
        }
        return list;
}

uint64_t event_log_newest(const struct event_log *log)
{
        return log->newest;
}

uint64_t event_log_lost(const struct event_log *log)
{
        return log->lost;
}

int event_log_listen(struct event_log *log, event_log_listener listener, void *userdata)
{
        for (size_t i = 0; i < LISTENERS_MAX; i++)
                if (!log->listeners[i].listener) {
                        log->listeners[i].listener = listener;
                        log->listeners[i].userdata = userdata;
                        return 0;
                }
        return -ENOSPC;
}

void event_log_unlisten(struct event_log *log, event_log_listener listener, void *userdata)
{
        for (size_t i = 0; i < LISTENERS_MAX; i++)
                if (log->listeners[i].listener == listener && log->listeners[i].userdata == userdata)
                        log->listeners[i].listener = NULL;
}
