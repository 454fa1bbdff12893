/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/why.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "base/time.h"

enum { MOMENT_TEXT_MAX = 40 };

struct story {
        FILE *out;
        const json_t *policy;
        double since, now; /* seconds since 1970: when the phase began, and when the object was made */
};

static const char *text_of(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));

        return text && *text ? text : NULL;
}

static double number_of(const json_t *object, const char *name)
{
        return json_number_value(json_object_get(object, name));
}

static bool text_is(const json_t *object, const char *name, const char *expected)
{
        const char *text = text_of(object, name);

        return text && strcmp(text, expected) == 0;
}

static char *seconds_format(double seconds, char buffer[static DURATION_TEXT_MAX])
{
        return duration_format(seconds > 0 ? (uint64_t)(seconds * 1e9 + 0.5) : 0, buffer);
}

/* Reads "2026-01-31T12:00:00.250Z". Returns -1 for other text. */
static double moment_parse(const char *text)
{
        struct tm utc = { 0 };
        double seconds;

        if (!text || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%lfZ", &utc.tm_year, &utc.tm_mon, &utc.tm_mday, &utc.tm_hour, &utc.tm_min,
                            &seconds) != 6)
                return -1;
        utc.tm_year -= 1900;
        utc.tm_mon -= 1;
        return (double)timegm(&utc) + seconds;
}

/* "12:00:03 UTC", with the date where it is not today's. */
static char *moment_format(const struct story *story, double moment, char buffer[static MOMENT_TEXT_MAX])
{
        time_t seconds = (time_t)moment, now = (time_t)story->now;
        struct tm utc, today;

        gmtime_r(&seconds, &utc);
        gmtime_r(&now, &today);
        strftime(buffer, MOMENT_TEXT_MAX,
                 utc.tm_year == today.tm_year && utc.tm_yday == today.tm_yday ? "%H:%M:%S UTC" : "%Y-%m-%d %H:%M:%S UTC", &utc);
        return buffer;
}

static void tell_listen(const struct story *story)
{
        const json_t *listen = json_object_get(story->policy, "listen"), *frontend;
        size_t n = json_array_size(listen), i;

        json_array_foreach((json_t *)listen, i, frontend)
                fprintf(story->out, "%s%s", i == 0 ? "" : i == n - 1 ? " or " : ", ", json_string_value(frontend));
}

static void tell_phase(const struct story *story)
{
        char moment[MOMENT_TEXT_MAX], duration[DURATION_TEXT_MAX];

        fprintf(story->out, "%s is %s since %s (%s)%s.", text_of(story->policy, "name"), text_of(story->policy, "phase"),
                moment_format(story, story->since, moment), seconds_format(story->now - story->since, duration),
                json_is_true(json_object_get(story->policy, "dry_run")) ? ", in a dry run" : "");
}

/* "a packet from 192.0.2.7:40000 (curl, pid 4242, /user.slice) to tcp/192.0.2.1:8080" */
static void tell_packet(const struct story *story, const json_t *wake)
{
        const char *flow = text_of(wake, "flow"), *process = text_of(wake, "process"), *cgroup = text_of(wake, "cgroup");
        const char *destination = flow ? strstr(flow, " > ") : NULL, *separator = " (";
        json_int_t pid = json_integer_value(json_object_get(wake, "pid"));

        fprintf(story->out, "packet");
        if (text_of(wake, "source"))
                fprintf(story->out, " from %s", text_of(wake, "source"));
        if (process) {
                fprintf(story->out, "%s%s", separator, process);
                separator = ", ";
        }
        if (pid > 0) {
                fprintf(story->out, "%spid %lld", separator, (long long)pid);
                separator = ", ";
        }
        if (cgroup) {
                fprintf(story->out, "%s%s", separator, cgroup);
                separator = ", ";
        }
        if (*separator == ',')
                fprintf(story->out, ")");
        if (destination)
                fprintf(story->out, " to %.*s/%s", (int)strcspn(flow, " "), flow, destination + strlen(" > "));
}

/* Tenths of a millisecond up to ten seconds: the phases of a wake lie close together. */
static void tell_short_duration(const struct story *story, double seconds)
{
        char duration[DURATION_TEXT_MAX];
        uint64_t tenths = (uint64_t)(MAX(seconds, 0.0) * 10000 + 0.5);

        if (tenths >= 100000)
                fprintf(story->out, "%s", seconds_format(seconds, duration));
        else if (tenths % 10)
                fprintf(story->out, "%llu.%llums", (unsigned long long)tenths / 10, (unsigned long long)tenths % 10);
        else
                fprintf(story->out, "%llums", (unsigned long long)tenths / 10);
}

static void tell_wake_phases(const struct story *story, const json_t *wake)
{
        static const struct {
                const char *name, *words;
        } phases[] = {
                { "requested", "requested" }, { "started", "started" },
                { "ready", "listening" },     { "released", "first packet released" },
                { "answered", "answered" },
        };
        const json_t *times = json_object_get(wake, "phases");
        bool first = true;

        for (size_t i = 0; i < ELEMENTSOF(phases); i++) {
                if (!json_is_number(json_object_get(times, phases[i].name)))
                        continue;
                fprintf(story->out, "%s%s %s", first ? ": " : ", ", phases[i].words, first ? "after " : "");
                tell_short_duration(story, number_of(times, phases[i].name));
                first = false;
        }
}

/* When the wake began, unless the beginning of the phase says it already. */
static void tell_wake_moment(const struct story *story, const json_t *wake)
{
        char moment[MOMENT_TEXT_MAX], since[MOMENT_TEXT_MAX];
        double begun = moment_parse(text_of(wake, "time"));

        if (begun < 0)
                return;
        moment_format(story, begun, moment);
        if (strcmp(moment, moment_format(story, story->since, since)) != 0)
                fprintf(story->out, " at %s", moment);
}

static void tell_wake(const struct story *story)
{
        const json_t *wake = json_object_get(story->policy, "last_wake");

        if (text_is(wake, "cause", "packet")) {
                fprintf(story->out, " A ");
                tell_packet(story, wake);
                fprintf(story->out, " woke it");
        } else if (text_is(wake, "cause", "operator")) {
                fprintf(story->out, " An operator woke it");
        } else if (text_is(wake, "cause", "started")) {
                fprintf(story->out, " Somebody else started it");
        } else {
                return;
        }
        tell_wake_moment(story, wake);
        tell_wake_phases(story, wake);
        fprintf(story->out, ".");
}

static void tell_earlier_wake(const struct story *story)
{
        const json_t *wake = json_object_get(story->policy, "last_wake");
        const json_t *answered = json_object_get(json_object_get(wake, "phases"), "answered");
        double moment = moment_parse(text_of(wake, "time"));
        char buffer[MOMENT_TEXT_MAX];

        if (moment < 0)
                return;
        fprintf(story->out, " It was last woken at %s by ", moment_format(story, moment, buffer));
        if (text_is(wake, "cause", "packet")) {
                fprintf(story->out, "a ");
                tell_packet(story, wake);
        } else {
                fprintf(story->out, "%s", text_is(wake, "cause", "operator") ? "an operator" : "somebody else");
        }
        if (json_is_number(answered)) {
                fprintf(story->out, ", answered after ");
                tell_short_duration(story, json_number_value(answered));
        }
        fprintf(story->out, ".");
}

static void tell_sleep(const struct story *story)
{
        const json_t *sleep = json_object_get(story->policy, "last_sleep");
        const char *reason = text_of(sleep, "reason");

        if (!json_is_object(sleep)) {
                if (!json_is_object(json_object_get(story->policy, "last_wake")))
                        fprintf(story->out, " Nobody has asked for it since lulld started.");
                return;
        }
        if (text_is(sleep, "cause", "operator"))
                fprintf(story->out, " An operator put it to sleep");
        else if (text_is(sleep, "cause", "exited"))
                fprintf(story->out, " Its process ended by itself");
        else
                fprintf(story->out, " It was put to sleep");
        if (reason)
                fprintf(story->out, ": %s", reason);
        if (json_is_number(json_object_get(sleep, "stop_seconds"))) {
                fprintf(story->out, "; stopping it took ");
                tell_short_duration(story, number_of(sleep, "stop_seconds"));
        }
        fprintf(story->out, ".");
}

static void tell_earlier_sleep(const struct story *story)
{
        const json_t *sleep = json_object_get(story->policy, "last_sleep");
        double from = moment_parse(text_of(sleep, "time"));
        double to = moment_parse(text_of(json_object_get(story->policy, "last_wake"), "time"));
        char from_text[MOMENT_TEXT_MAX], to_text[MOMENT_TEXT_MAX], duration[DURATION_TEXT_MAX];

        if (from < 0 || to < from)
                return;
        fprintf(story->out, " Before that it slept from %s to %s (%s)", moment_format(story, from, from_text),
                moment_format(story, to, to_text), seconds_format(to - from, duration));
        if (text_of(sleep, "reason"))
                fprintf(story->out, ": %s", text_of(sleep, "reason"));
        fprintf(story->out, ".");
}

static void tell_required(const struct story *story, const json_t *idle)
{
        char duration[DURATION_TEXT_MAX];
        double factor = number_of(idle, "factor");

        fprintf(story->out, "%s without activity", seconds_format(number_of(idle, "required_seconds"), duration));
        if (factor > 1)
                fprintf(story->out, " (%g times idle.after, because a client that the sleep cut off woke it again at once)",
                        factor);
}

/* In how many seconds an idle policy is put to sleep if nothing happens; 0 where that is not known. */
static double sleeps_in(const json_t *idle)
{
        if (json_is_number(json_object_get(idle, "sleeps_in_seconds")))
                return number_of(idle, "sleeps_in_seconds");
        return MAX(number_of(idle, "required_seconds") - number_of(idle, "idle_seconds"), 0.0);
}

static void tell_idle(const struct story *story)
{
        const json_t *idle = json_object_get(story->policy, "idle");
        const char *verdict = text_of(idle, "verdict"), *reason = text_of(idle, "reason");
        bool dry_run = json_is_true(json_object_get(story->policy, "dry_run"));
        char duration[DURATION_TEXT_MAX];

        if (!verdict)
                return;
        if (strcmp(verdict, "unknown") == 0) {
                fprintf(story->out, " Whether it is idle cannot be known%s%s, so it stays awake.", reason ? ": " : "",
                        reason ? reason : "");
                return;
        }

        fprintf(story->out, " It is %s%s%s; ", verdict, reason ? ": " : "", reason ? reason : "");
        if (dry_run) {
                fprintf(story->out, "in a dry run it is never put to sleep, else it would be after ");
                tell_required(story, idle);
        } else if (strcmp(verdict, "idle") == 0 && sleeps_in(idle) > 0) {
                fprintf(story->out, "unless something moves it sleeps in %s", seconds_format(sleeps_in(idle), duration));
        } else {
                fprintf(story->out, "it sleeps after ");
                tell_required(story, idle);
        }
        fprintf(story->out, ".");
}

static void tell_conditions(const struct story *story)
{
        const json_t *condition;
        size_t i;

        json_array_foreach(json_object_get(story->policy, "conditions"), i, condition) {
                const char *type = text_of(condition, "type"), *reason = text_of(condition, "reason");
                const char *message = text_of(condition, "message");
                double since = moment_parse(text_of(condition, "since"));
                char buffer[MOMENT_TEXT_MAX];

                if (!type)
                        continue;
                fprintf(story->out, " Condition %s", type);
                if (since >= 0)
                        fprintf(story->out, " since %s", moment_format(story, since, buffer));
                if (reason)
                        fprintf(story->out, " (%s)", reason);
                fprintf(story->out, "%s%s.", message ? ": " : "", message ? message : "");
        }
}

static void tell_awake(const struct story *story)
{
        tell_wake(story);
        tell_idle(story);
        tell_earlier_sleep(story);
        tell_conditions(story);
}

static void tell_sleeping(const struct story *story)
{
        const char *reason = text_of(json_object_get(story->policy, "idle"), "reason");

        fprintf(story->out, " It is about to be put to sleep%s%s; a packet or any activity before it stops keeps it awake.",
                reason ? ": " : "", reason ? reason : "");
        tell_earlier_wake(story);
        tell_conditions(story);
}

static void tell_asleep(const struct story *story)
{
        tell_sleep(story);
        tell_earlier_wake(story);
        tell_conditions(story);
        fprintf(story->out, " The next packet to ");
        tell_listen(story);
        fprintf(story->out, " wakes it.");
}

static void tell_waking(const struct story *story)
{
        const json_t *target = json_object_get(story->policy, "target"), *held = json_object_get(story->policy, "held");
        json_int_t parked = json_integer_value(json_object_get(held, "parked"));
        json_int_t pid = json_integer_value(json_object_get(target, "pid"));

        tell_wake(story);
        if (text_is(target, "state", "delayed"))
                fprintf(story->out, " Its process keeps exiting, so the next start is delayed.");
        else if (pid > 0)
                fprintf(story->out, " Its process runs (pid %lld).", (long long)pid);
        if (json_is_false(json_object_get(held, "holding"))) {
                fprintf(story->out, " After the failed wake nothing is held for a while: clients are refused until it is ready.");
        } else {
                fprintf(story->out, " Until something listens on ");
                tell_listen(story);
                fprintf(story->out, ", first packets are held: %lld now.", (long long)parked);
        }
        tell_earlier_sleep(story);
        tell_conditions(story);
}

static void tell(const struct story *story)
{
        static const struct {
                const char *phase;
                void (*tell)(const struct story *story);
        } phases[] = {
                { "Awake", tell_awake },
                { "Sleeping", tell_sleeping },
                { "Asleep", tell_asleep },
                { "Waking", tell_waking },
        };

        tell_phase(story);
        for (size_t i = 0; i < ELEMENTSOF(phases); i++)
                if (text_is(story->policy, "phase", phases[i].phase))
                        phases[i].tell(story);
}

int why_text(const json_t *policy, char **ret_text)
{
        struct story story = { .policy = policy, .since = moment_parse(text_of(policy, "since")) };
        _cleanup_(freep) char *text = NULL;
        size_t length;

        if (story.since < 0 || !json_is_number(json_object_get(policy, "since_seconds")) || !text_of(policy, "name") ||
            !text_of(policy, "phase"))
                return -EINVAL;
        story.now = story.since + number_of(policy, "since_seconds");

        story.out = open_memstream(&text, &length);
        if (!story.out)
                return -errno;
        tell(&story);
        if (fclose(story.out) == EOF)
                return -ENOMEM;

        *ret_text = TAKE_PTR(text);
        return 0;
}
