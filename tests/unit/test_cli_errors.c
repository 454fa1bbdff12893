/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cli_harness.h"

static void on_status(struct http_request *request, void *userdata)
{
        http_reply_json(request, 200, json_pack("{s:s}", "version", "0.1.0"));
}

static void on_odd(struct http_request *request, void *userdata)
{
        http_reply_text(request, 200, "application/json", strdup("{nonsense\n"));
}

static void on_broken(struct http_request *request, void *userdata)
{
        http_reply_text(request, 500, "text/plain", strdup("it broke\nin two\n"));
}

static const struct http_route routes[] = {
        { "GET", "/v1/status", on_status },
        { "GET", "/v1/held", on_odd },
        { "GET", "/v1/maps", on_broken },
        { NULL, NULL, NULL },
};

static void assert_fails(const struct harness *harness, const char *line, int status, const char *message)
{
        _cleanup_(run_freep) struct run *run = run_lull(harness, line);

        assert_string_equal(run->errors.text, message);
        assert_string_equal(run->output.text, "");
        assert_int_equal(run->status, status);
}

static void wrong_words_exit_with_2_and_name_the_right_ones(void **state)
{
        static const struct {
                const char *line, *message;
        } cases[] = {
                { "polcy list", "lull: \"polcy\" is not an object (\"lull help\" lists them); did you mean \"policy\"?\n" },
                { "pol list", "lull: \"pol\" is not an object (\"lull help\" lists them)\n" },
                { "policy lsit",
                  "lull: \"lsit\" is not a command of policy (\"lull policy help\" lists them); did you mean \"list\"?\n" },
                { "policy", "lull: which command? lull policy {list | show NAME | why NAME | wake NAME | sleep NAME}\n" },
                { "policy show", "lull: NAME missing: lull policy show NAME\n" },
                { "policy show web blog", "lull: \"blog\" is one word too many for policy show\n" },
                { "policy list -j", "lull: options come before the object: lull -j policy\n" },
                { "status -j", "lull: options come before the object: lull -j status\n" },
                { "-x status", "lull: -x is not an option (\"lull help\" lists them)\n" },
                { "--jsno status", "lull: --jsno is not an option (\"lull help\" lists them)\n" },
                { "-s", "lull: -s needs a value (\"lull help\" tells more)\n" },
                { "-j metrics", "lull: metrics has no JSON form\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_fails(*state, cases[i].line, 2, cases[i].message);
}

static void no_words_at_all_print_the_usage_on_stderr(void **state)
{
        _cleanup_(run_freep) struct run *run = run_lull(*state, "");

        assert_int_equal(run->status, 2);
        assert_string_equal(run->output.text, "");
        assert_int_equal(strncmp(run->errors.text, "Usage: lull [OPTIONS] OBJECT {COMMAND | help}\n", 46), 0);
}

static void requested_help_goes_to_stdout(void **state)
{
        static const struct {
                const char *line, *contains;
        } cases[] = {
                { "help", "  policy   list | show NAME | why NAME | wake NAME | sleep NAME\n" },
                { "--help", "  event    list | follow\n" },
                { "policy help", "Usage: lull [OPTIONS] policy {list | show NAME" },
                { "status help", "Usage: lull [OPTIONS] status [show | help]\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(run_freep) struct run *run = run_lull(*state, cases[i].line);

                assert_int_equal(run->status, 0);
                assert_string_equal(run->errors.text, "");
                if (!strstr(run->output.text, cases[i].contains))
                        fail_msg("%s printed %s", cases[i].line, run->output.text);
        }
}

static void without_a_daemon_it_says_how_to_start_one(void **state)
{
        struct harness *harness = *state;
        char message[256];

        harness->server = http_server_free(harness->server); /* the socket stays: nobody listens */
        snprintf(message, sizeof(message),
                 "lull: lulld is not running: nobody listens on %s (start it with \"systemctl start lulld\")\n", harness->socket);
        assert_fails(harness, "status", 1, message);

        unlink(harness->socket);
        snprintf(message, sizeof(message),
                 "lull: lulld is not running: no socket at %s (start it with \"systemctl start lulld\")\n", harness->socket);
        assert_fails(harness, "-j status", 1, message);
        assert_fails(harness, "event follow", 1, message);
}

static void the_socket_is_an_option_before_it_is_the_environment(void **state)
{
        struct harness *harness = *state;
        _cleanup_(run_freep) struct run *run = NULL;
        char line[128];

        assert_int_equal(setenv("LULL_SOCKET", "/nonexistent/control.sock", 1), 0);
        assert_fails(
                harness, "status", 1,
                "lull: lulld is not running: no socket at /nonexistent/control.sock (start it with \"systemctl start lulld\")\n");
        snprintf(line, sizeof(line), "-j --socket %s status", harness->socket);
        run = run_lull(harness, line);
        assert_string_equal(run->output.text, "{\"version\":\"0.1.0\"}\n");
}

/* Nothing is forbidden to root, so the command runs as somebody else. */
static void whoever_may_not_use_the_socket_is_told_who_may(void **state)
{
        struct harness *harness = *state;
        _cleanup_(run_freep) struct run *run = NULL;

        harness->user = geteuid() == 0 ? 65534 : 0;
        assert_int_equal(chmod(harness->directory, 0755), 0);
        assert_int_equal(chmod(harness->socket, geteuid() == 0 ? 0600 : 0), 0);
        run = run_lull(harness, "status");

        assert_int_equal(run->status, 1);
        assert_non_null(strstr(run->errors.text, "/control.sock is only for "));
        assert_non_null(strstr(run->errors.text, "; try \"sudo lull\"\n"));
}

static void odd_answers_are_errors(void **state)
{
        assert_fails(*state, "hold list", 1, "lull: lulld's answer is no JSON: string or '}' expected near 'nonsense'\n");
        assert_fails(*state, "map list", 1, "lull: lulld answered with status 500: it broke\n");
        assert_fails(*state, "prog list", 1, "lull: there is no /v1/programs here\n");
}

static void output_that_cannot_be_written_is_an_error(void **state)
{
        struct harness *harness = *state;
        _cleanup_(run_freep) struct run *run = NULL;

        harness->stdout_path = "/dev/full";
        run = run_lull(harness, "status");
        assert_int_equal(run->status, 1);
        assert_string_equal(run->errors.text, "lull: cannot write the output: No space left on device\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_SERVER(wrong_words_exit_with_2_and_name_the_right_ones, routes),
                WITH_SERVER(no_words_at_all_print_the_usage_on_stderr, routes),
                WITH_SERVER(requested_help_goes_to_stdout, routes),
                WITH_SERVER(without_a_daemon_it_says_how_to_start_one, routes),
                WITH_SERVER(the_socket_is_an_option_before_it_is_the_environment, routes),
                WITH_SERVER(whoever_may_not_use_the_socket_is_told_who_may, routes),
                WITH_SERVER(odd_answers_are_errors, routes),
                WITH_SERVER(output_that_cannot_be_written_is_an_error, routes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
