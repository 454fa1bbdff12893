/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/micro_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define USEC_PER_SEC UINT64_C(1000000)

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
