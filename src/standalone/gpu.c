/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "gpu/watch.h"
#include "standalone/managed.h"

#define LOOK_AGAIN_NS (5 * NSEC_PER_SEC) /* no later than the watch's next look */
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
        if (!managed->gpu_verdict)
                managed->gpu_verdict = calloc(1, sizeof(*managed->gpu_verdict));
        r = managed->gpu_verdict ? gpu_tenant_new(managed->context->gpu, &config, &managed->gpu) : -ENOMEM;
        if (r < 0)
                log_error("policy \"%s\": cannot watch its GPUs: %s; it will stay awake", managed->policy->name, strerror(-r));
}

void managed_forget_gpu(struct managed *managed)
{
        managed->gpus_before = managed->gpu ? gpu_tenant_open_devices(managed->gpu) : 0;
        managed->gpu = gpu_tenant_free(managed->gpu);
        free(TAKE_PTR(managed->gpu_verdict));
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

/* What it still holds is only given back where the policy says so. */
static bool may_sleep(const struct managed *managed)
{
        return managed->policy->idle.gpu.on_idle == GPU_ON_IDLE_SLEEP || gpu_tenant_open_devices(managed->gpu) == 0;
}

/* Returns whether it has anything to do with a GPU. */
static bool look(struct managed *managed)
{
        struct gpu_rules rules = rules_of(managed);

        gpu_tenant_set_rules(managed->gpu, &rules);
        return gpu_tenant_judge(managed->gpu, managed->gpu_verdict) > 0;
}

bool managed_gpu_allows_sleep(struct managed *managed)
{
        if (!managed->gpu)
                return false;
        return !look(managed) || (managed->gpu_verdict->state == GPU_IDLE && may_sleep(managed));
}

static void refuse(struct managed *managed, enum verdict verdict, const char *format, ...) _printf_(3, 4);
static void refuse(struct managed *managed, enum verdict verdict, const char *format, ...)
{
        uint64_t again_ns = now_monotonic_ns() + LOOK_AGAIN_NS;
        va_list arguments;

        managed->verdict.verdict = verdict;
        managed->verdict.idle_ns = 0;
        managed->verdict.look_again_ns = MIN(managed->verdict.look_again_ns, again_ns);
        va_start(arguments, format);
        vsnprintf(managed->verdict.reason, sizeof(managed->verdict.reason), format, arguments);
        va_end(arguments);
}

static void tell_of_idleness(struct managed *managed)
{
        char duration[DURATION_TEXT_MAX];

        if (managed->gpu_verdict->state == GPU_IDLE && !may_sleep(managed))
                managed_set_condition(
                        managed, CONDITION_GPU_IDLE, "Report",
                        "neither clients nor its GPU have needed it for %s; with idle.gpu.onIdle: Sleep it would sleep",
                        duration_format(managed->policy->idle.gpu.after_ns, duration));
        else
                managed_clear_condition(managed, CONDITION_GPU_IDLE);
}

void managed_judge_gpu(struct managed *managed)
{
        const struct gpu_verdict *verdict = managed->gpu_verdict;
        char reason[sizeof(managed->verdict.reason)], idle[DURATION_TEXT_MAX];

        if (!managed->gpu) {
                refuse(managed, VERDICT_UNKNOWN, "its GPUs cannot be watched");
                return;
        }
        if (!look(managed))
                return;
        tell_of_idleness(managed);
        if (!may_sleep(managed)) {
                refuse(managed, VERDICT_BUSY, "idle.gpu.onIdle is Report, and its GPU is %s: %.120s",
                       gpu_state_to_string(verdict->state), verdict->reason);
                return;
        }
        if (verdict->state != GPU_IDLE) {
                refuse(managed, verdict->state == GPU_UNKNOWN ? VERDICT_UNKNOWN : VERDICT_BUSY, "its GPU is %s: %.150s",
                       gpu_state_to_string(verdict->state), verdict->reason);
                return;
        }
        memcpy(reason, managed->verdict.reason, sizeof(reason));
        snprintf(managed->verdict.reason, sizeof(managed->verdict.reason), "%.100s, and its GPU is idle for %s", reason,
                 duration_format(verdict->idle_ns, idle));
}

json_t *managed_gpu_json(const struct managed *managed)
{
        struct gpu_verdict verdict;
        unsigned n_devices = managed->gpu ? gpu_tenant_known(managed->gpu, &verdict) : 0;

        if (n_devices == 0)
                return json_null();
        return json_pack("{si, si, ss, ss, sf, sf, ss}", "devices", (int)n_devices, "open",
                         (int)gpu_tenant_open_devices(managed->gpu), "state", gpu_state_to_string(verdict.state), "reason",
                         verdict.reason, "idle_seconds", (double)verdict.idle_ns / NSEC_PER_SEC, "required_seconds",
                         (double)verdict.required_ns / NSEC_PER_SEC, "on_idle",
                         managed->policy->idle.gpu.on_idle == GPU_ON_IDLE_SLEEP ? "Sleep" : "Report");
}
