/* SPDX-License-Identifier: Apache-2.0 */
/* A target as the controller has it: says what becomes of it, and scales it.
 *
 *   scale KUBECONFIG NAMESPACE API-VERSION KIND NAME
 *
 * Each change is a JSON line with "event": "state". Lines on standard input: "scale REPLICAS"; the answer is a line with
 * "event": "scaled". Its end ends the program.
 */
#include <jansson.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/macros.h"
#include "controller/target.h"

enum { ARGUMENTS = 6 };

struct scale {
        sd_event *event;
        struct kube_client *client;
        struct targets *targets;
        struct target *target;
};

static void print(json_t *line)
{
        _cleanup_(freep) char *text = json_dumps(line, JSON_COMPACT);

        puts(text ? text : "{}");
        fflush(stdout);
        json_decref(line);
}

static void on_changed(struct target *target, void *userdata)
{
        struct target_state state;

        target_read(target, &state);
        print(json_pack("{s:s, s:b, s:b, s:b, s:i, s:i, s:O?, s:b, s:s, s:s?, s:s?}", "event", "state", "known", state.known,
                        "stale", state.stale, "exists", state.exists, "replicas", (int)state.replicas, "ready", (int)state.ready,
                        "labels", state.pod_labels, "partial", state.labels_partial, "selector", state.selector, "failure",
                        state.failure, "problem", state.problem));
}

static void on_scaled(const struct kube_reply *reply, void *userdata)
{
        print(json_pack("{s:s, s:i, s:i, s:s}", "event", "scaled", "error", reply->error, "code", (int)reply->status.code,
                        "message", reply->status.message));
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct scale *scale = userdata;
        char text[256], *line, *rest = text;
        ssize_t length = read(fd, text, sizeof(text) - 1);
        int r = 0;

        if (length <= 0)
                return sd_event_exit(scale->event, 0);
        text[length] = '\0';
        while (r >= 0 && (line = strsep(&rest, "\n")))
                if (strncmp(line, "scale ", 6) == 0)
                        r = target_scale(scale->target, (uint32_t)atoi(line + 6), on_scaled, scale);
        return r;
}

static int run(struct scale *scale, const struct kube_config *config, const char *namespace,
               const struct target_reference *reference)
{
        int r = sd_event_default(&scale->event);

        if (r >= 0)
                r = sd_event_add_io(scale->event, NULL, STDIN_FILENO, EPOLLIN, on_input, scale);
        if (r >= 0)
                r = kube_client_new(scale->event, config, &scale->client);
        if (r >= 0)
                r = targets_new(scale->client, on_changed, &scale->targets);
        if (r >= 0)
                r = target_new(scale->targets, namespace, reference, scale, &scale->target);
        if (r >= 0)
                r = sd_event_loop(scale->event);
        target_free(scale->target);
        targets_free(scale->targets);
        kube_client_free(scale->client);
        sd_event_unref(scale->event);
        return r;
}

int main(int argc, char **argv)
{
        _cleanup_(kube_config_freep) struct kube_config *config = NULL;
        char error[KUBE_CONFIG_ERROR_MAX];
        struct scale scale = { 0 };

        if (argc != ARGUMENTS) {
                fputs("usage: scale KUBECONFIG NAMESPACE API-VERSION KIND NAME\n", stderr);
                return 2;
        }
        if (kube_config_load_file(argv[1], NULL, &config, error) < 0) {
                fprintf(stderr, "%s\n", error);
                return 1;
        }
        return run(&scale, config, argv[2], &(struct target_reference){ argv[3], argv[4], argv[5] }) < 0;
}
