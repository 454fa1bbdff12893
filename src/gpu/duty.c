/* SPDX-License-Identifier: Apache-2.0 */
/* When a workload's probes are on. A quiet one's always, for they cost nothing while nobody calls. One that makes so many calls that
 * they would cost more than a hundredth of a core is known to be busy, and so looked at only now and then, each time until it has been
 * seen to call; a sample in which nobody calls is the beginning of quiet, and has no end. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/macros.h"
#include "base/time.h"
#include "gpu/calls_private.h"
#include "gpu/detacher.h"

/* What one call costs with a probe on, measured (docs/gpu.md); a wait has a second one at its return. */
#define CALL_COST_NS UINT64_C(1000)
#define SLOW_CALL_COST_NS UINT64_C(10000)
enum { WAIT_COST_CALLS = 3 };

enum { BUSY_SHARE = 100, SAMPLE_SHARE = 200 }; /* one part in so many: of a core while probing, and with the pauses */

#define FIRST_WINDOW_NS (20 * NSEC_PER_MSEC)
#define NEXT_WINDOW_NS NSEC_PER_SEC
#define PAUSE_MIN_NS (5 * NSEC_PER_SEC)
#define PAUSE_MAX_NS (60 * NSEC_PER_SEC)
#define DETACHING_NS NSEC_PER_SEC /* how long to wait for probes that are still being taken off */

static void set_timer(struct gpu_workload *workload, uint64_t delay_ns)
{
        int r = sd_event_source_set_time_relative(workload->timer, delay_ns / NSEC_PER_USEC);

        if (r >= 0)
                r = sd_event_source_set_enabled(workload->timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_warning("gpu: no timer for %s: %s", workload->cgroup, strerror(-r));
}

static void begin_window(struct gpu_workload *workload, uint64_t length_ns)
{
        struct call_totals totals = {};

        workload_totals(workload, &totals);
        workload->window_began_ns = now_monotonic_ns();
        workload->window_submissions = totals.submissions;
        workload->window_waits = totals.waits;
        set_timer(workload, length_ns);
}

static void pause_probes(struct gpu_workload *workload, uint64_t cost_ns)
{
        uint64_t pause_ns = MAX((cost_ns + 2 * workload->attach_ns) * SAMPLE_SHARE, PAUSE_MIN_NS);

        workload_end_watch(workload);
        workload->duty = DUTY_PAUSED;
        set_timer(workload, MIN(pause_ns, PAUSE_MAX_NS));
}

static void end_pause(struct gpu_workload *workload)
{
        if (detacher_busy(workload->calls->detacher)) {
                set_timer(workload, DETACHING_NS);
                return;
        }
        workload_begin_watch(workload);
}

/* After a silence the next call is told. */
static bool is_silent(const struct call_totals *totals)
{
        return now_monotonic_ns() - MAX(totals->last_submission_ns, totals->last_wait_ns) >= 2 * (uint64_t)GPU_SILENCE_NS;
}

static void end_window(struct gpu_workload *workload)
{
        uint64_t length_ns = now_monotonic_ns() - workload->window_began_ns;
        struct call_totals totals = {};
        uint64_t calls, cost_ns;

        if (workload_totals(workload, &totals) < 0)
                return;
        calls = totals.submissions - workload->window_submissions + (totals.waits - workload->window_waits) * WAIT_COST_CALLS;
        cost_ns = calls * (workload_slow(workload) ? SLOW_CALL_COST_NS : CALL_COST_NS);
        if (cost_ns > length_ns / BUSY_SHARE)
                pause_probes(workload, cost_ns);
        else if (!is_silent(&totals))
                begin_window(workload, NEXT_WINDOW_NS);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct gpu_workload *workload = userdata;

        if (workload->duty == DUTY_PAUSED)
                end_pause(workload);
        else
                end_window(workload);
        return 0;
}

void duty_called(struct gpu_workload *workload)
{
        int enabled = SD_EVENT_OFF;

        if (workload->duty == DUTY_PROBING && sd_event_source_get_enabled(workload->timer, &enabled) == 0)
                begin_window(workload, FIRST_WINDOW_NS);
}

int duty_new(struct gpu_workload *workload)
{
        int r = sd_event_add_time(workload->calls->event, &workload->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_timer, workload);

        return r < 0 ? r : sd_event_source_set_enabled(workload->timer, SD_EVENT_OFF);
}

void duty_start(struct gpu_workload *workload)
{
        if (workload->duty == DUTY_OFF) {
                workload->past = (struct call_totals){};
                workload_begin_watch(workload);
        }
}

void duty_stop(struct gpu_workload *workload)
{
        workload_end_watch(workload);
        workload->duty = DUTY_OFF;
        sd_event_source_set_enabled(workload->timer, SD_EVENT_OFF);
}
