/* SPDX-License-Identifier: Apache-2.0 */
/* Reflectors of one collection, each with a client of its own, which print what becomes of them, a JSON object a line.
 *
 *   reflect KUBECONFIG PATH CLIENTS
 *
 * An object named "sentinel" is spoken of whenever one of them sees it. Lines on standard input are commands: "counters", "view"
 * (what the first client holds), "quit". modules/reflectors is the same made of client-go.
 */
#include <jansson.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/macros.h"
#include "base/time.h"
#include "kube/reflector.h"

enum { CLIENTS_MAX = 100 };

struct viewer {
        int number;
        struct kube_client *client;
        struct kube_reflector *reflector;
};

struct reflect {
        sd_event *event;
        struct viewer viewers[CLIENTS_MAX];
        int n_viewers;
};

static void print(const char *event, json_t *line)
{
        _cleanup_(freep) char *text = NULL;

        json_object_set_new(line, "event", json_string(event));
        json_object_set_new(line, "at", json_real((double)now_realtime_ns() / (double)NSEC_PER_SEC));
        text = json_dumps(line, JSON_COMPACT);
        puts(text ? text : "{}");
        fflush(stdout);
        json_decref(line);
}

/* What a ConfigMap is kept as: its data's "value". */
static int on_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        const char *value = json_string_value(json_object_get(json_object_get(object, "data"), "value"));

        *ret_value = strdup(value ? value : "");
        return *ret_value ? 0 : -ENOMEM;
}

static void on_release(void *value, void *userdata)
{
        free(value);
}

static void on_added(const char *key, void *value, void *userdata)
{
        const struct viewer *viewer = userdata;
        const char *slash = strrchr(key, '/');

        if (slash && strcmp(slash, "/sentinel") == 0)
                print("sentinel", json_pack("{s:i,s:s}", "client", viewer->number, "value", value));
}

static void on_modified(const char *key, void *old, void *value, void *userdata)
{
        on_added(key, value, userdata);
}

static void on_synced(void *userdata)
{
        const struct viewer *viewer = userdata;

        print("synced",
              json_pack("{s:i,s:I}", "client", viewer->number, "count", (json_int_t)kube_reflector_count(viewer->reflector)));
}

static void on_stale(bool stale, void *userdata)
{
        const struct viewer *viewer = userdata;

        print(stale ? "stale" : "current",
              json_pack("{s:i,s:s}", "client", viewer->number, "problem", kube_reflector_problem(viewer->reflector)));
}

static json_t *viewer_counters(const struct viewer *viewer)
{
        const struct kube_reflector_counters *counters = kube_reflector_counters(viewer->reflector);

        return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:s}", "lists", (json_int_t)counters->lists, "relists",
                         (json_int_t)counters->relists, "watches", (json_int_t)counters->watches, "failures",
                         (json_int_t)counters->failures, "events", (json_int_t)counters->events, "objects",
                         (json_int_t)kube_reflector_count(viewer->reflector), "version", kube_reflector_version(viewer->reflector),
                         "problem", kube_reflector_problem(viewer->reflector));
}

static void print_counters(const struct reflect *reflect)
{
        json_t *clients = json_array();

        for (int i = 0; i < reflect->n_viewers; i++)
                json_array_append_new(clients, viewer_counters(&reflect->viewers[i]));
        print("counters", json_pack("{s:o}", "clients", clients));
}

static int add_object(const char *key, void *value, void *userdata)
{
        return json_object_set_new(userdata, key, json_string(value));
}

static void print_view(const struct reflect *reflect)
{
        json_t *view = json_object();

        kube_reflector_each(reflect->viewers[0].reflector, add_object, view);
        print("view", json_pack("{s:o}", "view", view));
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct reflect *reflect = userdata;
        char line[64];
        ssize_t length = read(fd, line, sizeof(line) - 1);

        if (length <= 0)
                return sd_event_exit(reflect->event, 0);
        line[length] = '\0';
        if (strcmp(line, "counters\n") == 0)
                print_counters(reflect);
        else if (strcmp(line, "view\n") == 0)
                print_view(reflect);
        else
                return sd_event_exit(reflect->event, 0);
        return 0;
}

static int viewer_start(struct viewer *viewer, sd_event *event, const struct kube_config *config, const char *path)
{
        static const struct kube_reflector_callbacks callbacks = {
                .read = on_read,
                .release = on_release,
                .added = on_added,
                .modified = on_modified,
                .synced = on_synced,
                .stale = on_stale,
        };
        const struct kube_reflector_settings settings = { .resource = "configmaps", .path = path };
        int r = kube_client_new(event, config, &viewer->client);

        return r < 0 ? r : kube_reflector_new(viewer->client, &settings, &callbacks, viewer, NULL, &viewer->reflector);
}

static int run(struct reflect *reflect, const struct kube_config *config, const char *path, int clients)
{
        int r = sd_event_default(&reflect->event);

        if (r >= 0)
                r = sd_event_add_io(reflect->event, NULL, STDIN_FILENO, EPOLLIN, on_input, reflect);
        while (r >= 0 && reflect->n_viewers < clients) {
                struct viewer *viewer = &reflect->viewers[reflect->n_viewers];

                viewer->number = reflect->n_viewers++;
                r = viewer_start(viewer, reflect->event, config, path);
        }
        if (r >= 0)
                r = sd_event_loop(reflect->event);
        for (int i = 0; i < reflect->n_viewers; i++) {
                kube_reflector_free(reflect->viewers[i].reflector);
                kube_client_free(reflect->viewers[i].client);
        }
        sd_event_unref(reflect->event);
        return r;
}

int main(int argc, char **argv)
{
        _cleanup_(kube_config_freep) struct kube_config *config = NULL;
        char error[KUBE_CONFIG_ERROR_MAX];
        struct reflect reflect = { .n_viewers = 0 };
        int clients = argc == 4 ? atoi(argv[3]) : 0;

        if (clients < 1 || clients > CLIENTS_MAX) {
                fputs("usage: reflect KUBECONFIG PATH CLIENTS\n", stderr);
                return 2;
        }
        if (kube_config_load_file(argv[1], NULL, &config, error) < 0) {
                fprintf(stderr, "%s\n", error);
                return 1;
        }
        return run(&reflect, config, argv[2], clients) < 0;
}
