/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <string.h>

enum { LINE_MAX_BYTES = 2048 };

static int wants_debug(void)
{
        const char *value = getenv("LULL_DEBUG");

        return value && strcmp(value, "1") == 0;
}

void log_line(int priority, const char *format, ...)
{
        char line[LINE_MAX_BYTES];
        va_list arguments;
        int saved = errno;

        if (priority == LOG_DEBUG && !wants_debug())
                return;

        va_start(arguments, format);
        vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);

        if (getenv("JOURNAL_STREAM"))
                fprintf(stderr, "<%d>%s\n", priority, line);
        else
                fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
        errno = saved;
}
