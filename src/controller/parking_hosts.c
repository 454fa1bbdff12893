/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/parking_hosts.h"

#include <string.h>

#include "kube/patch.h"
#include "kube/reflector.h"
#include "kube/resource.h"

struct parking_hosts {
        struct kube_reflector *reflector; /* of struct kube_pod */
        void (*changed)(void *userdata);
        void *userdata;
};

static bool is_host(const struct kube_pod *pod)
{
        return pod->host_network && !pod->metadata.deleting && *pod->node && pod->n_addresses > 0;
}

static int on_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        struct kube_pod *pod;
        const char *field;
        int r = kube_pod_read(object, &pod, &field);

        if (r < 0)
                return r;
        if (!is_host(pod)) {
                kube_pod_free(pod);
                return -ENOENT;
        }
        *ret_value = pod;
        return 0;
}

static void on_release(void *value, void *userdata)
{
        kube_pod_free(value);
}

static void on_change(const char *key, void *value, void *userdata)
{
        const struct parking_hosts *hosts = userdata;

        hosts->changed(hosts->userdata);
}

/* Pods' statuses change often, their addresses never. */
static void on_modified(const char *key, void *old, void *value, void *userdata)
{
        const struct kube_pod *before = old, *after = value;

        if (strcmp(before->node, after->node) != 0 || before->n_addresses != after->n_addresses ||
            memcmp(before->addresses, after->addresses, before->n_addresses * sizeof(*before->addresses)) != 0)
                on_change(key, value, userdata);
}

int parking_hosts_new(struct kube_client *client, const char *namespace, void (*changed)(void *userdata), void *userdata,
                      struct parking_hosts **ret_hosts)
{
        static const struct kube_reflector_callbacks callbacks = {
                .read = on_read,
                .release = on_release,
                .added = on_change,
                .modified = on_modified,
                .deleted = on_change,
        };
        _cleanup_(parking_hosts_freep) struct parking_hosts *hosts = calloc(1, sizeof(*hosts));
        const struct kube_object collection = { .api = "v1", .resource = "pods", .namespace = namespace };
        struct kube_reflector_settings settings = { .resource = "pods", .label_selector = AGENT_POD_SELECTOR };
        _cleanup_(freep) char *path = NULL;
        int r = kube_object_path(&collection, &path);

        if (!hosts)
                return -ENOMEM;
        if (r < 0)
                return r;
        settings.path = path;
        hosts->changed = changed;
        hosts->userdata = userdata;
        r = kube_reflector_new(client, &settings, &callbacks, hosts, NULL, &hosts->reflector);
        if (r < 0)
                return r;
        *ret_hosts = TAKE_PTR(hosts);
        return 0;
}

struct parking_hosts *parking_hosts_free(struct parking_hosts *hosts)
{
        if (!hosts)
                return NULL;
        kube_reflector_free(hosts->reflector);
        free(hosts);
        return NULL;
}

struct collecting {
        bool (*is_fresh)(const char *node, void *userdata);
        void *userdata;
        struct parking_node *nodes;
        size_t n_nodes;
};

static int collect(const char *key, void *value, void *userdata)
{
        const struct kube_pod *pod = value;
        struct collecting *collecting = userdata;

        if (collecting->is_fresh(pod->node, collecting->userdata))
                collecting->nodes[collecting->n_nodes++] = (struct parking_node){ pod->node, pod->addresses, pod->n_addresses };
        return 0;
}

static int by_node(const void *a, const void *b)
{
        const struct parking_node *left = a, *right = b;

        return strcmp(left->node, right->node);
}

/* While an agent is replaced its node has two pods for a moment. */
static size_t once_each(struct parking_node *nodes, size_t n_nodes)
{
        size_t n = 0;

        qsort(nodes, n_nodes, sizeof(*nodes), by_node);
        for (size_t i = 0; i < n_nodes; i++)
                if (n == 0 || strcmp(nodes[n - 1].node, nodes[i].node) != 0)
                        nodes[n++] = nodes[i];
        return n;
}

int parking_hosts_list(const struct parking_hosts *hosts, bool (*is_fresh)(const char *node, void *userdata), void *userdata,
                       struct parking_node **ret_nodes, size_t *ret_n_nodes)
{
        struct collecting collecting = { .is_fresh = is_fresh, .userdata = userdata };

        collecting.nodes = calloc(kube_reflector_count(hosts->reflector) + 1, sizeof(*collecting.nodes));
        if (!collecting.nodes)
                return -ENOMEM;
        kube_reflector_each(hosts->reflector, collect, &collecting);
        *ret_n_nodes = once_each(collecting.nodes, collecting.n_nodes);
        *ret_nodes = collecting.nodes;
        return 0;
}

const struct kube_reflector *parking_hosts_view(const struct parking_hosts *hosts)
{
        return hosts->reflector;
}
