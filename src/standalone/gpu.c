/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "gpu/permission.h"
#include "gpu/watch.h"
#include "standalone/managed.h"

#define REQUESTS_NS NSEC_PER_SEC

static uint64_t cold_start(const struct managed *managed)
{
        uint64_t ready_ns = managed->wake.reached_ns[WAKE_READY];

        return ready_ns > managed->wake.zero_ns && managed->wake.zero_ns ? ready_ns - managed->wake.zero_ns : 0;
}

static struct gpu_rules rules_of(const struct managed *managed)
{
        return (struct gpu_rules){ .window_ns = managed->policy->idle.gpu.after_ns,
                                   .cold_start_ns = cold_start(managed),
                                   .factor = managed->gpu_factor };
}

static uint32_t open_requests(void *userdata)
{
        struct managed *managed = userdata;
        struct workload_snapshot snapshot;

        if (!managed->workload || workload_read(managed->workload, now_monotonic_ns() - REQUESTS_NS, &snapshot) < 0)
                return 0;
        return snapshot.open_requests;
}

void managed_watch_gpu(struct managed *managed)
{
        struct gpu_tenant_config config = { .name = managed->policy->name,
                                            .cgroup = managed->cgroup,
                                            .rules = rules_of(managed),
                                            .open_requests = open_requests,
                                            .userdata = managed };
        int r;

        if (managed->gpu)
                return;
        r = gpu_tenant_new(managed->context->gpu, &config, &managed->gpu);
        if (r < 0)
                log_error("policy \"%s\": cannot watch its GPUs: %s; it will stay awake", managed->policy->name, strerror(-r));
}

void managed_forget_gpu(struct managed *managed)
{
        managed->gpus_before = managed->gpu ? gpu_tenant_open_devices(managed->gpu) : 0;
        managed->gpu = gpu_tenant_free(managed->gpu);
        managed_clear_condition(managed, CONDITION_GPU_IDLE);
}

void managed_woke_gpu(struct managed *managed, uint64_t slept_ns)
{
        managed->gpu_saved_seconds += (double)slept_ns / NSEC_PER_SEC * managed->gpus_before;
        if (managed->gpus_before > 0)
                managed->gpu_factor = gpu_window_factor(managed->gpu_factor, slept_ns);
        managed->gpus_before = 0;
}

double managed_gpu_saved_seconds(const struct managed *managed, uint64_t now_ns)
{
        if (managed->machine.phase != PHASE_ASLEEP)
                return managed->gpu_saved_seconds;
        return managed->gpu_saved_seconds + (double)(now_ns - managed->machine.since_ns) / NSEC_PER_SEC * managed->gpus_before;
}

/* Looks afresh. */
static void look(struct managed *managed, struct gpu_standing *ret_standing)
{
        struct gpu_rules rules = rules_of(managed);

        if (!managed->gpu) {
                gpu_standing_unknown(1, "it cannot be watched", ret_standing);
                return;
        }
        gpu_tenant_set_rules(managed->gpu, &rules);
        gpu_tenant_judge(managed->gpu, ret_standing);
}

bool managed_gpu_allows_sleep(struct managed *managed)
{
        struct gpu_standing standing;

        look(managed, &standing);
        return gpu_permits_sleep(&standing, managed->policy->idle.gpu.on_idle);
}

static void tell_of_idleness(struct managed *managed, const struct gpu_standing *standing)
{
        char duration[DURATION_TEXT_MAX];

        if (gpu_would_permit_sleep(standing, managed->policy->idle.gpu.on_idle))
                managed_set_condition(
                        managed, CONDITION_GPU_IDLE, "Report",
                        "neither clients nor its GPU have needed it for %s; with idle.gpu.onIdle: Sleep it would sleep",
                        duration_format(managed->policy->idle.gpu.after_ns, duration));
        else
                managed_clear_condition(managed, CONDITION_GPU_IDLE);
}

void managed_judge_gpu(struct managed *managed)
{
        struct gpu_standing standing;

        look(managed, &standing);
        tell_of_idleness(managed, &standing);
        gpu_judge_sleep(&standing, managed->policy->idle.gpu.on_idle, now_monotonic_ns(), &managed->verdict);
}

json_t *managed_gpu_json(const struct managed *managed)
{
        struct gpu_standing standing = { 0 };

        if (managed->gpu)
                gpu_tenant_known(managed->gpu, &standing);
        return gpu_standing_json(&standing, managed->policy->idle.gpu.on_idle);
}
