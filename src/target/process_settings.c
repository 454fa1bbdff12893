/* SPDX-License-Identifier: Apache-2.0 */
#include "target/process_settings.h"

#include <string.h>

static char **strings_free(char **strings)
{
        for (size_t i = 0; strings && strings[i]; i++)
                free(strings[i]);
        free(strings);
        return NULL;
}

static char **strings_copy(char *const *strings)
{
        size_t n = 0;
        char **copy;

        while (strings[n])
                n++;
        copy = calloc(n + 1, sizeof(*copy));
        for (size_t i = 0; copy && i < n; i++) {
                copy[i] = strdup(strings[i]);
                if (!copy[i])
                        return strings_free(copy);
        }
        return copy;
}

void process_settings_done(struct process_settings *settings)
{
        strings_free(settings->command);
        strings_free(settings->environment);
        free(settings->working_directory);
        free(settings->user);
}

static int copy_optional(const char *text, char **ret_copy)
{
        char *copy = text ? strdup(text) : NULL;

        if (text && !copy)
                return -ENOMEM;
        *ret_copy = copy;
        return 0;
}

int process_settings_copy(const struct process_settings *settings, struct process_settings *ret_copy)
{
        struct process_settings copy = { .stop_signal = settings->stop_signal, .stop_timeout_ns = settings->stop_timeout_ns };

        copy.command = strings_copy(settings->command);
        copy.environment = strings_copy(settings->environment);
        if (!copy.command || !copy.environment || copy_optional(settings->working_directory, &copy.working_directory) < 0 ||
            copy_optional(settings->user, &copy.user) < 0) {
                process_settings_done(&copy);
                return -ENOMEM;
        }
        *ret_copy = copy;
        return 0;
}
