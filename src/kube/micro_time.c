/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/micro_time.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define USEC_PER_SEC UINT64_C(1000000)
#define SECONDS_MAX (INT64_MAX / 1000000000) /* in the year 2262: nanoseconds still fit */

char *micro_time_format(uint64_t realtime_us, char buffer[static MICRO_TIME_TEXT_MAX])
{
        time_t seconds = (time_t)(realtime_us / USEC_PER_SEC);
        struct tm utc;
        size_t length;

        gmtime_r(&seconds, &utc);
        length = strftime(buffer, MICRO_TIME_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &utc);
        snprintf(buffer + length, MICRO_TIME_TEXT_MAX - length, ".%06" PRIu64 "Z", realtime_us % USEC_PER_SEC);
        return buffer;
}

/* ".250": microseconds, further digits left out. Without a fraction *text stays. */
static int fraction_parse(const char **text, uint64_t *ret_us)
{
        uint64_t us = 0, weight = USEC_PER_SEC / 10;
        const char *p = *text;

        if (*p == '.') {
                if (!isdigit((unsigned char)p[1]))
                        return -EINVAL;
                for (p++; isdigit((unsigned char)*p); p++, weight /= 10)
                        us += weight * (uint64_t)(*p - '0');
        }
        *text = p;
        *ret_us = us;
        return 0;
}

/* "Z", "+01:00" */
static int offset_parse(const char *text, long *ret_seconds)
{
        unsigned hours, minutes;
        int length = 0;

        if (strcmp(text, "Z") == 0) {
                *ret_seconds = 0;
                return 0;
        }
        if ((*text != '+' && *text != '-') || sscanf(text + 1, "%2u:%2u%n", &hours, &minutes, &length) != 2 || length != 5 ||
            text[1 + length] || hours > 23 || minutes > 59)
                return -EINVAL;
        *ret_seconds = (*text == '-' ? -1 : 1) * (long)(hours * 3600 + minutes * 60);
        return 0;
}

int micro_time_parse(const char *text, uint64_t *ret_realtime_us)
{
        const char *rest;
        struct tm utc = { 0 };
        uint64_t us;
        long offset;
        time_t seconds;

        if (strlen(text) >= MICRO_TIME_TEXT_MAX)
                return -EINVAL;
        rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
        if (!rest || fraction_parse(&rest, &us) < 0 || offset_parse(rest, &offset) < 0)
                return -EINVAL;

        seconds = timegm(&utc) - offset;
        if (seconds < 0 || (uint64_t)seconds > SECONDS_MAX)
                return -EINVAL;
        *ret_realtime_us = (uint64_t)seconds * USEC_PER_SEC + us;
        return 0;
}
