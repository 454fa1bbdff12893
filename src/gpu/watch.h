/* SPDX-License-Identifier: Apache-2.0 */
/* Watching GPUs: which workloads have which device open, what each does with it, and the verdict on that.
 *
 * A *tenant* is a workload, a cgroup with all below it, as the holder of devices. Tenants are named by who runs them, or found: then
 * every cgroup of this machine whose processes have a GPU open is one. Every five seconds the descriptors of tenants with devices are
 * looked through, and the calls, NVML and the kernel asked; the others are looked at when one of their processes opens a device, as far
 * as the kernel tells that (opens.h), and twice a minute. On a machine without a GPU driver nothing is done but to look for one twice a
 * minute.
 *
 * A device that a tenant has had open once stays its device: when it was last used still counts after it was closed. What was allocated
 * to a tenant is told by whoever knows, and each device of that counts as the tenant's before it is opened, too.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "gpu/permission.h"
#include "gpu/verdict.h"

struct gpu_watch;
struct gpu_tenant;

struct gpu_watch_config {
        sd_event *event;
        const char *cgroup_root; /* the cgroup2 mount */
        bool find;               /* tenants are found */
        const char *below;       /* a cgroup2 directory: only there; NULL: everywhere */
        struct gpu_rules rules;  /* of those, and what the rules of others leave 0 */
};

enum {
        GPU_TENANTS_FOUND_MAX = 1024, /* further ones are not watched */
        GPU_USES_MAX = 64,            /* devices of one tenant */
        GPU_ALLOCATIONS_MAX = 64,     /* of one tenant; further ones are left out */
};

/* Returns 0, or -errno after logging which step failed. */
int gpu_watch_new(const struct gpu_watch_config *config, struct gpu_watch **ret_watch);
struct gpu_watch *gpu_watch_free(struct gpu_watch *watch); /* accepts NULL, returns NULL; named tenants must have been freed */

struct gpu_tenant_config {
        const char *name;
        const char *cgroup; /* a cgroup2 directory */
        struct gpu_rules rules;
        uint32_t (*open_requests)(void *userdata); /* its unanswered requests; NULL: not known, none */
        void *userdata;
};
/* Returns 0 or -ENOMEM. No two tenants may have one cgroup. */
int gpu_tenant_new(struct gpu_watch *watch, const struct gpu_tenant_config *config, struct gpu_tenant **ret_tenant);
struct gpu_tenant *gpu_tenant_free(struct gpu_tenant *tenant); /* accepts NULL, returns NULL */
void gpu_tenant_set_rules(struct gpu_tenant *tenant, const struct gpu_rules *rules);

/* What somebody allocated to a tenant: so many devices by the name of their kind, as device plugins do, or one that is known, as DRA
 * does. */
struct gpu_allocation {
        const char *name;   /* "nvidia.com/gpu", "gpu.nvidia.com/n1/gpu-0" */
        const char *bus_id; /* "0000:65:00.0"; NULL: not known */
        const char *uuid;   /* "GPU-..."; NULL: not known */
        uint32_t count;     /* of devices; 1 for one that is known */
        bool parts;         /* these are parts of devices, and one device may be all of them */
        bool doubtful;      /* it is no GPU unless it turns out to be a device that is known here */
        uint64_t since_ns;  /* it has been allocated and watched since then; 0: now */
};
/* Replaces what was told before; an allocation of the same name is the same one. Until the first call it is not known whether anything
 * is allocated, and what a tenant has open is in no disagreement with that. Returns 0 or -ENOMEM. */
int gpu_tenant_set_allocations(struct gpu_tenant *tenant, const struct gpu_allocation *allocations, size_t n);
/* How many devices that is, or -ENODATA where it is not known. */
int gpu_tenant_allocated_devices(const struct gpu_tenant *tenant);

/* Looks afresh. Its devices are those that are open, were so since it was made a tenant, or are allocated and not opened yet; none is for
 * certain. Where it could not be looked at it is unknown, and has at least one. */
void gpu_tenant_judge(struct gpu_tenant *tenant, struct gpu_standing *ret_standing);
void gpu_tenant_known(const struct gpu_tenant *tenant, struct gpu_standing *ret_standing); /* the same, as of the last look */

struct gpu_seconds {                  /* monotonic; device times time */
        double allocated;             /* or open */
        double active, idle, unknown; /* idle: quiet ones and all that is more idle */
};
struct gpu_seconds gpu_tenant_seconds(const struct gpu_tenant *tenant);
unsigned gpu_tenant_open_devices(const struct gpu_tenant *tenant); /* at the last look */

/* As docs/control-api.md has them; NULL: no memory. */
json_t *gpu_watch_json(struct gpu_watch *watch); /* {devices, workloads, sources} */
json_t *gpu_tenant_json(struct gpu_tenant *tenant);

/* What metrics tell, tenant by tenant, while @each returns. */
struct gpu_tenant_metrics {
        const char *name;
        const struct gpu_verdict *verdict;
        struct gpu_seconds seconds;
        uint64_t submissions;
        unsigned devices; /* open */
        int allocated;    /* negative: not known */
};
void gpu_watch_metrics(struct gpu_watch *watch, void (*each)(const struct gpu_tenant_metrics *metrics, void *userdata),
                       void *userdata);
