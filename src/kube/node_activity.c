/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/node_activity.h"

#include <assert.h>
#include <string.h>

#include "base/time.h"
#include "kube/fields.h"
#include "kube/micro_time.h"

static const char *const workload_states[] = {
        [WORKLOAD_ACTIVE] = "Active",
        [WORKLOAD_IDLE] = "Idle",
        [WORKLOAD_UNKNOWN] = "Unknown",
        NULL,
};
static_assert(ELEMENTSOF(workload_states) == WORKLOAD_UNKNOWN + 2, "a word for each state");

static const char *const gpu_states[] = {
        [NODE_GPU_ACTIVE] = "Active", [NODE_GPU_IDLE] = "Idle",       [NODE_GPU_UNUSED] = "Unused",
        [NODE_GPU_STUCK] = "Stuck",   [NODE_GPU_UNKNOWN] = "Unknown", NULL,
};
static_assert(ELEMENTSOF(gpu_states) == NODE_GPU_UNKNOWN + 2, "a word for each state");

struct node_activity *node_activity_free(struct node_activity *activity)
{
        if (!activity)
                return NULL;

        kube_metadata_done(&activity->metadata);
        for (size_t i = 0; i < activity->n_demands; i++) {
                free(activity->demands[i].policy);
                free(activity->demands[i].source);
        }
        free(activity->demands);
        for (size_t i = 0; i < activity->n_workloads; i++) {
                free(activity->workloads[i].policy);
                free(activity->workloads[i].reason);
        }
        free(activity->workloads);
        free(activity->instance);
        free(activity->problem);
        free(activity);
        return NULL;
}

const struct node_demand *node_activity_find_demand(const struct node_activity *activity, const char *policy)
{
        for (size_t i = 0; i < activity->n_demands; i++)
                if (strcmp(activity->demands[i].policy, policy) == 0)
                        return &activity->demands[i];
        return NULL;
}

const struct node_workload *node_activity_find_workload(const struct node_activity *activity, const char *policy)
{
        for (size_t i = 0; i < activity->n_workloads; i++)
                if (strcmp(activity->workloads[i].policy, policy) == 0)
                        return &activity->workloads[i];
        return NULL;
}

static char *policy_copy(struct field_reader *reader, const json_t *source, const char *field)
{
        char *policy = field_copy(reader, source, "policy", NULL, field);

        if (!policy)
                field_fail(reader, -EBADMSG, field);
        return policy;
}

static void demand_read(struct field_reader *reader, const json_t *source, struct node_demand *demand)
{
        demand->policy = policy_copy(reader, source, "status.demands[].policy");
        demand->epoch = field_integer(reader, source, "epoch", 0, "status.demands[].epoch");
        demand->first_realtime_ns = field_time(reader, source, "firstPacket", "status.demands[].firstPacket");
        demand->held = field_number(reader, source, "held", 0, INT32_MAX, "status.demands[].held");
        demand->source = field_copy(reader, source, "source", NULL, "status.demands[].source");
}

static void demands_read(struct field_reader *reader, const json_t *status, struct node_activity *activity)
{
        const json_t *list = field_array(reader, status, "demands", "status.demands"), *entry;
        size_t i;

        activity->demands = field_allocate(reader, list, sizeof(*activity->demands), NODE_ACTIVITY_DEMANDS_MAX, "status.demands");
        if (!activity->demands)
                return;
        json_array_foreach(list, i, entry)
                demand_read(reader, entry, &activity->demands[activity->n_demands++]);
}

static void gpu_read(struct field_reader *reader, const json_t *workload, struct node_gpu *gpu)
{
        const json_t *source = field_object(reader, workload, "gpu", "status.workloads[].gpu");

        if (!source)
                return;
        gpu->devices = field_number(reader, source, "devices", 1, INT32_MAX, "status.workloads[].gpu.devices");
        gpu->state = field_word(reader, source, "state", gpu_states, NODE_GPU_UNKNOWN, "status.workloads[].gpu.state");
        gpu->since_realtime_ns = field_time(reader, source, "since", "status.workloads[].gpu.since");
        gpu->would_sleep = field_bool(reader, source, "wouldSleep", false, "status.workloads[].gpu.wouldSleep");
}

/* What is absent is not known, and no vote. */
static void workload_read(struct field_reader *reader, const json_t *source, struct node_workload *workload)
{
        workload->policy = policy_copy(reader, source, "status.workloads[].policy");
        workload->state = field_word(reader, source, "state", workload_states, WORKLOAD_UNKNOWN, "status.workloads[].state");
        workload->quiet_epoch = field_integer(reader, source, "quietEpoch", -1, "status.workloads[].quietEpoch");
        workload->since_realtime_ns = field_time(reader, source, "since", "status.workloads[].since");
        workload->pods = field_number(reader, source, "pods", 0, INT32_MAX, "status.workloads[].pods");
        workload->open_requests = field_number(reader, source, "openRequests", 0, INT32_MAX, "status.workloads[].openRequests");
        workload->reason = field_copy(reader, source, "reason", NULL, "status.workloads[].reason");
        gpu_read(reader, source, &workload->gpu);
}

static void workloads_read(struct field_reader *reader, const json_t *status, struct node_activity *activity)
{
        const json_t *list = field_array(reader, status, "workloads", "status.workloads"), *entry;
        size_t i;

        activity->workloads =
                field_allocate(reader, list, sizeof(*activity->workloads), NODE_ACTIVITY_WORKLOADS_MAX, "status.workloads");
        if (!activity->workloads)
                return;
        json_array_foreach(list, i, entry)
                workload_read(reader, entry, &activity->workloads[activity->n_workloads++]);
}

static void status_read(struct field_reader *reader, const json_t *object, struct node_activity *activity)
{
        const json_t *status = field_object(reader, object, "status", "status");
        int64_t programmed = field_integer(reader, status, "programmed", 0, "status.programmed");

        if (programmed < 0)
                field_fail(reader, -EBADMSG, "status.programmed");
        activity->programmed = (uint64_t)programmed;
        demands_read(reader, status, activity);
        workloads_read(reader, status, activity);
        activity->instance = field_copy(reader, status, "instance", NULL, "status.instance");
        activity->problem = field_copy(reader, status, "problem", NULL, "status.problem");
}

int node_activity_read(const json_t *object, struct node_activity **ret_activity, const char **ret_field)
{
        _cleanup_(node_activity_freep) struct node_activity *activity = calloc(1, sizeof(*activity));
        struct field_reader reader = { 0 };
        int r;

        if (!activity)
                return -ENOMEM;
        r = kube_metadata_read(object, &activity->metadata, ret_field);
        if (r < 0)
                return r;
        status_read(&reader, object, activity);
        if (reader.failed < 0) {
                *ret_field = reader.field;
                return reader.failed;
        }
        *ret_activity = TAKE_PTR(activity);
        return 0;
}

static const char *time_text(uint64_t realtime_ns, char buffer[static MICRO_TIME_TEXT_MAX])
{
        return realtime_ns ? micro_time_format(realtime_ns / NSEC_PER_USEC, buffer) : NULL;
}

static json_t *demand_json(const struct node_demand *demand)
{
        char first[MICRO_TIME_TEXT_MAX];

        return json_pack("{s:s, s:I, s:s*, s:I, s:s*}", "policy", demand->policy, "epoch", (json_int_t)demand->epoch, "firstPacket",
                         time_text(demand->first_realtime_ns, first), "held", (json_int_t)demand->held, "source", demand->source);
}

static json_t *gpu_json(const struct node_gpu *gpu)
{
        char since[MICRO_TIME_TEXT_MAX];

        if (gpu->devices == 0)
                return NULL;
        return json_pack("{s:s, s:I, s:s*, s:b}", "state", gpu_states[gpu->state], "devices", (json_int_t)gpu->devices, "since",
                         time_text(gpu->since_realtime_ns, since), "wouldSleep", (int)gpu->would_sleep);
}

static json_t *workload_json(const struct node_workload *workload)
{
        char since[MICRO_TIME_TEXT_MAX];

        return json_pack("{s:s, s:s, s:I, s:s*, s:I, s:I, s:s*, s:o*}", "policy", workload->policy, "state",
                         workload_states[workload->state], "quietEpoch", (json_int_t)workload->quiet_epoch, "since",
                         time_text(workload->since_realtime_ns, since), "pods", (json_int_t)workload->pods, "openRequests",
                         (json_int_t)workload->open_requests, "reason", workload->reason, "gpu", gpu_json(&workload->gpu));
}

static json_t *demands_json(const struct node_activity *activity)
{
        json_t *list = json_array();

        for (size_t i = 0; list && i < activity->n_demands; i++)
                if (json_array_append_new(list, demand_json(&activity->demands[i])) < 0) {
                        json_decref(list);
                        list = NULL;
                }
        return list;
}

static json_t *workloads_json(const struct node_activity *activity)
{
        json_t *list = json_array();

        for (size_t i = 0; list && i < activity->n_workloads; i++)
                if (json_array_append_new(list, workload_json(&activity->workloads[i])) < 0) {
                        json_decref(list);
                        list = NULL;
                }
        return list;
}

json_t *node_activity_status_json(const struct node_activity *activity)
{
        return json_pack("{s:I, s:o, s:o, s:s?, s:s?}", "programmed", (json_int_t)activity->programmed, "demands",
                         demands_json(activity), "workloads", workloads_json(activity), "instance", activity->instance, "problem",
                         activity->problem);
}
