/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/printable.h"
#include "cli/usage.h"

enum { EXIT_USAGE = 2 };

static const char default_socket[] = "/run/lull/control.sock";

static const struct option long_options[] = {
        { "json", no_argument, NULL, 'j' },    { "pretty", no_argument, NULL, 'p' }, { "socket", required_argument, NULL, 's' },
        { "version", no_argument, NULL, 'V' }, { "help", no_argument, NULL, 'h' },   { NULL, 0, NULL, 0 },
};

int cli_fail(struct cli *cli, int error, const char *format, ...)
{
        va_list arguments;

        if (cli->error)
                return error;
        va_start(arguments, format);
        if (vasprintf(&cli->error, format, arguments) < 0)
                cli->error = NULL;
        va_end(arguments);
        if (cli->error)
                make_printable(cli->error);
        return error;
}

/* What was printed must have arrived; a reader that has seen enough is fine. */
static int finish_output(struct cli *cli)
{
        errno = 0;
        if (fflush(stdout) == 0 && !ferror(stdout))
                return 0;
        return errno == EPIPE ? 0 : cli_fail(cli, -EIO, "cannot write the output: %s", strerror(errno ? errno : EIO));
}

static int run(struct cli *cli, const struct command *command, char **arguments)
{
        int r;

        r = command->run(cli, arguments);
        if (r == 0)
                r = finish_output(cli);
        if (r < 0)
                fprintf(stderr, "lull: %s\n", cli->error ? cli->error : strerror(-r));
        free(cli->error);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int dispatch(struct cli *cli, char **words)
{
        const struct object *object;
        const struct command *command;
        char **arguments;

        if (!words[0]) {
                usage_print(stderr);
                return EXIT_USAGE;
        }
        if (strcmp(words[0], "help") == 0) {
                usage_print(stdout);
                return EXIT_SUCCESS;
        }
        object = usage_find_object(words[0]);
        if (!object)
                return EXIT_USAGE;
        if (words[1] && strcmp(words[1], "help") == 0) {
                usage_print_object(object, stdout);
                return EXIT_SUCCESS;
        }
        command = usage_find_command(object, words + 1, &arguments);
        if (!command || !usage_check(cli, object, command, arguments))
                return EXIT_USAGE;
        return run(cli, command, arguments);
}

int main(int argc, char **argv)
{
        struct cli cli = { .socket = getenv("LULL_SOCKET") };
        int option;

        signal(SIGPIPE, SIG_IGN); /* writing fails with EPIPE instead */
        if (!cli.socket || !*cli.socket)
                cli.socket = default_socket;

        while ((option = getopt_long(argc, argv, "+:jps:Vh", long_options, NULL)) >= 0)
                switch (option) {
                case 'j':
                        cli.output = OUTPUT_JSON;
                        break;
                case 'p':
                        cli.output = OUTPUT_PRETTY;
                        break;
                case 's':
                        cli.socket = optarg;
                        break;
                case 'V':
                        puts("lull " LULL_VERSION);
                        return EXIT_SUCCESS;
                case 'h':
                        usage_print(stdout);
                        return EXIT_SUCCESS;
                default:
                        usage_wrong_option(option, optopt, argv[optind - 1]);
                        return EXIT_USAGE;
                }
        return dispatch(&cli, argv + optind);
}
