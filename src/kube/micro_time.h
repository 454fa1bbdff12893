/* SPDX-License-Identifier: Apache-2.0 */
/* The API's MicroTime (meta/v1): RFC 3339 in UTC with exactly six digits after the second, else the server refuses it. */
#pragma once

#include <stdint.h>

enum { MICRO_TIME_TEXT_MAX = 40 };

/* "2026-01-31T12:00:00.250000Z". Returns @buffer. */
char *micro_time_format(uint64_t realtime_us, char buffer[static MICRO_TIME_TEXT_MAX]);
