/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines on stderr.
 *
 * A line is "lulld: message". Where stderr is the journal's socket (JOURNAL_STREAM is set) the line starts with a syslog priority
 * like "<4>" instead, which the journal takes off. Debug lines appear only with LULL_DEBUG=1 in the environment. A function
 * either logs or returns its error; the caller with the context logs once.
 */
#pragma once

#include <stdint.h>
#include <syslog.h>

#include "base/macros.h"

void log_line(int priority, const char *format, ...) _printf_(2, 3);

#define log_error(...) log_line(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
