/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the watch share: watch.c looks and keeps time, tenant.c has what belongs to one tenant, watch_opens.c looks when
 * devices are opened, watch_jobs.c has DRM jobs counted, evidence.c makes evidence of what was read, allocation.c
 * compares what is allocated with what is open, watch_json.c tells. */
#pragma once

#include <sys/queue.h>

#include "activity/cpu.h"
#include "base/macros.h"
#include "gpu/calls.h"
#include "gpu/devices.h"
#include "gpu/drm_fdinfo.h"
#include "gpu/drm_jobs.h"
#include "gpu/holders.h"
#include "gpu/nvml.h"
#include "gpu/watch.h"

struct gpu_device { /* of this machine, known once it was seen */
        enum gpu_node_kind kind;
        unsigned minor;
        char name[GPU_DEVICE_NAME_MAX];
        char driver[32], bus_id[32];
        unsigned strangers; /* processes of no tenant that have it open, at the last look at all processes */
};

struct gpu_use { /* one tenant's of one device */
        struct gpu_device *device;
        struct gpu_machine machine;
        struct gpu_verdict verdict;
        unsigned n_open;          /* processes that have it open */
        uint64_t closed_since_ns; /* nobody has; 0: somebody */
        uint64_t vendor_busy_ns;
        uint32_t percent;
        struct drm_usage *drm; /* NULL for NVIDIA's */
        uint64_t kfd_since_ns, kfd_busy_ns;
        bool allotted; /* of what is allocated to the tenant */
        struct gpu_seconds seconds;
};

struct gpu_allotment { /* a tenant's, as it was told */
        char *name;
        char bus_id[NVML_BUS_ID_SIZE], uuid[NVML_UUID_SIZE]; /* "": not known */
        uint32_t count;
        bool parts, doubtful;
        struct gpu_device *device;  /* the one that it is; NULL: not known */
        uint32_t unopened;          /* of its devices, those that the tenant has never opened */
        struct gpu_machine machine; /* of these */
        struct gpu_verdict verdict;
};

struct gpu_tenant {
        struct gpu_watch *watch;
        TAILQ_ENTRY(gpu_tenant) entry;
        char *name, *cgroup;
        bool found;
        char command[32]; /* of its first process with a device open */
        struct gpu_rules rules;
        uint32_t (*open_requests)(void *userdata);
        void *userdata;

        struct gpu_use *uses;
        size_t n_uses;
        struct gpu_allotment *allotments;
        size_t n_allotments;
        bool told;                   /* what is allocated to it is known */
        struct gpu_seconds unopened; /* of all allotments */
        pid_t *pids;                 /* sorted */
        size_t n_pids;
        bool uses_kfd;
        int look_error; /* -errno: its processes could not be looked at */
        uint64_t looked_ns;

        struct gpu_workload *calls;
        int calls_error; /* why there is none */
        bool read_calls; /* the reading is the last look's */
        struct gpu_calls_reading reading;

        int opens_link;        /* of its own; -1: none */
        uint64_t opens_cgroup; /* what that is attached to */

        uint64_t jobs_cgroup; /* counted under that id; 0: not counted */
        uint64_t jobs, last_job_ns;

        struct cpu_history cpu;
        uint32_t cpu_millicores;
        uint64_t io_bytes, io_bytes_per_second, io_ns;
        struct gpu_verdict verdict;
        uint64_t stepped_ns;
};

TAILQ_HEAD(gpu_tenants, gpu_tenant);

struct gpu_watch {
        sd_event *event;
        char *cgroup_root, *below;
        bool find;
        struct gpu_rules rules;
        sd_event_source *timer;
        struct gpu_majors majors;
        uint64_t drivers_ns; /* when they were last looked for, and not found */
        bool tried_calls;
        struct gpu_calls *calls; /* NULL: probes are not to be had */
        struct nvml *nvml;       /* NULL until NVIDIA's driver is there */
        struct watch_opens *opens;
        struct gpu_drm_jobs *jobs; /* NULL: not counted */
        uint64_t tried_jobs_ns;
        struct gpu_device *devices[NVML_DEVICES_MAX * 2];
        size_t n_devices;
        bool saw_all; /* all processes have been looked at: strangers are known */
        unsigned turn;
        struct gpu_tenants tenants;
        size_t n_found;
        bool told_of_bound;
};

enum { GPU_TURNS_BETWEEN = 6 }; /* looks at tenants without a device, and at all processes, are that much rarer */

/* watch.c. NULL: it is none, or there is no room for it. */
struct gpu_device *watch_device(struct gpu_watch *watch, const struct gpu_node *node);
/* Makes a tenant of the cgroup @path, which is below the watch's root, unless it is one, and looks at it. */
void watch_find_tenant(struct gpu_watch *watch, const char *path);
void watch_stir(struct gpu_watch *watch); /* the next turn is now */
bool watch_holds_device(struct gpu_watch *watch, pid_t pid);

/* watch_opens.c. Once drivers are there, and whenever they may have changed. */
void watch_opens_begin(struct gpu_watch *watch);
void watch_opens_end(struct gpu_watch *watch);
void tenant_watch_opens(struct gpu_tenant *tenant); /* unless that is done, for its present cgroup */
json_t *watch_opens_json(const struct gpu_watch *watch);

/* watch_jobs.c */
void tenant_read_jobs(struct gpu_tenant *tenant);
void tenant_forget_jobs(struct gpu_tenant *tenant);

/* tenant.c */
int tenant_make(struct gpu_watch *watch, const struct gpu_tenant_config *config, bool found, struct gpu_tenant **ret_tenant);
bool tenant_has_pid(const struct gpu_tenant *tenant, pid_t pid);
struct gpu_use *tenant_use(struct gpu_tenant *tenant, const struct gpu_device *device); /* NULL: none */
bool tenant_look(struct gpu_tenant *tenant); /* whether another number of devices is open than before */
void tenant_read(struct gpu_tenant *tenant); /* its calls and CPU use */
void tenant_step(struct gpu_tenant *tenant);

/* allocation.c */
unsigned allotments_unopened(const struct gpu_tenant *tenant);
/* Which open device is which allocated one; afterwards .unopened, .device and the uses' .allotted are right. */
void allotments_match(struct gpu_tenant *tenant);
void allotments_done(struct gpu_tenant *tenant);
const struct gpu_allotment *allotment_of(const struct gpu_tenant *tenant, const struct gpu_device *device); /* or NULL */
/* What is open and not allocated or the reverse, one text an element; null where it is not known what is allocated. */
json_t *allotments_disagreement_json(const struct gpu_tenant *tenant);
json_t *allotments_json(const struct gpu_tenant *tenant);
json_t *device_disagreement_json(const struct gpu_watch *watch, const struct gpu_device *device); /* of all tenants */

/* watch_json.c: state, reason and numbers of a verdict, into @json. */
void add_verdict_json(json_t *json, const struct gpu_verdict *verdict);

/* evidence.c */
void evidence_of(const struct gpu_tenant *tenant, struct gpu_use *use, uint64_t now_ns, struct gpu_evidence *ret_evidence);
const struct nvml_device *evidence_nvml_device(const struct gpu_watch *watch, const struct gpu_device *device);
bool evidence_is_shared(const struct gpu_tenant *tenant, const struct gpu_device *device);
