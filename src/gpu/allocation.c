/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "gpu/watch_private.h"

void allotments_done(struct gpu_tenant *tenant)
{
        for (size_t i = 0; i < tenant->n_allotments; i++)
                free(tenant->allotments[i].name);
        free(tenant->allotments);
        tenant->allotments = NULL;
        tenant->n_allotments = 0;
}

static const struct gpu_allotment *allotment_named(const struct gpu_tenant *tenant, const char *name)
{
        for (size_t i = 0; i < tenant->n_allotments; i++)
                if (strcmp(tenant->allotments[i].name, name) == 0)
                        return &tenant->allotments[i];
        return NULL;
}

static int allotment_make(const struct gpu_tenant *tenant, const struct gpu_allocation *allocation,
                          struct gpu_allotment *ret_allotment)
{
        const struct gpu_allotment *before = allotment_named(tenant, allocation->name);
        struct gpu_allotment made = { .name = strdup(allocation->name),
                                      .count = allocation->count,
                                      .parts = allocation->parts,
                                      .doubtful = allocation->doubtful };

        if (!made.name)
                return -ENOMEM;
        snprintf(made.bus_id, sizeof(made.bus_id), "%s", allocation->bus_id ? allocation->bus_id : "");
        snprintf(made.uuid, sizeof(made.uuid), "%s", allocation->uuid ? allocation->uuid : "");
        if (before) {
                made.machine = before->machine;
                made.verdict = before->verdict;
        } else {
                uint64_t now_ns = now_monotonic_ns();

                gpu_machine_begin(&made.machine, now_ns);
                if (allocation->since_ns)
                        made.machine.began_ns = MIN(allocation->since_ns, now_ns);
        }
        *ret_allotment = made;
        return 0;
}

int gpu_tenant_set_allocations(struct gpu_tenant *tenant, const struct gpu_allocation *allocations, size_t n)
{
        size_t count = MIN(n, (size_t)GPU_ALLOCATIONS_MAX);
        struct gpu_tenant made = { .allotments = calloc(MAX(count, (size_t)1), sizeof(*made.allotments)) };

        if (!made.allotments)
                return -ENOMEM;
        for (; made.n_allotments < count; made.n_allotments++)
                if (allotment_make(tenant, &allocations[made.n_allotments], &made.allotments[made.n_allotments]) < 0) {
                        allotments_done(&made);
                        return -ENOMEM;
                }
        allotments_done(tenant);
        tenant->allotments = made.allotments;
        tenant->n_allotments = made.n_allotments;
        tenant->told = true;
        allotments_match(tenant);
        return 0;
}

/* Whether it is a GPU, as far as is known. */
static bool counts(const struct gpu_allotment *allotment)
{
        return allotment->device || !allotment->doubtful;
}

int gpu_tenant_allocated_devices(const struct gpu_tenant *tenant)
{
        unsigned n = 0;

        if (!tenant->told)
                return -ENODATA;
        for (size_t i = 0; i < tenant->n_allotments; i++)
                n += counts(&tenant->allotments[i]) ? tenant->allotments[i].count : 0;
        return (int)MIN(n, (unsigned)INT32_MAX);
}

static bool is_device(const struct gpu_watch *watch, const struct gpu_allotment *allotment, const struct gpu_device *device)
{
        const struct nvml_device *nvml;

        if (allotment->bus_id[0] && device->bus_id[0])
                return strcasecmp(allotment->bus_id, device->bus_id) == 0;
        nvml = allotment->uuid[0] ? evidence_nvml_device(watch, device) : NULL;
        return nvml && strcmp(allotment->uuid, nvml->uuid) == 0;
}

static struct gpu_device *device_of(const struct gpu_watch *watch, const struct gpu_allotment *allotment)
{
        for (size_t i = 0; i < watch->n_devices; i++)
                if (is_device(watch, allotment, watch->devices[i]))
                        return watch->devices[i];
        return NULL;
}

/* Whether a device of @driver may be what "gpu.nvidia.com/..." or "nvidia.com/gpu" is: by the vendor's domain, and of others any. */
static bool may_be(const char *name, const char *driver)
{
        static const struct {
                const char *domain, *drivers[2];
        } vendors[] = {
                { "nvidia.com", { "nvidia" } },
                { "amd.com", { "amdgpu" } },
                { "intel.com", { "i915", "xe" } },
        };
        size_t length = strcspn(name, "/");

        for (size_t i = 0; i < ELEMENTSOF(vendors); i++) {
                size_t domain = strlen(vendors[i].domain);

                if (length < domain || strncmp(name + length - domain, vendors[i].domain, domain) != 0 ||
                    (length > domain && name[length - domain - 1] != '.'))
                        continue;
                for (size_t j = 0; j < ELEMENTSOF(vendors[i].drivers) && vendors[i].drivers[j]; j++)
                        if (strcmp(vendors[i].drivers[j], driver) == 0)
                                return true;
                return false;
        }
        return true;
}

/* One that is known: opened or not, there is no doubt about it. */
static void match_known(struct gpu_tenant *tenant, struct gpu_allotment *allotment)
{
        struct gpu_use *use;

        allotment->device = device_of(tenant->watch, allotment);
        if (!allotment->device)
                return;
        use = tenant_use(tenant, allotment->device);
        if (use)
                use->allotted = true;
        allotment->unopened = use ? 0 : allotment->count;
}

/* Any device that was opened and is nothing else's may be one of these. */
static void match_others(struct gpu_tenant *tenant, struct gpu_allotment *allotment)
{
        allotment->unopened = counts(allotment) ? allotment->count : 0;
        for (size_t i = 0; i < tenant->n_uses && allotment->unopened > 0; i++) {
                struct gpu_use *use = &tenant->uses[i];

                if (use->allotted || !may_be(allotment->name, use->device->driver))
                        continue;
                use->allotted = true;
                allotment->unopened = allotment->parts ? 0 : allotment->unopened - 1;
        }
}

void allotments_match(struct gpu_tenant *tenant)
{
        for (size_t i = 0; i < tenant->n_uses; i++)
                tenant->uses[i].allotted = false;
        for (size_t i = 0; i < tenant->n_allotments; i++)
                match_known(tenant, &tenant->allotments[i]);
        for (size_t i = 0; i < tenant->n_allotments; i++)
                if (!tenant->allotments[i].device)
                        match_others(tenant, &tenant->allotments[i]);
}

unsigned allotments_unopened(const struct gpu_tenant *tenant)
{
        unsigned n = 0;

        for (size_t i = 0; i < tenant->n_allotments; i++)
                n += tenant->allotments[i].unopened;
        return n;
}

const struct gpu_allotment *allotment_of(const struct gpu_tenant *tenant, const struct gpu_device *device)
{
        for (size_t i = 0; i < tenant->n_allotments; i++)
                if (tenant->allotments[i].device == device)
                        return &tenant->allotments[i];
        return NULL;
}

static void append_text(json_t *list, const char *format, ...) _printf_(2, 3);
static void append_text(json_t *list, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        json_array_append_new(list, json_vsprintf(format, arguments));
        va_end(arguments);
}

static void tell_unopened(json_t *list, const struct gpu_allotment *allotment)
{
        if (allotment->unopened == 0)
                return;
        if (allotment->count > 1)
                append_text(list, "%u of %u %s are allocated and were never opened", allotment->unopened, allotment->count,
                            allotment->name);
        else if (allotment->device)
                append_text(list, "%s (%s) is allocated and was never opened", allotment->device->name, allotment->name);
        else
                append_text(list, "%s is allocated and was never opened", allotment->name);
}

json_t *allotments_disagreement_json(const struct gpu_tenant *tenant)
{
        json_t *list;

        if (!tenant->told)
                return json_null();
        list = json_array();
        for (size_t i = 0; i < tenant->n_allotments; i++)
                tell_unopened(list, &tenant->allotments[i]);
        for (size_t i = 0; i < tenant->n_uses; i++)
                if (tenant->uses[i].n_open > 0 && !tenant->uses[i].allotted)
                        append_text(list, "%s is open and not allocated", tenant->uses[i].device->name);
        return list;
}

static const char *text_or_null(const char *text)
{
        return *text ? text : NULL;
}

static json_t *allotment_json(const struct gpu_allotment *allotment)
{
        json_t *json = json_pack("{ss, si, ss?, ss?, ss?, si}", "name", allotment->name, "count", (int)allotment->count, "device",
                                 allotment->device ? allotment->device->name : NULL, "bus", text_or_null(allotment->bus_id), "uuid",
                                 text_or_null(allotment->uuid), "unopened", (int)allotment->unopened);

        if (json && allotment->unopened > 0)
                add_verdict_json(json, &allotment->verdict);
        return json;
}

json_t *allotments_json(const struct gpu_tenant *tenant)
{
        json_t *list;

        if (!tenant->told)
                return json_null();
        list = json_array();
        for (size_t i = 0; i < tenant->n_allotments; i++)
                if (counts(&tenant->allotments[i]))
                        json_array_append_new(list, allotment_json(&tenant->allotments[i]));
        return list;
}

json_t *device_disagreement_json(const struct gpu_watch *watch, const struct gpu_device *device)
{
        json_t *list = json_array();
        struct gpu_tenant *tenant;

        TAILQ_FOREACH(tenant, &watch->tenants, entry) {
                const struct gpu_use *use = tenant_use(tenant, device);
                const struct gpu_allotment *allotment = allotment_of(tenant, device);

                if (tenant->told && use && use->n_open > 0 && !use->allotted)
                        append_text(list, "open in %s, to which it is not allocated", tenant->name);
                if (allotment && allotment->unopened > 0)
                        append_text(list, "allocated to %s, which has never opened it", tenant->name);
        }
        return list;
}
