/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/watch.h"

#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "gpu/watch_private.h"

#define TURN_NS (5 * NSEC_PER_SEC)
#define TURN_WITHOUT_GPU_NS (30 * NSEC_PER_SEC)
#define DRIVERS_NS NSEC_PER_SEC /* many tenants may be judged at once */

enum { DRM_RENDER_FIRST = 128, DRM_RENDER_LAST = 191 };

static struct gpu_device *find_device(const struct gpu_watch *watch, enum gpu_node_kind kind, unsigned minor)
{
        for (size_t i = 0; i < watch->n_devices; i++)
                if (watch->devices[i]->kind == kind && watch->devices[i]->minor == minor)
                        return watch->devices[i];
        return NULL;
}

static struct gpu_device *add_device(struct gpu_watch *watch, enum gpu_node_kind kind, unsigned minor)
{
        struct gpu_device *device = find_device(watch, kind, minor);

        if (device || watch->n_devices == ELEMENTSOF(watch->devices))
                return device;
        device = calloc(1, sizeof(*device));
        if (!device)
                return NULL;
        device->kind = kind;
        device->minor = minor;
        gpu_device_name(kind, minor, device->name);
        snprintf(device->driver, sizeof(device->driver), "%s", kind == GPU_NODE_NVIDIA ? "nvidia" : "");
        watch->devices[watch->n_devices++] = device;
        return device;
}

static struct gpu_device *drm_device(struct gpu_watch *watch, unsigned minor)
{
        struct gpu_device *device = find_device(watch, GPU_NODE_DRM, minor);
        struct gpu_drm_device drm;

        if (device || gpu_drm_find("/sys", watch->majors.drm, minor, &drm) < 0)
                return device;
        device = add_device(watch, GPU_NODE_DRM, drm.render_minor);
        if (device) {
                snprintf(device->driver, sizeof(device->driver), "%s", drm.driver);
                snprintf(device->bus_id, sizeof(device->bus_id), "%s", drm.bus_id);
        }
        return device;
}

struct gpu_device *watch_device(struct gpu_watch *watch, const struct gpu_node *node)
{
        if (node->kind == GPU_NODE_NVIDIA)
                return add_device(watch, GPU_NODE_NVIDIA, node->minor);
        return node->kind == GPU_NODE_DRM ? drm_device(watch, node->minor) : NULL;
}

static void list_drm_devices(struct gpu_watch *watch)
{
        for (unsigned minor = DRM_RENDER_FIRST; watch->majors.drm && minor <= DRM_RENDER_LAST; minor++)
                drm_device(watch, minor);
}

/* What is not there any more stays known: somebody may hold it. */
static void list_nvml_devices(struct gpu_watch *watch)
{
        const struct nvml_snapshot *snapshot = watch->nvml ? nvml_latest(watch->nvml) : NULL;

        for (uint32_t i = 0; snapshot && i < snapshot->n_devices; i++) {
                struct gpu_device *device = NULL;

                if (snapshot->devices[i].minor != UINT32_MAX)
                        device = add_device(watch, GPU_NODE_NVIDIA, snapshot->devices[i].minor);
                if (device)
                        snprintf(device->bus_id, sizeof(device->bus_id), "%s", snapshot->devices[i].bus_id);
        }
}

struct census { /* a look at one of all processes */
        struct gpu_watch *watch;
        bool holds; /* it has a device open */
};

static void on_any_holder(pid_t pid, int fd, const struct gpu_node *node, void *userdata)
{
        struct census *census = userdata;
        struct gpu_device *device = watch_device(census->watch, node);

        if (device)
                census->holds = true;
}

bool watch_holds_device(struct gpu_watch *watch, pid_t pid)
{
        struct census census = { .watch = watch };

        return gpu_holders_of_process("/proc", &watch->majors, pid, on_any_holder, &census) >= 0 && census.holds;
}

static void on_stranger(pid_t pid, int fd, const struct gpu_node *node, void *userdata)
{
        struct gpu_watch *watch = userdata;
        struct gpu_device *device = watch_device(watch, node);

        if (device)
                device->strangers++;
}

static bool is_of_a_tenant(const struct gpu_watch *watch, pid_t pid)
{
        const struct gpu_tenant *tenant;

        TAILQ_FOREACH(tenant, &watch->tenants, entry)
                if (tenant_has_pid(tenant, pid))
                        return true;
        return false;
}

static struct gpu_tenant *tenant_of_cgroup(struct gpu_watch *watch, const char *cgroup)
{
        struct gpu_tenant *tenant;

        TAILQ_FOREACH(tenant, &watch->tenants, entry)
                if (strcmp(tenant->cgroup, cgroup) == 0)
                        return tenant;
        return NULL;
}

void watch_find_tenant(struct gpu_watch *watch, const char *path)
{
        _cleanup_(freep) char *cgroup = NULL;
        struct gpu_tenant *tenant;

        if (asprintf(&cgroup, "%s%s", watch->cgroup_root, strcmp(path, "/") == 0 ? "" : path) < 0) {
                cgroup = NULL;
                return;
        }
        if (watch->below && !cgroup_is_inside(cgroup, watch->below))
                return;
        tenant = tenant_of_cgroup(watch, cgroup);
        if (!tenant) {
                struct gpu_tenant_config config = { .name = path[1] ? path + 1 : "/", .cgroup = cgroup, .rules = watch->rules };

                if (watch->n_found == GPU_TENANTS_FOUND_MAX) {
                        if (!watch->told_of_bound)
                                log_warning("more than %d workloads have a GPU open; further ones are not watched",
                                            GPU_TENANTS_FOUND_MAX);
                        watch->told_of_bound = true;
                        return;
                }
                if (tenant_make(watch, &config, true, &tenant) < 0)
                        return;
                watch->n_found++;
        }
        tenant_look(tenant);
}

/* Makes a tenant of the cgroup that the process is in. */
static void find_tenant(struct gpu_watch *watch, pid_t pid)
{
        _cleanup_(freep) char *path = NULL;

        if (gpu_process_cgroup("/proc", pid, &path) >= 0)
                watch_find_tenant(watch, path);
}

/* Who of all processes has a device open: tenants to be found, or strangers. Those of tenants are known already. */
static void look_at_all(struct gpu_watch *watch)
{
        _cleanup_(freep) pid_t *pids = NULL;
        int n = gpu_all_processes("/proc", &pids);

        for (size_t i = 0; i < watch->n_devices; i++)
                watch->devices[i]->strangers = 0;
        watch->saw_all = n >= 0;
        for (int i = 0; i < n; i++) {
                if (is_of_a_tenant(watch, pids[i]) || !watch_holds_device(watch, pids[i]))
                        continue;
                if (watch->find)
                        find_tenant(watch, pids[i]);
                if (!is_of_a_tenant(watch, pids[i]))
                        gpu_holders_of_process("/proc", &watch->majors, pids[i], on_stranger, watch);
        }
}

/* A found tenant whose cgroup is gone or empty. */
static void forget_gone(struct gpu_watch *watch)
{
        struct gpu_tenant *tenant, *next;

        for (tenant = TAILQ_FIRST(&watch->tenants); tenant; tenant = next) {
                next = TAILQ_NEXT(tenant, entry);
                if (tenant->found && (tenant->look_error == -ENOENT || tenant->n_pids == 0))
                        gpu_tenant_free(tenant);
        }
}

static void step_all(struct gpu_watch *watch)
{
        struct gpu_tenant *tenant;

        list_nvml_devices(watch);
        TAILQ_FOREACH(tenant, &watch->tenants, entry)
                tenant_step(tenant);
}

static void on_nvml(void *userdata)
{
        step_all(userdata);
}

void watch_stir(struct gpu_watch *watch)
{
        sd_event_source_set_time(watch->timer, now_monotonic_ns() / NSEC_PER_USEC);
}

/* What seemed idle is looked at now, not at the next turn. */
static void on_stirred(struct gpu_workload *workload, void *userdata)
{
        struct gpu_tenant *tenant = userdata;

        if (tenant->verdict.state != GPU_ACTIVE)
                watch_stir(tenant->watch);
}

/* Returns whether there is anything to watch. A driver that has been there is taken to stay. */
static bool look_for_drivers(struct gpu_watch *watch)
{
        struct gpu_majors majors;
        static const struct gpu_calls_callbacks callbacks = { .stirred = on_stirred };
        uint64_t now_ns = now_monotonic_ns();
        int r;

        if (watch->drivers_ns && now_ns - watch->drivers_ns < DRIVERS_NS)
                return false;
        watch->drivers_ns = now_ns;
        r = gpu_majors_read(&majors);
        if (r < 0 || !gpu_majors_any(&majors))
                return false;
        watch->majors = majors;
        watch_opens_begin(watch);
        if (!watch->tried_calls && gpu_calls_new(watch->event, &callbacks, NULL, &watch->calls) < 0)
                log_warning("calls to GPU drivers cannot be counted here: what GPUs do stays unknown");
        watch->tried_calls = true;
        if (watch->majors.nvidia && !watch->nvml) {
                r = nvml_new(watch->event, NULL, &watch->nvml);
                if (r >= 0)
                        nvml_on_read(watch->nvml, on_nvml, watch);
        }
        return true;
}

static unsigned count_devices(const struct gpu_tenant *tenant)
{
        return (unsigned)tenant->n_uses + allotments_unopened(tenant);
}

static bool has_devices(const struct gpu_watch *watch)
{
        const struct gpu_tenant *tenant;

        TAILQ_FOREACH(tenant, &watch->tenants, entry)
                if (count_devices(tenant) > 0)
                        return true;
        return false;
}

static void look(struct gpu_watch *watch)
{
        struct gpu_tenant *tenant;
        bool all = watch->turn++ % GPU_TURNS_BETWEEN == 0;

        if (all)
                look_for_drivers(watch); /* another may have come */
        TAILQ_FOREACH(tenant, &watch->tenants, entry)
                if (all || count_devices(tenant) > 0)
                        tenant_look(tenant);
        if (all)
                list_drm_devices(watch);
        if (all && (watch->find || has_devices(watch)))
                look_at_all(watch);
        forget_gone(watch);
        TAILQ_FOREACH(tenant, &watch->tenants, entry)
                tenant_read(tenant);
        if (watch->nvml && (all || has_devices(watch)) && nvml_request(watch->nvml))
                return; /* on_nvml() goes on */
        step_all(watch);
}

static int on_turn(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct gpu_watch *watch = userdata;
        uint64_t pause_ns = TURN_WITHOUT_GPU_NS;

        if (gpu_majors_any(&watch->majors) || look_for_drivers(watch)) {
                look(watch);
                pause_ns = TURN_NS;
        } else {
                step_all(watch); /* what is allocated in spite of that is unknown */
        }
        sd_event_source_set_time(source, (now_monotonic_ns() + pause_ns) / NSEC_PER_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int gpu_watch_new(const struct gpu_watch_config *config, struct gpu_watch **ret_watch)
{
        struct gpu_watch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->event = sd_event_ref(config->event);
        watch->find = config->find;
        watch->rules = config->rules;
        TAILQ_INIT(&watch->tenants);
        r = text_replace(&watch->cgroup_root, config->cgroup_root);
        if (r >= 0 && config->below)
                r = text_replace(&watch->below, config->below);
        if (r >= 0)
                r = sd_event_add_time(watch->event, &watch->timer, CLOCK_MONOTONIC, now_monotonic_ns() / NSEC_PER_USEC, 0, on_turn,
                                      watch);
        if (r < 0) {
                log_error("cannot watch GPUs: %s", strerror(-r));
                gpu_watch_free(watch);
                return r;
        }
        *ret_watch = watch;
        return 0;
}

struct gpu_watch *gpu_watch_free(struct gpu_watch *watch)
{
        struct gpu_tenant *tenant;

        if (!watch)
                return NULL;
        while ((tenant = TAILQ_FIRST(&watch->tenants)))
                gpu_tenant_free(tenant);
        sd_event_source_disable_unref(watch->timer);
        nvml_free(watch->nvml);
        watch_opens_end(watch);
        gpu_drm_jobs_free(watch->jobs);
        gpu_calls_free(watch->calls);
        for (size_t i = 0; i < watch->n_devices; i++)
                free(watch->devices[i]);
        free(watch->cgroup_root);
        free(watch->below);
        sd_event_unref(watch->event);
        free(watch);
        return NULL;
}

int gpu_tenant_new(struct gpu_watch *watch, const struct gpu_tenant_config *config, struct gpu_tenant **ret_tenant)
{
        struct gpu_tenant *found = watch->n_found > 0 ? tenant_of_cgroup(watch, config->cgroup) : NULL;

        if (found && found->found)
                gpu_tenant_free(found);
        return tenant_make(watch, config, false, ret_tenant);
}

void gpu_tenant_known(const struct gpu_tenant *tenant, struct gpu_standing *ret_standing)
{
        *ret_standing = (struct gpu_standing){
                .devices = count_devices(tenant),
                .open = gpu_tenant_open_devices(tenant),
                .verdict = tenant->verdict,
        };
}

void gpu_tenant_judge(struct gpu_tenant *tenant, struct gpu_standing *ret_standing)
{
        struct gpu_watch *watch = tenant->watch;
        struct gpu_standing standing;

        if (!gpu_majors_any(&watch->majors) && !look_for_drivers(watch) && count_devices(tenant) == 0) {
                *ret_standing = (struct gpu_standing){ 0 };
                return;
        }
        tenant_look(tenant);
        tenant_read(tenant);
        tenant_step(tenant);
        gpu_tenant_known(tenant, &standing);
        if (tenant->look_error < 0) {
                standing.devices = MAX(standing.devices, 1u);
                standing.verdict.state = GPU_UNKNOWN;
                snprintf(standing.verdict.reason, sizeof(standing.verdict.reason), "its processes could not be looked at: %s",
                         strerror(-tenant->look_error));
        }
        *ret_standing = standing;
}

void gpu_watch_metrics(struct gpu_watch *watch, void (*each)(const struct gpu_tenant_metrics *metrics, void *userdata),
                       void *userdata)
{
        struct gpu_tenant *tenant;

        TAILQ_FOREACH(tenant, &watch->tenants, entry) {
                struct gpu_tenant_metrics metrics = {
                        .name = tenant->name,
                        .verdict = &tenant->verdict,
                        .seconds = gpu_tenant_seconds(tenant),
                        .submissions = tenant->read_calls ? tenant->reading.submissions : 0,
                        .devices = gpu_tenant_open_devices(tenant),
                        .allocated = gpu_tenant_allocated_devices(tenant),
                };

                if (count_devices(tenant) > 0)
                        each(&metrics, userdata);
        }
}
