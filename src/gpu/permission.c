/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/permission.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"

#define LOOK_AGAIN_NS (5 * NSEC_PER_SEC) /* no later than the watch's next look */

/* What it still holds is only given back where the policy says so. */
static bool may_give_back(const struct gpu_standing *standing, enum gpu_on_idle on_idle)
{
        return on_idle == GPU_ON_IDLE_SLEEP || standing->open == 0;
}

static bool is_at_rest(enum gpu_state state)
{
        return state == GPU_IDLE || state == GPU_UNUSED;
}

void gpu_standing_unknown(unsigned devices, const char *reason, struct gpu_standing *ret_standing)
{
        struct gpu_standing standing = { .devices = devices, .verdict.state = GPU_UNKNOWN };

        snprintf(standing.verdict.reason, sizeof(standing.verdict.reason), "%s", reason);
        *ret_standing = standing;
}

bool gpu_permits_sleep(const struct gpu_standing *standing, enum gpu_on_idle on_idle)
{
        return standing->devices == 0 || (is_at_rest(standing->verdict.state) && may_give_back(standing, on_idle));
}

bool gpu_would_permit_sleep(const struct gpu_standing *standing, enum gpu_on_idle on_idle)
{
        return !gpu_permits_sleep(standing, on_idle) && gpu_permits_sleep(standing, GPU_ON_IDLE_SLEEP);
}

static void refuse(struct idle_verdict *idle, enum verdict verdict, uint64_t now_ns, const char *format, ...) _printf_(4, 5);
static void refuse(struct idle_verdict *idle, enum verdict verdict, uint64_t now_ns, const char *format, ...)
{
        va_list arguments;

        idle->verdict = verdict;
        idle->idle_ns = 0;
        idle->look_again_ns = MIN(idle->look_again_ns, now_ns + LOOK_AGAIN_NS);
        va_start(arguments, format);
        vsnprintf(idle->reason, sizeof(idle->reason), format, arguments);
        va_end(arguments);
}

void gpu_judge_sleep(const struct gpu_standing *standing, enum gpu_on_idle on_idle, uint64_t now_ns, struct idle_verdict *verdict)
{
        const struct gpu_verdict *gpu = &standing->verdict;
        char network[sizeof(verdict->reason)], idle[DURATION_TEXT_MAX];

        if (standing->devices == 0)
                return;
        if (!may_give_back(standing, on_idle)) {
                refuse(verdict, VERDICT_BUSY, now_ns, "idle.gpu.onIdle is Report, and its GPU is %s: %.120s",
                       gpu_state_to_string(gpu->state), gpu->reason);
                return;
        }
        if (!is_at_rest(gpu->state)) {
                refuse(verdict, gpu->state == GPU_UNKNOWN ? VERDICT_UNKNOWN : VERDICT_BUSY, now_ns, "its GPU is %s: %.165s",
                       gpu_state_to_string(gpu->state), gpu->reason);
                return;
        }
        memcpy(network, verdict->reason, sizeof(network));
        snprintf(verdict->reason, sizeof(verdict->reason), "%.100s, and its GPU is %s for %s", network,
                 gpu_state_to_string(gpu->state), duration_format(gpu->idle_ns, idle));
}

int gpu_standing_all(const struct gpu_standing_part *parts, size_t n_parts, struct gpu_standing *ret_standing)
{
        struct gpu_standing all = { 0 };
        struct gpu_part *verdicts;
        size_t n = 0;

        verdicts = calloc(n_parts + 1, sizeof(*verdicts));
        if (!verdicts)
                return -ENOMEM;
        for (size_t i = 0; i < n_parts; i++) {
                const struct gpu_standing *standing = parts[i].standing;

                if (standing->devices == 0)
                        continue;
                verdicts[n++] = (struct gpu_part){ parts[i].name, &standing->verdict };
                all.devices += standing->devices;
                all.open += standing->open;
        }
        if (n > 0)
                gpu_verdict_all(verdicts, n, &all.verdict);
        free(verdicts);
        *ret_standing = all;
        return 0;
}

json_t *gpu_standing_json(const struct gpu_standing *standing, enum gpu_on_idle on_idle)
{
        const struct gpu_verdict *verdict = &standing->verdict;

        if (standing->devices == 0)
                return json_null();
        return json_pack("{si, si, ss, ss, sf, sf, ss}", "devices", (int)standing->devices, "open", (int)standing->open, "state",
                         gpu_state_to_string(verdict->state), "reason", verdict->reason, "idle_seconds",
                         (double)verdict->idle_ns / NSEC_PER_SEC, "required_seconds", (double)verdict->required_ns / NSEC_PER_SEC,
                         "on_idle", on_idle == GPU_ON_IDLE_SLEEP ? "Sleep" : "Report");
}
