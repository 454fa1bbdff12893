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

/* What one call costs with a probe on, measured (docs/gpu-calls.md); a wait has a second one at its return. */
#define CALL_COST_NS UINT64_C(1000)
#define SLOW_CALL_COST_NS UINT64_C(10000)
enum { WAIT_COST_CALLS = 3 };

enum { BUSY_SHARE = 100, SAMPLE_SHARE = 200, WAITS_SHARE = 200 }; /* of a core, one part in so many */

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

static void note_totals(struct gpu_workload *workload, const struct call_totals *totals)
{
        workload->window_began_ns = now_monotonic_ns();
        workload->window_submissions = totals->submissions;
        workload->window_waits = totals->waits;
}

struct cost { /* of the probes, since the totals were last noted */
        uint64_t submissions_ns, waits_ns, length_ns;
};

static struct cost cost_since(const struct gpu_workload *workload, const struct call_totals *totals)
{
        uint64_t call_ns = workload_slow(workload) ? SLOW_CALL_COST_NS : CALL_COST_NS;

        return (struct cost){
                .submissions_ns = (totals->submissions - workload->window_submissions) * call_ns,
                .waits_ns = (totals->waits - workload->window_waits) * call_ns * WAIT_COST_CALLS,
                .length_ns = now_monotonic_ns() - workload->window_began_ns,
        };
}

/* After a silence the next call is told. */
static bool is_silent(const struct call_totals *totals)
{
        return now_monotonic_ns() - MAX(totals->last_submission_ns, totals->last_wait_ns) >= 2 * (uint64_t)GPU_SILENCE_NS;
}

/* ---- pauses */

/* Waits stay probed where they are few, so that one which begins in the pause is known after it. */
static void begin_pause(struct gpu_workload *workload, const struct cost *cost)
{
        uint64_t pause_ns = (cost->submissions_ns + cost->waits_ns + 2 * workload->attach_ns) * SAMPLE_SHARE;

        workload->duty = DUTY_PAUSED;
        workload->waits_off = cost->waits_ns > cost->length_ns / WAITS_SHARE;
        workload_unprobe(workload, workload->waits_off);
        pause_ns = MAX(pause_ns, PAUSE_MIN_NS);
        workload->pause_until_ns = now_monotonic_ns() + MIN(pause_ns, PAUSE_MAX_NS);
        set_timer(workload, PAUSE_MIN_NS);
}

static void check_waits(struct gpu_workload *workload)
{
        struct call_totals totals;
        struct cost cost;

        if (workload->waits_off || workload_totals(workload, &totals) < 0)
                return;
        cost = cost_since(workload, &totals);
        note_totals(workload, &totals);
        if (cost.waits_ns > cost.length_ns / WAITS_SHARE) {
                workload->waits_off = true;
                workload_unprobe(workload, true);
        }
}

static void probe_again(struct gpu_workload *workload)
{
        uint64_t began_ns = now_monotonic_ns();

        workload->duty = DUTY_PROBING;
        if (workload->waits_off)
                workload_forget_waits(workload); /* of those that nobody saw end */
        workload->waits_off = false;
        workload_look(workload, 0);
        workload->attach_ns = now_monotonic_ns() - began_ns;
}

/* Probes of before that are still being taken off would count twice. */
static void check_pause(struct gpu_workload *workload)
{
        if (detacher_busy(workload->calls->detacher)) {
                set_timer(workload, DETACHING_NS);
        } else if (now_monotonic_ns() < workload->pause_until_ns) {
                check_waits(workload);
                set_timer(workload, PAUSE_MIN_NS);
        } else {
                probe_again(workload);
                duty_called(workload); /* its silence may have been too short to be told */
        }
}

/* ---- windows */

static void check_window(struct gpu_workload *workload)
{
        struct call_totals totals;
        struct cost cost;

        if (workload_totals(workload, &totals) < 0)
                return;
        cost = cost_since(workload, &totals);
        note_totals(workload, &totals);
        if (cost.submissions_ns + cost.waits_ns > cost.length_ns / BUSY_SHARE)
                begin_pause(workload, &cost);
        else if (!is_silent(&totals))
                set_timer(workload, NEXT_WINDOW_NS);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct gpu_workload *workload = userdata;

        if (workload->duty == DUTY_PAUSED)
                check_pause(workload);
        else
                check_window(workload);
        return 0;
}

void duty_called(struct gpu_workload *workload)
{
        int enabled = SD_EVENT_OFF;
        struct call_totals totals;

        if (workload->duty != DUTY_PROBING || sd_event_source_get_enabled(workload->timer, &enabled) != 0 ||
            workload_totals(workload, &totals) < 0)
                return;
        note_totals(workload, &totals);
        set_timer(workload, FIRST_WINDOW_NS);
}

int duty_new(struct gpu_workload *workload)
{
        int r = sd_event_add_time(workload->calls->event, &workload->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_timer, workload);

        return r < 0 ? r : sd_event_source_set_enabled(workload->timer, SD_EVENT_OFF);
}

int duty_start(struct gpu_workload *workload)
{
        int r;

        if (workload->duty != DUTY_OFF)
                return 0;
        r = workload_begin_watch(workload);
        if (r >= 0)
                probe_again(workload);
        return r;
}

void duty_stop(struct gpu_workload *workload)
{
        if (workload->duty == DUTY_OFF)
                return;
        workload_end_watch(workload);
        workload->duty = DUTY_OFF;
        sd_event_source_set_enabled(workload->timer, SD_EVENT_OFF);
}
