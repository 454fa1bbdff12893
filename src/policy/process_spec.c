/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/spec_fields.h"

#include <ctype.h>
#include <pwd.h>
#include <string.h>

#include "base/time.h"
#include "policy/policy.h"

static int read_kind(struct reader *reader, const struct value *value, void *userdata)
{
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;
        if (strcmp(text, "Process") != 0)
                return reader_refuse(reader, value,
                                     "is not a kind of target here; write Process (other kinds are only on Kubernetes)");
        return 1;
}

/* Counts @text against the bound of its list. Returns 1, 0 after noting that it is over, or -ENOMEM. */
static int strings_account(struct reader *reader, const struct value *list, const char *text, size_t *bytes)
{
        *bytes += strlen(text) + 1;
        if (*bytes > SPEC_STRINGS_BYTES_MAX)
                return reader_problem(reader, list, "is too long; at most %d bytes in all are possible", SPEC_STRINGS_BYTES_MAX);
        return 1;
}

static int read_command(struct reader *reader, const struct value *value, void *userdata)
{
        struct process_settings *process = &((struct policy *)userdata)->process;
        size_t n, bytes = 0;
        const char *text;
        int r;

        r = reader_list(reader, value, SPEC_STRINGS_MAX, &n);
        if (r <= 0)
                return r;
        if (n == 0)
                return reader_problem(reader, value,
                                      "is empty; write the program and its arguments, like [/usr/bin/server, --port, 8080]");

        process->command = calloc(n + 1, sizeof(char *));
        if (!process->command)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct value item = reader_item(reader, value, i);

                r = reader_text(reader, &item, &text);
                if (r > 0)
                        r = strings_account(reader, value, text, &bytes);
                if (r <= 0)
                        return r;
                if (i == 0 && *text == '\0')
                        return reader_refuse(reader, &item, "is not a program to run");
                process->command[i] = strdup(text);
                if (!process->command[i])
                        return -ENOMEM;
        }
        return 1;
}

static int read_working_directory(struct reader *reader, const struct value *value, void *userdata)
{
        struct process_settings *process = &((struct policy *)userdata)->process;
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;
        if (*text != '/')
                return reader_refuse(reader, value, "is not an absolute path; begin it with /");

        process->working_directory = strdup(text);
        return process->working_directory ? 1 : -ENOMEM;
}

static bool environment_has(char *const *environment, const char *name)
{
        size_t length = strlen(name);

        for (; *environment; environment++)
                if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
                        return true;
        return false;
}

static int read_variable(struct reader *reader, const struct value *key, const struct value *value, char **environment, size_t n,
                         size_t *bytes)
{
        const char *name, *text;
        int r;

        r = reader_text(reader, key, &name);
        if (r <= 0)
                return r;
        if (*name == '\0' || strchr(name, '='))
                return reader_refuse(reader, key, "is not the name of a variable; it must not be empty or have a \"=\" in it");
        if (environment_has(environment, name))
                return reader_problem(reader, key, "given twice; remove one of the two");

        r = reader_text(reader, value, &text);
        if (r > 0)
                r = strings_account(reader, value->parent, name, bytes);
        if (r > 0)
                r = strings_account(reader, value->parent, text, bytes);
        if (r <= 0)
                return r;

        if (asprintf(&environment[n], "%s=%s", name, text) < 0) {
                environment[n] = NULL; /* undefined after a failure */
                return -ENOMEM;
        }
        return 1;
}

static int read_environment(struct reader *reader, const struct value *value, void *userdata)
{
        struct process_settings *process = &((struct policy *)userdata)->process;
        struct value key, variable;
        size_t n, bytes = 0;
        int r;

        if (value->node->type != YAML_MAPPING_NODE)
                return reader_refuse(reader, value, "is not a mapping; write each variable as NAME: VALUE");
        for (n = 0; reader_pair(reader, value, n, &key, &variable); n++)
                ;
        if (n > SPEC_STRINGS_MAX)
                return reader_problem(reader, value, "has %zu variables; at most %d are possible", n, SPEC_STRINGS_MAX);

        process->environment = calloc(n + 1, sizeof(char *));
        if (!process->environment)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                reader_pair(reader, value, i, &key, &variable);
                r = read_variable(reader, &key, &variable, process->environment, i, &bytes);
                if (r <= 0)
                        return r;
        }
        return 1;
}

static int read_user(struct reader *reader, const struct value *value, void *userdata)
{
        struct process_settings *process = &((struct policy *)userdata)->process;
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;
        if (!getpwnam(text))
                return reader_refuse(reader, value, "is not a user of this machine; write the name of one, like nobody");

        process->user = strdup(text);
        return process->user ? 1 : -ENOMEM;
}

/* "SIGTERM", "SIGRTMIN+3". */
static int signal_parse(const char *text, int *ret_signal)
{
        if (strncmp(text, "SIG", 3) != 0)
                return -EINVAL;
        text += 3;

        for (int signal = 1; signal < SIGRTMIN; signal++) {
                const char *name = sigabbrev_np(signal);

                if (name && strcmp(name, text) == 0) {
                        *ret_signal = signal;
                        return 0;
                }
        }

        if (strncmp(text, "RTMIN+", 6) == 0 && isdigit((unsigned char)text[6]) && strlen(text) <= 8) {
                int signal = SIGRTMIN + atoi(text + 6);

                if (signal <= SIGRTMAX && strspn(text + 6, "0123456789") == strlen(text + 6)) {
                        *ret_signal = signal;
                        return 0;
                }
        }
        return -EINVAL;
}

static int read_stop_signal(struct reader *reader, const struct value *value, void *userdata)
{
        struct process_settings *process = &((struct policy *)userdata)->process;
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;
        if (signal_parse(text, &process->stop_signal) < 0)
                return reader_refuse(reader, value, "is not the name of a signal; write it like SIGTERM or SIGINT");
        return 1;
}

const struct field process_fields[] = {
        { .name = "kind", .read = read_kind, .required = "write kind: Process" },
        { .name = "command",
          .type = FIELD_LIST,
          .max = SPEC_STRINGS_MAX,
          .read = read_command,
          .required = "write the program and its arguments, like [/usr/bin/server, --port, 8080]" },
        { .name = "workingDirectory", .read = read_working_directory },
        { .name = "environment", .type = FIELD_MAPPING, .read = read_environment },
        { .name = "user", .read = read_user },
        { .name = "stopSignal", .read = read_stop_signal },
        { .name = "stopTimeout",
          .type = FIELD_DURATION,
          .max = 3600 * NSEC_PER_SEC,
          FIELD_OF(struct policy, process.stop_timeout_ns) },
        { .name = "apiVersion", .place = FIELD_IN_CLUSTER, .elsewhere = "a target is given by kind: Process and its command" },
        { .name = "name", .place = FIELD_IN_CLUSTER, .elsewhere = "a target is given by kind: Process and its command" },
        { 0 },
};
