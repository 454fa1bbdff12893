/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the driver calls of one cgroup as lulld does, for benchmarks and by hand: watch CGROUP [always] [uprobe-multi|perf]. Answers
 * every line on stdin with a line of JSON: "arm" and "disarm" do that, and all are answered by a reading. With "always" no event is
 * heeded, so that probes stay on however many calls there are. */
#include <jansson.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/macros.h"
#include "gpu/calls.h"

struct watch {
        sd_event *event;
        struct gpu_workload *workload;
};

static json_t *reading_json(const struct gpu_calls_reading *reading)
{
        return json_pack("{s:I, s:I, s:I, s:I, s:i, s:s, s:I, s:I, s:i, s:i, s:i, s:s}", "now", (json_int_t)reading->read_ns,
                         "submissions", (json_int_t)reading->submissions, "waits", (json_int_t)reading->waits, "last",
                         (json_int_t)reading->last_submission_ns, "waiting", (int)reading->waiting, "coverage",
                         gpu_coverage_to_string(reading->coverage), "covered_since", (json_int_t)reading->covered_since_ns,
                         "quiet_since", (json_int_t)reading->quiet_since_ns, "users", (int)reading->users, "libraries",
                         (int)reading->libraries, "slow", (int)reading->slow, "reason", reading->reason);
}

static void answer(struct watch *watch, const char *command)
{
        struct gpu_calls_reading reading;
        json_t *json;
        int r = 0;

        if (strcmp(command, "arm") == 0)
                r = gpu_calls_arm(watch->workload);
        else if (strcmp(command, "disarm") == 0)
                gpu_calls_disarm(watch->workload);
        if (r >= 0)
                r = gpu_calls_read(watch->workload, &reading);
        json = r < 0 ? json_pack("{s:s}", "error", strerror(-r)) : reading_json(&reading);
        json_dumpf(json, stdout, 0);
        putchar('\n');
        fflush(stdout);
        json_decref(json);
}

static int take_line(struct watch *watch)
{
        char line[64];

        if (!fgets(line, sizeof(line), stdin))
                return 0;
        line[strcspn(line, "\n")] = '\0';
        answer(watch, line);
        return 1;
}

/* One line at a time: whoever asks waits for the answer. */
static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct watch *watch = userdata;

        return take_line(watch) ? 0 : sd_event_exit(watch->event, 0);
}

static int follow(struct watch *watch)
{
        int r = sd_event_add_io(watch->event, NULL, STDIN_FILENO, EPOLLIN, on_input, watch);

        return r < 0 ? r : sd_event_loop(watch->event);
}

int main(int argc, char **argv)
{
        const struct gpu_calls_callbacks callbacks = {};
        bool always = argc > 2 && strcmp(argv[2], "always") == 0;
        const char *method = argc > 2 + always ? argv[2 + always] : NULL;
        struct watch watch = {};
        struct gpu_calls *calls = NULL;
        int r = argc < 2 ? -EINVAL : sd_event_new(&watch.event);

        if (r >= 0)
                r = gpu_calls_new(watch.event, &callbacks, method, &calls);
        if (r >= 0)
                r = gpu_workload_new(calls, argv[1], NULL, &watch.workload);
        if (r < 0) {
                fprintf(stderr, "watch: %s\n", strerror(-r));
                return 1;
        }
        puts("ready");
        fflush(stdout);
        while (always && take_line(&watch))
                ;
        if (!always)
                follow(&watch);
        gpu_workload_free(watch.workload);
        gpu_calls_free(calls);
        sd_event_unref(watch.event);
        return 0;
}
