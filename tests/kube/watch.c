/* SPDX-License-Identifier: Apache-2.0 */
/* Watches one collection and prints what becomes of the view, a JSON object a line.
 *
 *   watch KUBECONFIG PATH [RESOURCE]
 *
 * Lines on standard input are commands: "counters", "client", "view", "get PATH", "patch PATH BODY" (a wake's merge patch), "quit".
 */
#include <jansson.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/macros.h"
#include "base/time.h"
#include "kube/reflector.h"

struct watch {
        sd_event *event;
        struct kube_client *client;
        struct kube_reflector *reflector;
        bool without_watch_list;
};

struct asked {
        char *command;
        uint64_t at_ns;
};

static void print(json_t *line)
{
        _cleanup_(freep) char *text = json_dumps(line, JSON_COMPACT);

        puts(text ? text : "{}");
        fflush(stdout);
        json_decref(line);
}

static double now_seconds(void)
{
        return (double)now_monotonic_ns() / (double)NSEC_PER_SEC;
}

static int on_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        const char *version = json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion"));

        if (json_is_true(json_object_get(object, "unreadable")))
                return -EBADMSG;
        *ret_value = strdup(version);
        return *ret_value ? 0 : -ENOMEM;
}

static void on_release(void *value, void *userdata)
{
        free(value);
}

static void on_added(const char *key, void *value, void *userdata)
{
        print(json_pack("{s:s,s:s,s:s}", "event", "added", "key", key, "version", value));
}

static void on_modified(const char *key, void *old, void *value, void *userdata)
{
        print(json_pack("{s:s,s:s,s:s,s:s}", "event", "modified", "key", key, "old", old, "version", value));
}

static void on_deleted(const char *key, void *value, void *userdata)
{
        print(json_pack("{s:s,s:s,s:s}", "event", "deleted", "key", key, "version", value));
}

static void on_synced(void *userdata)
{
        const struct watch *watch = userdata;

        print(json_pack("{s:s,s:I,s:s,s:f}", "event", "synced", "count", (json_int_t)kube_reflector_count(watch->reflector),
                        "version", kube_reflector_version(watch->reflector), "at", now_seconds()));
}

static void on_stale(bool stale, void *userdata)
{
        const struct watch *watch = userdata;

        print(json_pack("{s:s,s:s,s:f}", "event", stale ? "stale" : "current", "problem", kube_reflector_problem(watch->reflector),
                        "at", now_seconds()));
}

static void print_counters(const struct watch *watch)
{
        const struct kube_reflector_counters *counters = kube_reflector_counters(watch->reflector);
        uint64_t staleness_ns = kube_reflector_staleness_ns(watch->reflector);

        print(json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:s,s:b,s:b,s:f}", "event", "counters", "lists",
                        (json_int_t)counters->lists, "relists", (json_int_t)counters->relists, "watches",
                        (json_int_t)counters->watches, "watch_restarts", (json_int_t)counters->watch_restarts, "failures",
                        (json_int_t)counters->failures, "events", (json_int_t)counters->events, "bookmarks",
                        (json_int_t)counters->bookmarks, "unreadable", (json_int_t)counters->unreadable, "version",
                        kube_reflector_version(watch->reflector), "problem", kube_reflector_problem(watch->reflector), "synced",
                        kube_reflector_is_synced(watch->reflector), "stale", kube_reflector_is_stale(watch->reflector), "staleness",
                        staleness_ns == UINT64_MAX ? -1.0 : (double)staleness_ns / (double)NSEC_PER_SEC));
}

static void print_client(const struct watch *watch)
{
        const struct kube_counters *counters = kube_client_counters(watch->client);
        json_t *requests = json_array();

        for (size_t i = 0; i < counters->n_rows; i++) {
                const struct kube_counter_row *row = &counters->rows[i];

                json_array_append_new(requests,
                                      json_pack("{s:s,s:s,s:i,s:I,s:f}", "verb", kube_verb_to_string(row->verb), "resource",
                                                row->resource, "code", (int)row->code, "requests", (json_int_t)row->requests,
                                                "seconds", (double)row->latency_ns / (double)NSEC_PER_SEC));
        }
        print(json_pack("{s:s,s:o,s:I,s:I,s:I,s:I}", "event", "client", "requests", requests, "retries",
                        (json_int_t)counters->retries, "unauthorized", (json_int_t)counters->unauthorized, "bytes",
                        (json_int_t)counters->bytes_received, "connections", (json_int_t)counters->connections));
}

static int add_key(const char *key, void *value, void *userdata)
{
        return json_object_set_new(userdata, key, json_string(value));
}

static void print_view(const struct watch *watch)
{
        json_t *view = json_object();

        kube_reflector_each(watch->reflector, add_key, view);
        print(json_pack("{s:s,s:o}", "event", "view", "view", view));
}

static void on_answer(const struct kube_reply *reply, void *userdata)
{
        struct asked *asked = userdata;

        print(json_pack("{s:s,s:s,s:i,s:i,s:s,s:O?,s:f}", "event", "answer", "command", asked->command, "error", reply->error,
                        "code", (int)reply->status.code, "message", reply->status.message, "body", reply->body, "seconds",
                        (double)(now_monotonic_ns() - asked->at_ns) / (double)NSEC_PER_SEC));
        free(asked->command);
        free(asked);
}

static void request(struct watch *watch, const char *command, const char *path, const char *body)
{
        const struct kube_request_callbacks callbacks = { .done = on_answer };
        struct asked *asked = calloc(1, sizeof(*asked));
        json_t *document = body ? json_loads(body, 0, NULL) : NULL;
        const struct kube_request_settings settings = {
                .verb = body ? KUBE_PATCH : KUBE_GET,
                .priority = body ? KUBE_PRIORITY_WAKE : KUBE_PRIORITY_NORMAL,
                .resource = "things",
                .path = path,
                .content_type = "application/merge-patch+json",
                .body = document,
                .deadline_ns = 30 * NSEC_PER_SEC,
        };

        asked->command = strdup(command);
        asked->at_ns = now_monotonic_ns();
        if (kube_client_request(watch->client, &settings, &callbacks, asked, NULL) < 0)
                print(json_pack("{s:s}", "event", "refused"));
        json_decref(document);
}

static void command(struct watch *watch, char *line)
{
        char *path = strchr(line, ' '), *body = path ? strchr(path + 1, ' ') : NULL;

        if (path)
                *path++ = '\0';
        if (body)
                *body++ = '\0';
        if (strcmp(line, "counters") == 0)
                print_counters(watch);
        else if (strcmp(line, "client") == 0)
                print_client(watch);
        else if (strcmp(line, "view") == 0)
                print_view(watch);
        else if (strcmp(line, "get") == 0 || strcmp(line, "patch") == 0)
                request(watch, line, path, body);
        else
                sd_event_exit(watch->event, 0);
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct watch *watch = userdata;
        char text[4096];
        ssize_t length = read(fd, text, sizeof(text) - 1);
        char *line, *rest = text;

        if (length <= 0)
                return sd_event_exit(watch->event, 0);
        text[length] = '\0';
        while ((line = strsep(&rest, "\n")))
                if (*line)
                        command(watch, line);
        return 0;
}

static int run(struct watch *watch, const struct kube_config *config, const char *path, const char *resource)
{
        const struct kube_reflector_settings settings = { .resource = resource,
                                                          .path = path,
                                                          .without_watch_list = watch->without_watch_list };
        const struct kube_reflector_callbacks callbacks = {
                .read = on_read,
                .release = on_release,
                .added = on_added,
                .modified = on_modified,
                .deleted = on_deleted,
                .synced = on_synced,
                .stale = on_stale,
        };
        int r = sd_event_default(&watch->event);

        if (r >= 0)
                r = sd_event_add_io(watch->event, NULL, STDIN_FILENO, EPOLLIN, on_input, watch);
        if (r >= 0)
                r = kube_client_new(watch->event, config, &watch->client);
        if (r >= 0)
                r = kube_reflector_new(watch->client, &settings, &callbacks, watch, NULL, &watch->reflector);
        if (r >= 0)
                r = sd_event_loop(watch->event);
        kube_reflector_free(watch->reflector);
        kube_client_free(watch->client);
        sd_event_unref(watch->event);
        return r;
}

int main(int argc, char **argv)
{
        _cleanup_(kube_config_freep) struct kube_config *config = NULL;
        struct watch watch = { .without_watch_list = getenv("WITHOUT_WATCH_LIST") != NULL };
        char error[KUBE_CONFIG_ERROR_MAX];

        if (argc < 3) {
                fputs("usage: watch KUBECONFIG PATH [RESOURCE]\n", stderr);
                return 2;
        }
        if (kube_config_load_file(argv[1], NULL, &config, error) < 0) {
                fprintf(stderr, "%s\n", error);
                return 1;
        }
        return run(&watch, config, argv[2], argc > 3 ? argv[3] : "things") < 0;
}
