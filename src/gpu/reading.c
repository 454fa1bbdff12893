/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"
#include "gpu/calls_private.h"

enum { BATCH = 256 }; /* more than ever share a bucket */

struct batch {
        uint64_t threads[BATCH];
        struct gpu_wait waits[BATCH];
};

static const char *const coverage_names[] = {
        [GPU_COVERAGE_UNKNOWN] = "unknown", [GPU_COVERAGE_PARTIAL] = "partial", [GPU_COVERAGE_DISARMED] = "disarmed",
        [GPU_COVERAGE_NONE] = "none",       [GPU_COVERAGE_SAMPLED] = "sampled", [GPU_COVERAGE_FULL] = "full",
};
static_assert(ELEMENTSOF(coverage_names) == GPU_COVERAGE_MAX, "every coverage has a name");

const char *gpu_coverage_to_string(enum gpu_coverage coverage)
{
        return coverage_names[coverage];
}

/* ---- counters */

static void add_counts(struct call_totals *totals, const struct gpu_counts *counts)
{
        totals->submissions += counts->submissions;
        totals->waits += counts->waits;
        totals->lost_waits += counts->lost_waits;
        totals->last_submission_ns = MAX(totals->last_submission_ns, counts->last_submission_ns);
        totals->last_wait_ns = MAX(totals->last_wait_ns, counts->last_wait_ns);
}

int workload_totals(const struct gpu_workload *workload, struct call_totals *ret_totals)
{
        const struct gpu_calls *calls = workload->calls;
        _cleanup_(freep) struct gpu_counts *counts = calloc((size_t)calls->n_cpus, sizeof(*counts));
        struct call_totals totals = {};

        if (!counts)
                return -ENOMEM;
        if (workload->duty != DUTY_OFF) {
                if (bpf_map_lookup_elem(bpf_map__fd(calls->programs->maps.gpu_counts), &workload->watch, counts) < 0)
                        return -errno;
                for (int i = 0; i < calls->n_cpus; i++)
                        add_counts(&totals, &counts[i]);
        }
        *ret_totals = totals;
        return 0;
}

/* How many threads wait in @watch. One that waits all the time is not missed: an entry does not change its bucket. */
static int walk_waits(const struct gpu_calls *calls, uint64_t watch, bool forget, uint32_t *ret_threads)
{
        int fd = bpf_map__fd(calls->programs->maps.gpu_waits), r = 0;
        _cleanup_(freep) struct batch *batch = malloc(sizeof(*batch));
        __u32 position, *in = NULL, n, threads = 0;

        if (!batch)
                return -ENOMEM;
        while (r == 0) {
                n = BATCH;
                if (bpf_map_lookup_batch(fd, in, &position, batch->threads, batch->waits, &n, NULL) < 0)
                        r = -errno;
                if (r < 0 && r != -ENOENT) /* there are no more */
                        return r;
                in = &position;
                for (__u32 i = 0; i < n; i++) {
                        if (batch->waits[i].watch != watch)
                                continue;
                        threads++;
                        if (forget)
                                bpf_map_delete_elem(fd, &batch->threads[i]);
                }
        }
        *ret_threads = threads;
        return 0;
}

int workload_waiting(const struct gpu_workload *workload, uint32_t *ret_threads)
{
        if (workload->duty == DUTY_OFF || workload->waits_off) {
                *ret_threads = 0;
                return 0;
        }
        return walk_waits(workload->calls, workload->watch, false, ret_threads);
}

void workload_forget_waits(const struct gpu_workload *workload)
{
        uint32_t threads;

        walk_waits(workload->calls, workload->watch, true, &threads);
}

/* ---- what they cover */

static enum gpu_coverage coverage_of(const struct gpu_workload *workload)
{
        if (workload->reason[0])
                return GPU_COVERAGE_PARTIAL;
        if (workload->duty == DUTY_OFF)
                return GPU_COVERAGE_DISARMED;
        if (workload->n_users == 0)
                return GPU_COVERAGE_NONE;
        return workload->duty == DUTY_PAUSED ? GPU_COVERAGE_SAMPLED : GPU_COVERAGE_FULL;
}

static void fill_coverage(struct gpu_workload *workload, const struct call_totals *totals, struct gpu_calls_reading *reading)
{
        if (totals->lost_waits && workload->reason[0] == '\0') {
                snprintf(workload->reason, sizeof(workload->reason), "more than %d threads waited at once", GPU_WAITS_MAX);
                workload->covered_since_ns = 0;
        }
        reading->coverage = coverage_of(workload);
        if (reading->coverage == GPU_COVERAGE_NONE || reading->coverage == GPU_COVERAGE_FULL)
                reading->covered_since_ns = workload->covered_since_ns;
        if (reading->covered_since_ns && !reading->waiting) {
                uint64_t last_ns = MAX(reading->last_submission_ns, reading->last_wait_ns);

                reading->quiet_since_ns = MAX(reading->covered_since_ns, last_ns);
        }
        memcpy(reading->reason, workload->reason, sizeof(reading->reason));
}

static void count_libraries(const struct gpu_workload *workload, struct gpu_calls_reading *reading)
{
        struct gpu_library_view views[PROCESS_LIBRARIES_MAX * 4];
        size_t n = gpu_workload_libraries(workload, views, ELEMENTSOF(views));

        reading->libraries = (uint32_t)n;
        for (size_t i = 0; i < MIN(n, ELEMENTSOF(views)); i++) {
                reading->unprobed += views[i].reason != NULL;
                reading->slow += views[i].slow > 0;
        }
}

int gpu_calls_read(struct gpu_workload *workload, struct gpu_calls_reading *ret_reading)
{
        struct gpu_calls_reading reading = {};
        struct call_totals totals = {};
        int r;

        r = workload_look(workload, 0);
        if (r < 0)
                return r;
        /* Waits before totals: one that ended in between has left its time behind. */
        r = workload_waiting(workload, &reading.waiting);
        if (r >= 0)
                r = workload_totals(workload, &totals);
        if (r < 0)
                return r;

        reading.read_ns = now_monotonic_ns();
        reading.submissions = totals.submissions;
        reading.waits = totals.waits;
        reading.last_submission_ns = totals.last_submission_ns;
        reading.last_wait_ns = totals.last_wait_ns;
        reading.processes = (uint32_t)workload->n_processes;
        reading.users = workload->n_users;
        reading.initialised_ns = workload->initialised_ns;
        count_libraries(workload, &reading);
        fill_coverage(workload, &totals, &reading);
        *ret_reading = reading;
        return 0;
}

/* ---- libraries */

static struct gpu_library_view *find_view(struct gpu_library_view *views, size_t n, const struct library *library)
{
        for (size_t i = 0; i < n; i++)
                if (views[i].device == library->id.device && views[i].inode == library->id.inode)
                        return &views[i];
        return NULL;
}

static struct gpu_library_view view_of(const struct library *library)
{
        return (struct gpu_library_view){
                .path = library->path,
                .vendor = library->vendor,
                .device = library->id.device,
                .inode = library->id.inode,
                .functions = (uint32_t)(library->n_offsets[DRIVER_ROLE_SUBMIT] + library->n_offsets[DRIVER_ROLE_WAIT]),
                .slow = (uint32_t)library->n_slow,
                .deleted = library->deleted,
                .reason = library->reason,
        };
}

size_t gpu_workload_libraries(const struct gpu_workload *workload, struct gpu_library_view *ret_libraries, size_t max)
{
        size_t n = 0;

        for (size_t i = 0; i < workload->n_processes; i++)
                for (size_t j = 0; j < workload->processes[i].n_uses; j++) {
                        const struct use *use = &workload->processes[i].uses[j];
                        struct gpu_library_view *view = find_view(ret_libraries, n, use->library);

                        if (!view && n < max) {
                                view = &ret_libraries[n++];
                                *view = view_of(use->library);
                        }
                        if (!view)
                                continue;
                        view->processes++;
                        if (use->error && !view->reason)
                                view->reason = probe_reason(use->error);
                }
        return n;
}
