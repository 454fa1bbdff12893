/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever lull's own objects say, pods, and what tells of their devices: an answer, no crash, no leak; and what was read, written and read again is the same. */
#include <assert.h>
#include <string.h>

#include "kube/node_activity.h"
#include "kube/pod_allocations.h"
#include "kube/scale_to_zero.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* @object with the status that lull writes. */
static json_t *with_status(const json_t *object, json_t *status)
{
        json_t *copy = json_copy((json_t *)object);

        assert(copy && status && json_object_set_new(copy, "status", status) == 0);
        return copy;
}

static void check_policy(const struct scale_to_zero *object)
{
        assert(!object->policy == (object->policy_problem != NULL));
        if (!object->policy)
                return;
        assert(strchr(object->policy->name, '/') && policy_equal(object->policy, object->policy));
        assert(object->policy->target != TARGET_PROCESS && object->policy->cluster.reference.name);
        for (size_t i = 0; i < object->policy->cluster.n_ignore; i++)
                assert(object->policy->cluster.ignore[i].pods);
}

static void check_scale_to_zero(const json_t *source)
{
        _cleanup_(scale_to_zero_freep) struct scale_to_zero *object = NULL, *again = NULL;
        const char *field = NULL;
        json_t *copy, *status;
        int r = scale_to_zero_read(source, &object, &field);

        assert(r == 0 || ((r == -EBADMSG || r == -E2BIG) && field));
        if (r < 0)
                return;
        check_policy(object);
        copy = with_status(source, scale_to_zero_status_json(&object->status));
        assert(scale_to_zero_read(copy, &again, &field) == 0);
        status = scale_to_zero_status_json(&again->status);
        assert(json_equal(status, json_object_get(copy, "status")));
        json_decref(status);
        json_decref(copy);
}

static void check_node_activity(const json_t *source)
{
        _cleanup_(node_activity_freep) struct node_activity *activity = NULL, *again = NULL;
        const char *field = NULL;
        json_t *copy, *status;
        int r = node_activity_read(source, &activity, &field);

        assert(r == 0 || ((r == -EBADMSG || r == -E2BIG) && field));
        if (r < 0)
                return;
        copy = with_status(source, node_activity_status_json(activity));
        assert(node_activity_read(copy, &again, &field) == 0);
        status = node_activity_status_json(again);
        assert(json_equal(status, json_object_get(copy, "status")));
        json_decref(status);
        json_decref(copy);
}

static const struct kube_resource_claim *the_claim(const char *namespace, const char *name, void *userdata)
{
        return userdata;
}

/* One object as a pod, its claim and a slice. */
static void check_devices(const json_t *source)
{
        _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;
        _cleanup_(kube_resource_claim_freep) struct kube_resource_claim *claim = NULL;
        _cleanup_(kube_resource_slice_freep) struct kube_resource_slice *slice = NULL;
        struct pod_allocations_view view = { .claim = the_claim };
        struct pod_allocations allocations;
        const char *field = NULL;

        assert(kube_resource_claim_read(source, &claim, &field) == 0 || field);
        assert(kube_resource_slice_read(source, &slice, &field) == 0 || field);
        if (kube_pod_read(source, &pod, &field) < 0)
                return;
        view.userdata = claim;
        view.slices = (const struct kube_resource_slice *const *)&slice;
        view.n_slices = slice ? 1 : 0;
        assert(pod_allocations_read(pod, &view, &allocations) == 0 && allocations.n <= GPU_ALLOCATIONS_MAX);
        pod_allocations_done(&allocations);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *source = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);

        if (!json_is_object(source)) {
                json_decref(source);
                return 0;
        }
        check_scale_to_zero(source);
        check_node_activity(source);
        check_devices(source);
        json_decref(source);
        return 0;
}
