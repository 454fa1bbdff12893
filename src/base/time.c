/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

struct unit {
        const char *suffix;
        uint64_t ns;
};

/* "ms" before "m": the longer suffix must match first. */
static const struct unit units[] = {
        { "ns", 1 },
        { "us", NSEC_PER_USEC },
        { "\xc2\xb5s", NSEC_PER_USEC }, /* the micro sign */
        { "\xce\xbcs", NSEC_PER_USEC }, /* the letter mu */
        { "ms", NSEC_PER_MSEC },
        { "s", NSEC_PER_SEC },
        { "m", 60 * NSEC_PER_SEC },
        { "h", 3600 * NSEC_PER_SEC },
};

static uint64_t clock_ns(clockid_t clock)
{
        struct timespec time;

        clock_gettime(clock, &time);
        return (uint64_t)time.tv_sec * NSEC_PER_SEC + (uint64_t)time.tv_nsec;
}

uint64_t now_monotonic_ns(void)
{
        return clock_ns(CLOCK_MONOTONIC);
}

uint64_t now_realtime_ns(void)
{
        return clock_ns(CLOCK_REALTIME);
}

static const struct unit *unit_match(const char *text)
{
        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                if (strncmp(text, units[i].suffix, strlen(units[i].suffix)) == 0)
                        return &units[i];
        return NULL;
}

/* Reads "12", "1.5" or ".5" as a whole part and billionths, so that no binary fraction is involved. */
static int number_parse(const char **text, uint64_t *ret_whole, uint64_t *ret_billionths)
{
        uint64_t whole = 0, billionths = 0, weight = 100000000;
        const char *p = *text;
        bool digits = false;

        for (; isdigit((unsigned char)*p); p++, digits = true)
                if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
                        return -ERANGE;

        if (*p == '.')
                for (p++; isdigit((unsigned char)*p); p++, digits = true) {
                        billionths += weight * (uint64_t)(*p - '0');
                        weight /= 10;
                }

        if (!digits)
                return -EINVAL;

        *text = p;
        *ret_whole = whole;
        *ret_billionths = billionths;
        return 0;
}

static int term_parse(const char **text, uint64_t *total)
{
        uint64_t whole, billionths, ns, fraction;
        const struct unit *unit;
        int r;

        r = number_parse(text, &whole, &billionths);
        if (r < 0)
                return r;

        unit = unit_match(*text);
        if (!unit)
                return -EINVAL;
        *text += strlen(unit->suffix);

        fraction = (uint64_t)((unsigned __int128)billionths * unit->ns / NSEC_PER_SEC);
        if (__builtin_mul_overflow(whole, unit->ns, &ns) || __builtin_add_overflow(ns, fraction, &ns))
                return -ERANGE;
        if (__builtin_add_overflow(*total, ns, total) || *total > INT64_MAX)
                return -ERANGE;
        return 0;
}

int duration_parse(const char *text, uint64_t *ret_ns)
{
        uint64_t total = 0;
        int r;

        if (strcmp(text, "0") == 0) {
                *ret_ns = 0;
                return 0;
        }
        if (*text == '\0')
                return -EINVAL;

        while (*text) {
                r = term_parse(&text, &total);
                if (r < 0)
                        return r;
        }

        *ret_ns = total;
        return 0;
}

static char *format_two_units(uint64_t ns, char *buffer, const char *big, uint64_t big_ns, const char *small, uint64_t small_ns)
{
        uint64_t rest = ns % big_ns / small_ns;

        if (rest)
                snprintf(buffer, DURATION_TEXT_MAX, "%" PRIu64 "%s%" PRIu64 "%s", ns / big_ns, big, rest, small);
        else
                snprintf(buffer, DURATION_TEXT_MAX, "%" PRIu64 "%s", ns / big_ns, big);
        return buffer;
}

/* One decimal below 100, none above, and no trailing ".0". */
static char *format_one_unit(uint64_t ns, char *buffer, const char *suffix, uint64_t unit_ns)
{
        uint64_t tenths = (ns * 10 + unit_ns / 2) / unit_ns;

        if (tenths < 1000 && tenths % 10)
                snprintf(buffer, DURATION_TEXT_MAX, "%" PRIu64 ".%" PRIu64 "%s", tenths / 10, tenths % 10, suffix);
        else
                snprintf(buffer, DURATION_TEXT_MAX, "%" PRIu64 "%s", (ns + unit_ns / 2) / unit_ns, suffix);
        return buffer;
}

char *duration_format(uint64_t ns, char buffer[static DURATION_TEXT_MAX])
{
        if (ns >= 24 * 3600 * NSEC_PER_SEC)
                return format_two_units(ns, buffer, "d", 24 * 3600 * NSEC_PER_SEC, "h", 3600 * NSEC_PER_SEC);
        if (ns >= 3600 * NSEC_PER_SEC)
                return format_two_units(ns, buffer, "h", 3600 * NSEC_PER_SEC, "m", 60 * NSEC_PER_SEC);
        if (ns >= 60 * NSEC_PER_SEC)
                return format_two_units(ns, buffer, "m", 60 * NSEC_PER_SEC, "s", NSEC_PER_SEC);
        /* What would be rounded to 1000 of the smaller unit is 1 of the larger. */
        if (ns >= NSEC_PER_SEC - NSEC_PER_MSEC / 2)
                return format_one_unit(ns, buffer, "s", NSEC_PER_SEC);
        if (ns >= NSEC_PER_MSEC - NSEC_PER_USEC / 2)
                return format_one_unit(ns, buffer, "ms", NSEC_PER_MSEC);
        if (ns >= NSEC_PER_USEC)
                return format_one_unit(ns, buffer, "us", NSEC_PER_USEC);
        if (ns == 0)
                return strcpy(buffer, "0s");
        snprintf(buffer, DURATION_TEXT_MAX, "%" PRIu64 "ns", ns);
        return buffer;
}

char *timestamp_format(uint64_t realtime_ns, char buffer[static TIMESTAMP_TEXT_MAX])
{
        time_t seconds = (time_t)(realtime_ns / NSEC_PER_SEC);
        struct tm utc;
        size_t length;

        gmtime_r(&seconds, &utc);
        length = strftime(buffer, TIMESTAMP_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &utc);
        snprintf(buffer + length, TIMESTAMP_TEXT_MAX - length, ".%03" PRIu64 "Z", realtime_ns % NSEC_PER_SEC / NSEC_PER_MSEC);
        return buffer;
}
