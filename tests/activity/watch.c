/* SPDX-License-Identifier: Apache-2.0 */
/* Watches one cgroup as lulld does, for tests: activity-watch BPFFS NAME CGROUP [tcp/ADDRESS:PORT ...]. Answers every line on stdin with
 * a line of JSON: "prober CGROUP" takes that for the kubelet's, "keep" ends like a daemon that is to be followed by another, any other
 * line asks for a snapshot. At the end of stdin it detaches. */
#include <jansson.h>
#include <string.h>

#include "activity/activity.h"
#include "base/time.h"

static json_t *snapshot_json(const struct workload_snapshot *snapshot)
{
        char remote[ENDPOINT_TEXT_MAX] = "";

        if (snapshot->open_requests)
                endpoint_format(&snapshot->oldest_request.remote, snapshot->oldest_request.remote_port, remote);
        return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:s, s:s, s:i}", "untracked",
                         (json_int_t)snapshot->untracked_ns, "now", (json_int_t)snapshot->read_ns, "last",
                         (json_int_t)snapshot->last_ns, "received", (json_int_t)snapshot->received_bytes, "sent",
                         (json_int_t)snapshot->sent_bytes, "accepted", (json_int_t)snapshot->connections_total, "connections",
                         (int)snapshot->connections, "outbound", (int)snapshot->outbound, "open", (int)snapshot->open_requests,
                         "oldest", remote, "protocol", snapshot->open_requests ? snapshot->oldest_request.protocol : "",
                         "millicores", (int)snapshot->cpu_millicores);
}

static json_t *answer_to(struct activity *activity, struct workload *workload, char *line)
{
        struct workload_snapshot snapshot;
        int r;

        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "prober ", strlen("prober ")) == 0) {
                r = activity_watch_prober(activity, line + strlen("prober "));
                return r < 0 ? json_pack("{s:s}", "error", strerror(-r)) : json_object();
        }
        r = workload_read(workload, now_monotonic_ns(), &snapshot);
        return r < 0 ? json_pack("{s:s}", "error", strerror(-r)) : snapshot_json(&snapshot);
}

/* Returns whether everything is to stay for the next daemon. */
static bool watch(struct activity *activity, struct workload *workload)
{
        char line[512];

        while (fgets(line, sizeof(line), stdin)) {
                json_t *json;

                if (strcmp(line, "keep\n") == 0)
                        return true;
                json = answer_to(activity, workload, line);
                json_dumpf(json, stdout, 0);
                putchar('\n');
                fflush(stdout);
                json_decref(json);
        }
        return false;
}

int main(int argc, char **argv)
{
        struct activity_callbacks callbacks = { 0 };
        struct workload_port ports[POLICY_FRONTENDS_MAX];
        struct policy policy = { .idle = { .after_ns = 60 * NSEC_PER_SEC, .request_timeout_ns = 1800 * NSEC_PER_SEC } };
        struct workload_settings settings = { .policy = &policy, .ports = ports };
        struct activity *activity;
        struct workload *workload;
        sd_event *event;
        bool keep;
        int r;

        if (argc < 4 || argc - 4 > POLICY_FRONTENDS_MAX) {
                fprintf(stderr, "usage: activity-watch BPFFS NAME CGROUP [FRONTEND ...]\n");
                return EXIT_FAILURE;
        }
        settings.name = argv[2];
        for (int i = 4; i < argc; i++) {
                struct frontend frontend;

                if (frontend_parse(argv[i], &frontend) < 0) {
                        fprintf(stderr, "activity-watch: %s is not a frontend\n", argv[i]);
                        return EXIT_FAILURE;
                }
                ports[settings.n_ports++] = (struct workload_port){ .port = frontend.port, .protocol = frontend.protocol };
        }

        if (sd_event_default(&event) < 0 || activity_new(event, argv[1], &callbacks, &activity) < 0)
                return EXIT_FAILURE;
        r = workload_new(activity, &settings, argv[3], NULL, &workload);
        if (r < 0) {
                fprintf(stderr, "activity-watch: cannot watch %s: %s\n", argv[3], strerror(-r));
                return EXIT_FAILURE;
        }
        puts("{}");
        fflush(stdout);
        keep = watch(activity, workload);

        workload_free(workload, keep);
        activity_free(activity, keep);
        sd_event_unref(event);
        return EXIT_SUCCESS;
}
