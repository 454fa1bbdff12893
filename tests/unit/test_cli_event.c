/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli_harness.h"

static void on_list(struct http_request *request, void *userdata)
{
        struct harness *harness = userdata;

        http_reply_json(request, 200, json_pack("{s:o}", "events", event_log_list(harness->log, 0)));
}

static void on_stream(struct http_request *request, void *userdata)
{
        struct harness *harness = userdata;
        const char *after = http_request_query(request, "after");

        http_reply_event_stream(request, harness->log, after ? strtoull(after, NULL, 10) : 0);
}

static const struct http_route routes[] = {
        { "GET", "/v1/events", on_list },
        { "GET", "/v1/events/stream", on_stream },
        { NULL, NULL, NULL },
};

static void following_begins_with_the_last_ten_and_ends_on_ctrl_c(void **state)
{
        struct harness *harness = *state;
        _cleanup_(run_freep) struct run *run = NULL;

        for (int i = 1; i <= 15; i++)
                event_log_add(harness->log, "web", "Woken", "event %d", i);
        run = run_start(harness, "event follow");
        run_serve(harness, run, "event 15\n");
        event_log_add(harness->log, NULL, "Reloaded", "2 policies");
        run_serve(harness, run, "  -  Reloaded  2 policies\n");
        kill(run->pid, SIGINT);
        run_end(harness, run);

        assert_int_equal(run->status, 0);
        assert_string_equal(run->errors.text, "");
        assert_null(strstr(run->output.text, "event 5\n"));
        assert_non_null(strstr(run->output.text, "  web  Woken  event 6\n"));
}

static void programs_get_one_object_a_line(void **state)
{
        struct harness *harness = *state;
        _cleanup_(run_freep) struct run *run = run_start(harness, "-j event follow");
        _cleanup_(json_decrefp) json_t *event = NULL;

        event_log_add(harness->log, "web", "Woken", "first");
        run_serve(harness, run, "\n");
        kill(run->pid, SIGTERM);
        run_end(harness, run);

        assert_int_equal(run->status, 0);
        event = json_loads(run->output.text, JSON_DISABLE_EOF_CHECK, NULL);
        assert_true(json_equal(event, event_log_next(harness->log, 0)));
}

static struct run *follow_one_event(struct harness *harness)
{
        struct run *run;

        event_log_add(harness->log, "web", "Woken", "first");
        run = run_start(harness, "event follow");
        run_serve(harness, run, "first\n");
        return run;
}

static void following_ends_when_its_reader_has_gone(void **state)
{
        struct harness *harness = *state;
        _cleanup_(run_freep) struct run *run = follow_one_event(harness);

        run->output.fd = close_fd(run->output.fd); /* as "| head -1" does; no further event comes */
        run_end(harness, run);

        assert_int_equal(run->status, 0);
        assert_string_equal(run->errors.text, "");
}

static void the_end_of_the_daemon_is_an_error(void **state)
{
        struct harness *harness = *state;
        _cleanup_(run_freep) struct run *run = follow_one_event(harness);

        harness->server = http_server_free(harness->server);
        run_end(harness, run);

        assert_int_equal(run->status, 1);
        assert_string_equal(run->errors.text, "lull: lulld ended the stream of events; it was stopped or restarted\n");
}

static void what_upsets_a_terminal_is_not_printed(void **state)
{
        struct harness *harness = *state;
        _cleanup_(run_freep) struct run *run = NULL;

        event_log_add(harness->log, "web", "Woken",
                      "by \033[2Jcurl \xc2\x9b"
                      "2J \xc3\xa9");
        run = run_start(harness, "event follow");
        run_serve(harness, run, "by ?[2Jcurl ??2J \xc3\xa9\n");
        kill(run->pid, SIGINT);
        run_end(harness, run);
        assert_int_equal(run->status, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_SERVER(following_begins_with_the_last_ten_and_ends_on_ctrl_c, routes),
                WITH_SERVER(programs_get_one_object_a_line, routes),
                WITH_SERVER(following_ends_when_its_reader_has_gone, routes),
                WITH_SERVER(the_end_of_the_daemon_is_an_error, routes),
                WITH_SERVER(what_upsets_a_terminal_is_not_printed, routes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
