/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks and durations.
 *
 * Durations and everything compared with a kernel time stamp are CLOCK_MONOTONIC nanoseconds (what bpf_ktime_get_ns() returns);
 * wall-clock time is for people only. Durations are written as in Kubernetes: "1m30s", "500ms", "1.5h", "0".
 */
#pragma once

#include <stdint.h>

#include "base/macros.h"

#define NSEC_PER_USEC UINT64_C(1000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_SEC UINT64_C(1000000000)

enum {
        DURATION_TEXT_MAX = 32, /* bytes that duration_format() needs at most, the NUL counted */
        TIMESTAMP_TEXT_MAX = 32,
};

uint64_t now_monotonic_ns(void);
uint64_t now_realtime_ns(void);

/* Reads a duration of at most 292 years. Returns 0, -EINVAL for text that is none, or -ERANGE. */
int duration_parse(const char *text, uint64_t *ret_ns);

/* Writes @ns for people, in at most two units: "1m30s", "250ms", "7.6ms", "85us". Returns @buffer. */
char *duration_format(uint64_t ns, char buffer[static DURATION_TEXT_MAX]);

/* Writes a wall-clock time as RFC 3339 in UTC with milliseconds: "2026-01-31T12:00:00.250Z". Returns @buffer. */
char *timestamp_format(uint64_t realtime_ns, char buffer[static TIMESTAMP_TEXT_MAX]);
