/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "gpu/watch_private.h"

static void add_calls(const struct gpu_tenant *tenant, const struct gpu_use *use, struct gpu_evidence *evidence)
{
        struct gpu_source *source = &evidence->sources[GPU_SOURCE_CALLS];
        const struct gpu_calls_reading *reading = &tenant->reading;

        if (!tenant->read_calls) {
                source->lack = tenant->calls         ? "they could not be read"
                               : tenant->calls_error ? strerror(-tenant->calls_error)
                                                     : "not probed";
                return;
        }
        source->read_ns = reading->read_ns;
        source->since_ns = reading->covered_since_ns;
        source->last_busy_ns = MAX(reading->last_submission_ns, reading->last_wait_ns);
        evidence->waiting = reading->waiting;

        switch (reading->coverage) {
        case GPU_COVERAGE_FULL:
                source->known = reading->covered_since_ns > 0;
                source->lack = "not all of them are seen yet";
                break;
        case GPU_COVERAGE_NONE: /* whoever has a device open without one of these libraries has other ways to it */
                source->known = use->n_open == 0 && reading->covered_since_ns > 0;
                source->lack = "it has loaded no driver library that lull knows";
                break;
        case GPU_COVERAGE_SAMPLED:
                source->known = true;
                source->since_ns = source->last_busy_ns = reading->read_ns;
                break;
        case GPU_COVERAGE_PARTIAL:
                evidence->blind = reading->reason;
                source->lack = "not all of them are seen";
                break;
        case GPU_COVERAGE_UNKNOWN:
                source->lack = reading->reason;
                break;
        case GPU_COVERAGE_DISARMED:
        case GPU_COVERAGE_MAX:
                source->lack = "they are not probed";
                break;
        }
}

const struct nvml_device *evidence_nvml_device(const struct gpu_watch *watch, const struct gpu_device *device)
{
        const struct nvml_snapshot *snapshot;

        if (!watch->nvml || device->kind != GPU_NODE_NVIDIA)
                return NULL;
        snapshot = nvml_latest(watch->nvml);
        for (uint32_t i = 0; i < snapshot->n_devices; i++)
                if (snapshot->devices[i].minor == device->minor)
                        return &snapshot->devices[i];
        return NULL;
}

/* Processes of no tenant count, too; while not all processes have been looked at, there may be some. */
bool evidence_is_shared(const struct gpu_tenant *tenant, const struct gpu_device *device)
{
        const struct gpu_tenant *other;

        if (!tenant->watch->saw_all || device->strangers > 0)
                return true;
        TAILQ_FOREACH(other, &tenant->watch->tenants, entry) {
                const struct gpu_use *use = other == tenant ? NULL : tenant_use((struct gpu_tenant *)other, device);

                if (use && (use->n_open > 0 || other->look_error < 0))
                        return true;
        }
        return false;
}

static uint32_t percent_of_processes(const struct gpu_tenant *tenant, const struct nvml_device *device)
{
        uint32_t percent = 0;

        for (uint32_t i = 0; i < device->n_processes; i++)
                if (tenant_has_pid(tenant, (pid_t)device->processes[i].pid))
                        percent = MAX(percent, device->processes[i].percent);
        return percent;
}

static const char *vendor_lack(const struct nvml_snapshot *snapshot, const struct nvml_device *device)
{
        if (snapshot->problem[0])
                return snapshot->problem;
        if (!device)
                return "it does not know the device";
        return device->problem[0] ? device->problem : "it does not tell the utilisation";
}

/* The device's own utilisation is the better source, but for a shared device only that of processes means anything. */
static void add_vendor(const struct gpu_tenant *tenant, struct gpu_use *use, struct gpu_evidence *evidence)
{
        struct gpu_source *source = &evidence->sources[GPU_SOURCE_VENDOR];
        const struct gpu_watch *watch = tenant->watch;
        const struct nvml_device *device;
        const struct nvml_snapshot *snapshot;

        if (use->device->kind != GPU_NODE_NVIDIA)
                return;
        if (!watch->nvml) {
                source->lack = "it is not asked";
                return;
        }
        device = evidence_nvml_device(watch, use->device);
        snapshot = nvml_latest(watch->nvml);
        source->lack = vendor_lack(snapshot, device);
        source->last_busy_ns = use->vendor_busy_ns;
        if (!device || tenant->look_error < 0)
                return;

        source->read_ns = snapshot->read_ns;
        source->whole_device = device->percent_since_ns && (!evidence->shared || !device->processes_since_ns);
        source->since_ns = source->whole_device ? device->percent_since_ns : device->processes_since_ns;
        source->known = source->since_ns > 0;
        use->percent = source->whole_device ? device->percent : percent_of_processes(tenant, device);
        evidence->percent = use->percent;
        evidence->power_milliwatts = device->power_milliwatts;
        if (source->known && use->percent > 0 && !(source->whole_device && evidence->shared))
                source->last_busy_ns = use->vendor_busy_ns = MAX(use->vendor_busy_ns, snapshot->read_ns);
}

static void add_kernel(const struct gpu_tenant *tenant, const struct gpu_use *use, struct gpu_evidence *evidence)
{
        struct gpu_source *source = &evidence->sources[GPU_SOURCE_KERNEL];
        struct drm_usage_totals totals;

        source->read_ns = tenant->looked_ns;
        if (tenant->look_error < 0) {
                source->lack = "its processes could not be looked at";
                return;
        }
        if (use->drm) {
                totals = drm_usage_totals(use->drm);
                source->last_busy_ns = MAX(totals.last_busy_ns, use->kfd_busy_ns);
                source->last_busy_ns = MAX(source->last_busy_ns, tenant->last_job_ns);
                source->since_ns = tenant->uses_kfd ? MAX(totals.since_ns, use->kfd_since_ns) : totals.since_ns;
                source->known = totals.since_ns && (!tenant->uses_kfd || use->kfd_since_ns);
                source->lack = "the driver does not count what each client uses";
        }
        if (use->n_open == 0) {
                source->since_ns = use->closed_since_ns;
                source->known = true;
        }
}

void evidence_of(const struct gpu_tenant *tenant, struct gpu_use *use, uint64_t now_ns, struct gpu_evidence *ret_evidence)
{
        struct gpu_evidence evidence = {
                .shared = evidence_is_shared(tenant, use->device),
                .opens_known = tenant->look_error == 0,
                .opened = use->n_open > 0,
                .cpu_millicores = tenant->cpu_millicores,
                .io_bytes_per_second = tenant->io_bytes_per_second,
        };

        if (tenant->open_requests)
                evidence.open_requests = tenant->open_requests(tenant->userdata);
        add_calls(tenant, use, &evidence);
        add_vendor(tenant, use, &evidence);
        add_kernel(tenant, use, &evidence);
        *ret_evidence = evidence;
}
