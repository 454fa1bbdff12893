/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/pods.h"

#include <string.h>

#include "controller/pod_probe.h"
#include "kube/patch.h"
#include "kube/reflector.h"

struct pods {
        struct kube_reflector *reflector;
        void (*changed)(void *userdata);
        void *userdata;
};

struct pod {
        char *uid;
        struct pod_probe probe;
};

static void pod_release(void *value, void *userdata)
{
        struct pod *pod = value;

        if (!pod)
                return;
        pod_probe_done(&pod->probe);
        free(pod->uid);
        free(pod);
}

static int pod_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        const char *uid = json_string_value(json_object_get(json_object_get(object, "metadata"), "uid"));
        struct pod *pod = calloc(1, sizeof(*pod));
        int r;

        if (!pod)
                return -ENOMEM;
        r = uid ? pod_probe_read(object, &pod->probe) : -EBADMSG;
        if (r >= 0) {
                pod->uid = strdup(uid);
                r = pod->uid ? 0 : -ENOMEM;
        }
        if (r < 0) {
                pod_release(pod, NULL);
                return r;
        }
        *ret_value = pod;
        return 0;
}

static void pod_came(const char *key, void *value, void *userdata)
{
        const struct pods *pods = userdata;

        pods->changed(pods->userdata);
}

static void pod_changed(const char *key, void *old, void *value, void *userdata)
{
        pod_came(key, value, userdata);
}

int pods_new(struct kube_client *client, const char *namespace, const char *selector, void (*changed)(void *userdata),
             void *userdata, struct pods **ret_pods)
{
        static const struct kube_reflector_callbacks callbacks = {
                .read = pod_read,
                .release = pod_release,
                .added = pod_came,
                .modified = pod_changed,
                .deleted = pod_came,
        };
        const struct kube_object collection = { "v1", "pods", namespace, NULL, NULL };
        struct kube_reflector_settings settings = { .resource = "pods", .label_selector = selector };
        _cleanup_(pods_freep) struct pods *pods = calloc(1, sizeof(*pods));
        _cleanup_(freep) char *path = NULL;
        int r;

        if (!pods)
                return -ENOMEM;
        pods->changed = changed;
        pods->userdata = userdata;
        r = kube_object_path(&collection, &path);
        if (r < 0)
                return r;
        settings.path = path;
        r = kube_reflector_new(client, &settings, &callbacks, pods, NULL, &pods->reflector);
        if (r < 0)
                return r;
        *ret_pods = TAKE_PTR(pods);
        return 0;
}

struct pods *pods_free(struct pods *pods)
{
        if (!pods)
                return NULL;
        kube_reflector_free(pods->reflector);
        free(pods);
        return NULL;
}

struct collecting {
        struct resolve_probe *probes;
        size_t n;
};

static int collect(const char *key, void *value, void *userdata)
{
        const struct pod *pod = value;
        struct collecting *collecting = userdata;

        if (collecting->n == PODS_PROBES_MAX)
                return -ENOBUFS;
        collecting->probes[collecting->n++] = (struct resolve_probe){
                .pod_uid = pod->uid,
                .probe = pod->probe.probe,
                .started_realtime_ns = pod->probe.started_realtime_ns,
        };
        return 0;
}

size_t pods_probes(const struct pods *pods, struct resolve_probe ret[static PODS_PROBES_MAX])
{
        struct collecting collecting = { .probes = ret };

        if (pods)
                kube_reflector_each(pods->reflector, collect, &collecting);
        return collecting.n;
}
