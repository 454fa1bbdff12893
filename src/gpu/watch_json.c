/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "gpu/watch_private.h"

static double seconds(uint64_t ns)
{
        return (double)(ns / NSEC_PER_MSEC) / 1e3;
}

static json_t *sources_json(uint32_t sources)
{
        json_t *json = json_array();

        for (int kind = 0; kind < GPU_SOURCE_MAX; kind++)
                if (sources & (1u << kind))
                        json_array_append_new(json, json_string(gpu_source_to_string(kind)));
        return json;
}

void add_verdict_json(json_t *json, const struct gpu_verdict *verdict)
{
        uint64_t now_ns = now_monotonic_ns(), since_ns = verdict->since_ns ? verdict->since_ns : now_ns;

        json_object_set_new(json, "state", json_string(gpu_state_to_string(verdict->state)));
        json_object_set_new(json, "reason", json_string(verdict->reason));
        json_object_set_new(json, "since_seconds", json_real(seconds(now_ns - since_ns)));
        json_object_set_new(json, "idle_seconds", json_real(seconds(verdict->idle_ns)));
        json_object_set_new(json, "required_seconds", json_real(seconds(verdict->required_ns)));
        json_object_set_new(json, "sources", sources_json(verdict->sources));
}

static json_t *use_json(const struct gpu_use *use)
{
        json_t *json = json_pack("{ss, sb, si, si}", "device", use->device->name, "open", (int)(use->n_open > 0), "processes",
                                 (int)use->n_open, "percent", (int)use->percent);

        if (json)
                add_verdict_json(json, &use->verdict);
        return json;
}

static json_t *calls_json(const struct gpu_tenant *tenant)
{
        const struct gpu_calls_reading *reading = &tenant->reading;

        if (!tenant->read_calls)
                return json_null();
        return json_pack("{sI, sI, si, ss, ss, si, si, si}", "submissions", (json_int_t)reading->submissions, "waits",
                         (json_int_t)reading->waits, "waiting", (int)reading->waiting, "coverage",
                         gpu_coverage_to_string(reading->coverage), "reason", reading->reason, "libraries", (int)reading->libraries,
                         "unprobed", (int)reading->unprobed, "slow_probes", (int)reading->slow);
}

json_t *gpu_tenant_json(struct gpu_tenant *tenant)
{
        struct gpu_seconds sum = gpu_tenant_seconds(tenant);
        json_t *uses = json_array(), *json;

        for (size_t i = 0; i < tenant->n_uses; i++)
                json_array_append_new(uses, use_json(&tenant->uses[i]));
        json = json_pack("{ss, ss, ss, si, si, sf, so, so, s{sf, sf, sf, sf}}", "name", tenant->name, "cgroup", tenant->cgroup,
                         "command", tenant->command, "processes", (int)tenant->n_pids, "open_devices",
                         (int)gpu_tenant_open_devices(tenant), "cpu_cores", tenant->cpu_millicores / 1e3, "devices", uses, "calls",
                         calls_json(tenant), "gpu_seconds", "allocated", sum.allocated, "active", sum.active, "idle", sum.idle,
                         "unknown", sum.unknown);
        if (!json)
                return NULL;
        json_object_set_new(json, "jobs", tenant->jobs_cgroup ? json_integer((json_int_t)tenant->jobs) : json_null());
        json_object_set_new(json, "allocations", allotments_json(tenant));
        json_object_set_new(json, "disagreement", allotments_disagreement_json(tenant));
        add_verdict_json(json, &tenant->verdict);
        return json;
}

/* The verdict of a tenant on the device: on its use, or on an allocation that it never opened; NULL: it has nothing to do with it. */
static const struct gpu_verdict *verdict_on(struct gpu_tenant *tenant, const struct gpu_device *device)
{
        const struct gpu_use *use = tenant_use(tenant, device);
        const struct gpu_allotment *allotment = allotment_of(tenant, device);

        if (use)
                return use->n_open > 0 ? &use->verdict : NULL;
        return allotment ? &allotment->verdict : NULL;
}

static void add_free(json_t *json, const struct gpu_device *device)
{
        json_object_set_new(json, "state", json_string(device->strangers ? "unknown" : "free"));
        json_object_set_new(
                json, "reason",
                json_string(device->strangers ? "only processes that are not watched have it open" : "nobody has it open"));
}

/* Who has it open, to whom it is allocated, the verdict of all these, and nothing where there is nobody. */
static void add_tenants(json_t *json, const struct gpu_watch *watch, const struct gpu_device *device)
{
        json_t *names = json_array(), *allocated = json_array();
        struct gpu_part parts[GPU_USES_MAX];
        struct gpu_tenant *tenant;
        struct gpu_verdict all;
        size_t n = 0;

        TAILQ_FOREACH(tenant, &watch->tenants, entry) {
                const struct gpu_verdict *verdict = verdict_on(tenant, device);
                const struct gpu_use *use = tenant_use(tenant, device);

                if (use && use->n_open > 0)
                        json_array_append_new(names, json_string(tenant->name));
                if (allotment_of(tenant, device))
                        json_array_append_new(allocated, json_string(tenant->name));
                if (verdict && n < ELEMENTSOF(parts))
                        parts[n++] = (struct gpu_part){ tenant->name, verdict };
        }
        json_object_set_new(json, "workloads", names);
        json_object_set_new(json, "allocated_to", allocated);
        json_object_set_new(json, "disagreement", device_disagreement_json(watch, device));
        json_object_set_new(json, "other_processes", json_integer(device->strangers));
        if (n > 0) {
                gpu_verdict_all(parts, n, &all);
                add_verdict_json(json, &all);
        } else {
                add_free(json, device);
        }
}

static json_t *device_json(const struct gpu_watch *watch, const struct gpu_device *device)
{
        const struct nvml_device *nvml = evidence_nvml_device(watch, device);
        json_t *json = json_pack("{ss, ss, ss}", "name", device->name, "driver", device->driver, "bus", device->bus_id);

        if (!json)
                return NULL;
        if (nvml) {
                json_object_set_new(json, "model", json_string(nvml->name));
                json_object_set_new(json, "uuid", json_string(nvml->uuid));
                json_object_set_new(json, "mig", json_boolean(nvml->mig));
                json_object_set_new(json, "percent", nvml->percent_since_ns ? json_integer(nvml->percent) : json_null());
                json_object_set_new(json, "memory_used_bytes", json_integer((json_int_t)nvml->memory_used));
                json_object_set_new(json, "memory_total_bytes", json_integer((json_int_t)nvml->memory_total));
                json_object_set_new(json, "power_watts", json_real(nvml->power_milliwatts / 1e3));
        }
        add_tenants(json, watch, device);
        return json;
}

static json_t *watch_sources_json(const struct gpu_watch *watch)
{
        const char *nvml = "there is no NVIDIA driver", *calls = watch->calls ? gpu_calls_method(watch->calls) : "none";

        if (watch->nvml)
                nvml = nvml_latest(watch->nvml)->problem[0] ? nvml_latest(watch->nvml)->problem : "it answers";
        return json_pack("{ss, ss, so, ss}", "nvml", nvml, "probes", calls, "opens", watch_opens_json(watch), "jobs",
                         watch->jobs ? gpu_drm_jobs_tracepoint(watch->jobs) : "none");
}

json_t *gpu_watch_json(struct gpu_watch *watch)
{
        json_t *devices = json_array(), *workloads = json_array();
        struct gpu_tenant *tenant;

        for (size_t i = 0; i < watch->n_devices; i++)
                json_array_append_new(devices, device_json(watch, watch->devices[i]));
        TAILQ_FOREACH(tenant, &watch->tenants, entry)
                if (tenant->n_uses > 0 || tenant->n_allotments > 0)
                        json_array_append_new(workloads, gpu_tenant_json(tenant));
        return json_pack("{so, so, so}", "devices", devices, "workloads", workloads, "sources", watch_sources_json(watch));
}
