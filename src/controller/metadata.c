/* SPDX-License-Identifier: Apache-2.0 */
/* The finalizer, and the annotations by which people ask: what a policy's object carries beside spec and status. */
#include <string.h>

#include "base/time.h"
#include "controller/controller_private.h"

static const char annotation_wake[] = "lull.dev/wake";
static const char annotation_sleep[] = "lull.dev/sleep";

/* The list is one value to a merge patch: the others' entries stay in it. */
static json_t *finalizers_new(const struct known_policy *known, bool with)
{
        json_t *list = json_array(), *entry;
        size_t i;

        json_array_foreach(known->finalizers, i, entry)
                if (strcmp(json_string_value(entry) ? json_string_value(entry) : "", SCALE_TO_ZERO_FINALIZER) != 0)
                        json_array_append(list, entry);
        if (with)
                json_array_append_new(list, json_string(SCALE_TO_ZERO_FINALIZER));
        return list;
}

static json_t *patch_new(const struct subject *subject, const struct decision *decision)
{
        const struct known_policy *known = subject_known(subject);
        json_t *metadata = json_pack("{s:s}", "resourceVersion", known->object->metadata.resource_version);
        json_t *annotations = json_object();

        if (decision->clear_wake)
                json_object_set_new(annotations, annotation_wake, json_null());
        if (decision->clear_sleep)
                json_object_set_new(annotations, annotation_sleep, json_null());
        if (json_object_size(annotations) > 0)
                json_object_set(metadata, "annotations", annotations);
        json_decref(annotations);
        if (decision->add_finalizer || decision->remove_finalizer)
                json_object_set_new(metadata, "finalizers", finalizers_new(known, decision->add_finalizer));
        return json_pack("{s:o}", "metadata", metadata);
}

static void on_written(const struct kube_reply *reply, void *userdata)
{
        request_ended(userdata, reply, "write its finalizer or annotations");
}

static int patch_send(struct subject *subject, const json_t *patch, const struct kube_request_callbacks *callbacks, void *userdata,
                      struct kube_request **ret_request)
{
        const struct kube_metadata *metadata = &subject_known(subject)->object->metadata;
        const struct kube_object address = { SCALE_TO_ZERO_API, SCALE_TO_ZERO_RESOURCE, metadata->namespace, metadata->name, NULL };

        if (!patch)
                return -ENOMEM;
        return kube_patch(subject->controller->client, &address, KUBE_PATCH_MERGE, patch, NULL, callbacks, userdata, ret_request);
}

bool metadata_write(struct subject *subject, const struct decision *decision)
{
        static const struct kube_request_callbacks callbacks = { .done = on_written };
        _cleanup_(json_decrefp) json_t *patch = NULL;
        int r;

        if (!controller_leads(subject->controller) || decision->changed)
                return false;
        if (!decision->add_finalizer && !decision->remove_finalizer && !decision->clear_wake && !decision->clear_sleep)
                return false;
        if (!request_may_begin(subject, false))
                return true;
        patch = patch_new(subject, decision);
        r = patch_send(subject, patch, &callbacks, subject, &subject->request);
        if (r < 0)
                request_failed(subject, r, "write its finalizer or annotations");
        else
                request_begun(subject);
        return true;
}

static void on_asked(const struct kube_reply *reply, void *userdata)
{
}

int metadata_ask(struct subject *subject, const char *annotation)
{
        static const struct kube_request_callbacks callbacks = { .done = on_asked };
        _cleanup_(json_decrefp) json_t *patch = NULL;
        char time[TIMESTAMP_TEXT_MAX];

        patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", annotation, timestamp_format(now_realtime_ns(), time));
        return patch_send(subject, patch, &callbacks, NULL, NULL);
}
