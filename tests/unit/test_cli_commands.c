/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli_harness.h"

#define STATUS                                                                                                                     \
        "{\"version\":\"0.1.0\",\"role\":\"standalone\",\"pid\":4711,\"uptime_seconds\":302.5,"                                    \
        "\"policies\":{\"Awake\":1,\"Sleeping\":0,\"Asleep\":2,\"Waking\":0},\"hold\":{\"attached\":true,\"parked\":3},"           \
        "\"configuration_errors\":[\"web.yaml:7: spec.idle.after: \\\"5 minutes\\\" is not a duration\"]}"
#define WEB                                                                                                                               \
        "{\"name\":\"web\",\"origin\":\"/etc/lull/policies.d/web.yaml:1\",\"phase\":\"Awake\",\"since\":\"2026-01-31T12:00:00.250Z\","    \
        "\"since_seconds\":12.5,\"dry_run\":false,\"listen\":[\"tcp/0.0.0.0:8080\",\"tcp/0.0.0.0:8443\"],"                                \
        "\"target\":{\"kind\":\"Process\",\"state\":\"running\",\"pid\":77,\"command\":[\"python3\",\"-m\",\"http.server\"],"             \
        "\"cgroup\":\"/sys/fs/cgroup/lull/web\"},"                                                                                        \
        "\"idle\":{\"verdict\":\"idle\",\"reason\":\"no activity for 2.5s\",\"idle_seconds\":2.5,\"required_seconds\":300.0,"             \
        "\"factor\":1},"                                                                                                                  \
        "\"activity\":{\"connections\":1,\"outbound\":0,\"open_requests\":0,\"received_bytes\":1234,\"sent_bytes\":5678,"                 \
        "\"connections_total\":9,\"cpu_cores\":0.01},"                                                                                    \
        "\"gpu\":{\"devices\":2,\"open\":1,\"state\":\"quiet\",\"reason\":\"nothing for 2m\"},\"held\":{\"holding\":false,\"parked\":0}," \
        "\"last_wake\":{\"time\":\"2026-01-31T11:59:59.750Z\",\"cause\":\"packet\",\"source\":\"192.0.2.7:40000\","                       \
        "\"phases\":{\"ready\":0.2101}},"                                                                                                 \
        "\"last_sleep\":{\"time\":\"2026-01-31T11:50:00.250Z\",\"cause\":\"idle\",\"reason\":\"no activity for 5m2s\"},"                  \
        "\"conditions\":[]}"
#define DNS                                                                                                                        \
        "{\"name\":\"dns\",\"phase\":\"Asleep\",\"since_seconds\":3600,\"listen\":[\"udp/[::]:53\"],\"idle\":null,"                \
        "\"held\":{\"parked\":3},\"conditions\":[{\"type\":\"WakeFailed\"},{\"type\":\"Flapping\"}]}"
#define WHY_TEXT                                                                                                                   \
        "web is Awake since 12:00:00 UTC (12.5s). A packet from 192.0.2.7:40000 (cu\033l, pid 4242, /user.slice) to "              \
        "tcp/192.0.2.1:8080 woke it: requested after 0.2ms, started 1.2ms."

static const struct {
        const char *path, *answer;
} answers[] = {
        { "/v1/status", STATUS },
        { "/v1/policies", "{\"policies\":[" WEB "," DNS "]}" },
        { "/v1/held",
          "{\"packets\":[{\"policy\":\"web\",\"flow\":\"tcp 192.0.2.7:40000 > 192.0.2.1:8080\",\"packets\":1,\"bytes\":60,"
          "\"age_seconds\":0.1,\"state\":\"parked\"}]}" },
        { "/v1/events", "{\"events\":[{\"seq\":1,\"time\":\"2026-01-31T12:00:00.250Z\",\"policy\":\"web\",\"reason\":\"Woken\","
                        "\"message\":\"by \\u001b[31mcurl\"},{\"seq\":2,\"time\":\"2026-01-31T12:00:01.250Z\",\"policy\":null,"
                        "\"reason\":\"Reloaded\",\"message\":\"2 policies\"}]}" },
        { "/v1/programs",
          "{\"programs\":[{\"name\":\"hold_prerouting\",\"type\":\"netfilter\",\"attach\":\"ipv4 prerouting\",\"attached\":true,"
          "\"id\":12,\"run_count\":4,\"run_time_seconds\":0.000002},{\"name\":\"inject\",\"type\":\"sched_cls\",\"attach\":null,"
          "\"attached\":false,\"id\":13,\"run_count\":0,\"run_time_seconds\":0}]}" },
        { "/v1/maps", "{\"maps\":[{\"name\":\"frontends\",\"type\":\"hash\",\"entries\":2,\"max_entries\":16384},"
                      "{\"name\":\"events\",\"type\":\"ringbuf\",\"entries\":null,\"max_entries\":2097152}]}" },
};

static void on_list(struct http_request *request, void *userdata)
{
        size_t index = 0;

        while (strcmp(answers[index].path + strlen("/v1/"), http_request_segment(request, 0)) != 0)
                if (++index == ELEMENTSOF(answers)) {
                        http_reply_error(request, 404, "no such list");
                        return;
                }
        http_reply_json(request, 200, json_loads(answers[index].answer, 0, NULL));
}

static bool knows(struct http_request *request)
{
        const char *name = http_request_segment(request, 0);

        if (strcmp(name, "web") == 0)
                return true;
        http_reply_error(request, 404, "no policy is called \"%s\"", name);
        return false;
}

static void on_policy(struct http_request *request, void *userdata)
{
        if (knows(request))
                http_reply_json(request, 200, json_loads(WEB, 0, NULL));
}

static void on_why(struct http_request *request, void *userdata)
{
        if (knows(request))
                http_reply_json(request, 200, json_pack("{s:s, s:s, s:s}", "name", "web", "phase", "Awake", "text", WHY_TEXT));
}

static void on_wake(struct http_request *request, void *userdata)
{
        if (knows(request))
                http_reply_error(request, 409, "policy \"web\": it is awake already");
}

static void on_sleep(struct http_request *request, void *userdata)
{
        if (knows(request))
                http_reply_json(request, 200,
                                json_pack("{s:s, s:s, s:s}", "name", "web", "phase", "Sleeping", "message", "going to sleep"));
}

static void on_metrics(struct http_request *request, void *userdata)
{
        http_reply_text(request, 200, "text/plain", strdup("lull_hold_attached 1\n"));
}

static const struct http_route routes[] = {
        { "GET", "/v1/{}", on_list },
        { "GET", "/v1/policies/{}", on_policy },
        { "GET", "/v1/policies/{}/why", on_why },
        { "POST", "/v1/policies/{}/wake", on_wake },
        { "POST", "/v1/policies/{}/sleep", on_sleep },
        { "GET", "/metrics", on_metrics },
        { NULL, NULL, NULL },
};

struct expectation {
        const char *line;
        const char *output;
};

static void people_get_aligned_text(void **state)
{
        static const struct expectation expectations[] = {
                { "status", "daemon    lulld 0.1.0, standalone, pid 4711, up 5m2s\n"
                            "policies  3: 1 awake, 0 sleeping, 2 asleep, 0 waking\n"
                            "holding   hooks attached; parked packets: 3\n"
                            "\n"
                            "Policies left out because of errors:\n"
                            "  web.yaml:7: spec.idle.after: \"5 minutes\" is not a duration\n" },
                { "policy list", "NAME  PHASE   FOR    ACTIVITY       PARKED  LISTEN               CONDITIONS\n"
                                 "web   Awake   12.5s  idle for 2.5s  0       tcp/0.0.0.0:8080 +1  -\n"
                                 "dns   Asleep  1h     -              3       udp/[::]:53          WakeFailed +1\n" },
                { "policy show web", "policy      web\n"
                                     "  from      /etc/lull/policies.d/web.yaml:1\n"
                                     "phase       Awake since 2026-01-31T12:00:00.250Z (12.5s)\n"
                                     "listen      tcp/0.0.0.0:8080, tcp/0.0.0.0:8443\n"
                                     "target      Process, running, pid 77\n"
                                     "  command   python3 -m http.server\n"
                                     "  cgroup    /sys/fs/cgroup/lull/web\n"
                                     "idle        idle: no activity for 2.5s; sleeps after 5m\n"
                                     "activity    connections: 1 served, 0 outbound; open requests: 0\n"
                                     "  in all    connections: 9; bytes: 1234 received, 5678 sent\n"
                                     "  CPU       0.01 cores\n"
                                     "GPU         quiet: nothing for 2m; devices: 2, open: 1\n"
                                     "held        parked packets: 0\n"
                                     "last wake   2026-01-31T11:59:59.750Z, by packet from 192.0.2.7:40000, ready after 210ms\n"
                                     "last sleep  2026-01-31T11:50:00.250Z, idle: no activity for 5m2s\n" },
                { "policy why web", "web is Awake since 12:00:00 UTC (12.5s). A packet from 192.0.2.7:40000 (cu?l,\n"
                                    "pid 4242, /user.slice) to tcp/192.0.2.1:8080 woke it: requested after 0.2ms,\n"
                                    "started 1.2ms.\n" },
                { "policy sleep web", "web is Sleeping: going to sleep\n" },
                { "hold list", "POLICY  FLOW                                  PACKETS  BYTES  AGE    STATE\n"
                               "web     tcp 192.0.2.7:40000 > 192.0.2.1:8080  1        60     100ms  parked\n" },
                { "event list", "TIME                      POLICY  REASON    MESSAGE\n"
                                "2026-01-31T12:00:00.250Z  web     Woken     by ?[31mcurl\n"
                                "2026-01-31T12:00:01.250Z  -       Reloaded  2 policies\n" },
                { "prog list", "ID  NAME             TYPE       ATTACH           ATTACHED  RUNS  TIME/RUN\n"
                               "12  hold_prerouting  netfilter  ipv4 prerouting  yes       4     500ns\n"
                               "13  inject           sched_cls  -                no        0     -\n" },
                { "map list", "NAME       TYPE     ENTRIES  MAX\n"
                              "frontends  hash     2        16384\n"
                              "events     ringbuf  -        2097152\n" },
                { "metrics", "lull_hold_attached 1\n" },
                { "version", "lull   " LULL_VERSION "\nlulld  0.1.0\n" },
                { "-V", "lull " LULL_VERSION "\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(expectations); i++) {
                _cleanup_(run_freep) struct run *run = run_lull(*state, expectations[i].line);

                assert_string_equal(run->errors.text, "");
                assert_string_equal(run->output.text, expectations[i].output);
                assert_int_equal(run->status, 0);
        }
}

static void programs_get_the_daemons_json_on_one_line_or_indented(void **state)
{
        static const struct {
                const char *words;
                size_t answer; /* index in answers */
        } cases[] = {
                { "status", 0 },     { "policy list", 1 }, { "hold list", 2 },
                { "event list", 3 }, { "prog list", 4 },   { "map list", 5 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                static const char *const options[] = { "-j", "--pretty" };
                _cleanup_(json_decrefp) json_t *expected = json_loads(answers[cases[i].answer].answer, 0, NULL);

                for (size_t j = 0; j < ELEMENTSOF(options); j++) {
                        _cleanup_(run_freep) struct run *run = NULL;
                        _cleanup_(json_decrefp) json_t *found = NULL;
                        char line[64];

                        snprintf(line, sizeof(line), "%s %s", options[j], cases[i].words);
                        run = run_lull(*state, line);
                        assert_int_equal(run->status, 0);
                        found = json_loads(run->output.text, 0, NULL);
                        assert_true(json_equal(found, expected));
                        /* one line, or many */
                        assert_int_equal(strchr(run->output.text, '\n') == run->output.text + run->output.length - 1, j == 0);
                }
        }
}

static void numbers_keep_their_form_in_json(void **state)
{
        _cleanup_(run_freep) struct run *run = run_lull(*state, "-j policy show web");

        assert_non_null(strstr(run->output.text, "\"ready\":0.2101}"));
        assert_string_equal(run->output.text, WEB "\n");
}

static void what_the_daemon_refuses_is_said_on_stderr_in_every_form(void **state)
{
        static const struct expectation expectations[] = {
                { "policy show nobody", "lull: no policy is called \"nobody\"\n" },
                { "-j policy why nobody", "lull: no policy is called \"nobody\"\n" },
                { "-p policy sleep nobody", "lull: no policy is called \"nobody\"\n" },
                { "policy wake web", "lull: policy \"web\": it is awake already\n" },
                { "policy show ..", "lull: no policy is called \"..\"\n" },
                { "policy show a/b", "lull: no policy is called \"a/b\"\n" },
                { "policy show a?b%20", "lull: no policy is called \"a?b%20\"\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(expectations); i++) {
                _cleanup_(run_freep) struct run *run = run_lull(*state, expectations[i].line);

                assert_string_equal(run->errors.text, expectations[i].output);
                assert_string_equal(run->output.text, "");
                assert_int_equal(run->status, 1);
        }
}

static void features_are_probed_as_root_without_a_daemon(void **state)
{
        struct harness *harness = *state;
        _cleanup_(run_freep) struct run *run = NULL;
        _cleanup_(json_decrefp) json_t *answer = NULL;

        harness->server = http_server_free(harness->server);
        run = run_lull(harness, "-j feature probe");
        if (geteuid() != 0) {
                assert_int_equal(run->status, 1);
                return;
        }
        assert_int_equal(run->status, 0);
        answer = json_loads(run->output.text, 0, NULL);
        assert_true(json_array_size(json_object_get(answer, "features")) > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_SERVER(people_get_aligned_text, routes),
                WITH_SERVER(programs_get_the_daemons_json_on_one_line_or_indented, routes),
                WITH_SERVER(numbers_keep_their_form_in_json, routes),
                WITH_SERVER(what_the_daemon_refuses_is_said_on_stderr_in_every_form, routes),
                WITH_SERVER(features_are_probed_as_root_without_a_daemon, routes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
