/* SPDX-License-Identifier: Apache-2.0 */
/* The API's MicroTime (meta/v1): RFC 3339 in UTC with exactly six digits after the second, else the server refuses it. Read are its Time
 * too, which has no fraction, and any other of RFC 3339. */
#pragma once

#include <stdint.h>

enum { MICRO_TIME_TEXT_MAX = 40 };

/* "2026-01-31T12:00:00.250000Z". Returns @buffer. */
char *micro_time_format(uint64_t realtime_us, char buffer[static MICRO_TIME_TEXT_MAX]);
/* Returns 0, or -EINVAL for what is no time after 1969. */
int micro_time_parse(const char *text, uint64_t *ret_realtime_us);
