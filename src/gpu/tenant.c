/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "gpu/kfd.h"
#include "gpu/watch_private.h"

static const char kfd_root[] = "/sys/class/kfd/kfd";

void gpu_tenant_set_rules(struct gpu_tenant *tenant, const struct gpu_rules *rules)
{
        const struct gpu_rules *others = &tenant->watch->rules;

        tenant->rules = *rules;
        if (tenant->rules.unused_after_ns == 0)
                tenant->rules.unused_after_ns = others->unused_after_ns;
        if (tenant->rules.stuck_after_ns == 0)
                tenant->rules.stuck_after_ns = others->stuck_after_ns;
}

int tenant_make(struct gpu_watch *watch, const struct gpu_tenant_config *config, bool found, struct gpu_tenant **ret_tenant)
{
        struct gpu_tenant *tenant = calloc(1, sizeof(*tenant));
        int r = -ENOMEM;

        if (!tenant)
                return -ENOMEM;
        tenant->watch = watch;
        tenant->opens_link = -1;
        tenant->found = found;
        gpu_tenant_set_rules(tenant, &config->rules);
        tenant->open_requests = config->open_requests;
        tenant->userdata = config->userdata;
        TAILQ_INSERT_TAIL(&watch->tenants, tenant, entry);

        r = text_replace(&tenant->name, config->name);
        if (r >= 0)
                r = text_replace(&tenant->cgroup, config->cgroup);
        if (r < 0) {
                gpu_tenant_free(tenant);
                return r;
        }
        tenant_watch_opens(tenant);
        *ret_tenant = tenant;
        return 0;
}

struct gpu_tenant *gpu_tenant_free(struct gpu_tenant *tenant)
{
        if (!tenant)
                return NULL;

        TAILQ_REMOVE(&tenant->watch->tenants, tenant, entry);
        if (tenant->found)
                tenant->watch->n_found--;
        gpu_workload_free(tenant->calls);
        close_fd(tenant->opens_link);
        tenant_forget_jobs(tenant);
        for (size_t i = 0; i < tenant->n_uses; i++)
                drm_usage_free(tenant->uses[i].drm);
        allotments_done(tenant);
        free(tenant->uses);
        free(tenant->pids);
        free(tenant->name);
        free(tenant->cgroup);
        free(tenant);
        return NULL;
}

static int compare_pids(const void *a, const void *b)
{
        pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;

        return (left > right) - (left < right);
}

bool tenant_has_pid(const struct gpu_tenant *tenant, pid_t pid)
{
        return tenant->n_pids > 0 && bsearch(&pid, tenant->pids, tenant->n_pids, sizeof(pid), compare_pids);
}

struct gpu_use *tenant_use(struct gpu_tenant *tenant, const struct gpu_device *device)
{
        for (size_t i = 0; i < tenant->n_uses; i++)
                if (tenant->uses[i].device == device)
                        return &tenant->uses[i];
        return NULL;
}

static struct gpu_use *add_use(struct gpu_tenant *tenant, struct gpu_device *device)
{
        struct gpu_use *uses, *use;

        if (tenant->n_uses == GPU_USES_MAX)
                return NULL;
        uses = reallocarray(tenant->uses, tenant->n_uses + 1, sizeof(*uses));
        if (!uses)
                return NULL;
        tenant->uses = uses;
        use = &uses[tenant->n_uses++];
        *use = (struct gpu_use){ .device = device };
        if (device->kind == GPU_NODE_DRM)
                use->drm = drm_usage_new();
        gpu_machine_begin(&use->machine, now_monotonic_ns());
        return use;
}

/* Probing begins with the first device: what has none pays nothing. */
static void begin_calls(struct gpu_tenant *tenant)
{
        int r;

        if (tenant->calls || tenant->calls_error || !tenant->watch->calls)
                return;
        r = gpu_workload_new(tenant->watch->calls, tenant->cgroup, tenant, &tenant->calls);
        if (r >= 0)
                r = gpu_calls_arm(tenant->calls);
        if (r < 0) {
                tenant->calls_error = r;
                log_warning("%s: the calls to its GPU's driver cannot be counted: %s", tenant->name, strerror(-r));
        }
}

static void note_command(struct gpu_tenant *tenant, pid_t pid)
{
        char path[64];
        FILE *file;

        if (tenant->command[0])
                return;
        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        file = fopen(path, "re");
        if (!file)
                return;
        if (fgets(tenant->command, sizeof(tenant->command), file))
                tenant->command[strcspn(tenant->command, "\n")] = '\0';
        fclose(file);
}

static void read_fdinfo(struct gpu_use *use, pid_t pid, int fd)
{
        char path[64], text[8192];
        struct drm_client client;
        size_t length;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
        file = fopen(path, "re");
        if (!file)
                return; /* it closed the file or ended meanwhile */
        length = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
        text[length] = '\0';
        if (drm_fdinfo_parse(text, &client) >= 0)
                drm_usage_add(use->drm, &client, (uint32_t)pid, (uint32_t)fd);
}

struct look { /* at one tenant's processes */
        struct gpu_tenant *tenant;
        bool lacks_memory;
        pid_t last_pid;
};

static void on_holder(pid_t pid, int fd, const struct gpu_node *node, void *userdata)
{
        struct look *look = userdata;
        struct gpu_tenant *tenant = look->tenant;
        struct gpu_device *device;
        struct gpu_use *use;

        if (node->kind == GPU_NODE_KFD)
                tenant->uses_kfd = true;
        device = watch_device(tenant->watch, node);
        if (!device)
                return;
        use = tenant_use(tenant, device);
        if (!use)
                use = add_use(tenant, device);
        if (!use || (device->kind == GPU_NODE_DRM && !use->drm)) {
                look->lacks_memory = true;
                return;
        }
        use->n_open++;
        note_command(tenant, pid);
        if (use->drm)
                read_fdinfo(use, pid, fd);
}

static int look_at_processes(struct gpu_tenant *tenant)
{
        struct look look = { .tenant = tenant };
        pid_t *pids = NULL;
        int n, r;

        n = gpu_cgroup_processes(tenant->cgroup, !tenant->found, &pids);
        if (n < 0)
                return n;
        free(tenant->pids);
        tenant->pids = pids;
        tenant->n_pids = (size_t)n;
        for (size_t i = 0; i < tenant->n_pids; i++) {
                r = gpu_holders_of_process("/proc", &tenant->watch->majors, tenant->pids[i], on_holder, &look);
                if (r < 0 && r != -ESRCH)
                        return r;
        }
        return look.lacks_memory ? -ENOMEM : 0;
}

/* Units that are occupied right now; between two looks they may have been. The probes see what falls between. */
static void look_at_kfd(struct gpu_tenant *tenant, struct gpu_use *use, uint64_t now_ns)
{
        uint32_t units;

        for (size_t i = 0; i < tenant->n_pids; i++) {
                int r = kfd_occupancy(kfd_root, tenant->pids[i], use->device->minor, &units);

                if (r == -ESRCH)
                        continue;
                if (r < 0) {
                        use->kfd_since_ns = 0;
                        return;
                }
                if (units > 0)
                        use->kfd_busy_ns = now_ns;
        }
        if (use->kfd_since_ns == 0)
                use->kfd_since_ns = now_ns;
}

static void finish_use(struct gpu_tenant *tenant, struct gpu_use *use)
{
        uint64_t now_ns = tenant->looked_ns;

        if (use->drm) {
                if (tenant->look_error < 0)
                        drm_usage_fail(use->drm);
                drm_usage_end(use->drm, now_ns);
                if (tenant->uses_kfd)
                        look_at_kfd(tenant, use, now_ns);
        }
        if (use->n_open > 0 || tenant->look_error < 0)
                use->closed_since_ns = 0;
        else if (use->closed_since_ns == 0)
                use->closed_since_ns = now_ns;
}

bool tenant_look(struct gpu_tenant *tenant)
{
        unsigned open_before = gpu_tenant_open_devices(tenant);

        tenant_watch_opens(tenant);
        tenant->uses_kfd = false;
        for (size_t i = 0; i < tenant->n_uses; i++) {
                tenant->uses[i].n_open = 0;
                if (tenant->uses[i].drm)
                        drm_usage_begin(tenant->uses[i].drm);
        }
        tenant->look_error = look_at_processes(tenant);
        tenant->looked_ns = now_monotonic_ns();
        for (size_t i = 0; i < tenant->n_uses; i++)
                finish_use(tenant, &tenant->uses[i]);
        if (tenant->n_uses > 0)
                begin_calls(tenant);
        if (gpu_tenant_open_devices(tenant) == open_before)
                return false;
        /* Who asks between two turns is not told of a device beside the verdict of before. */
        tenant_read(tenant);
        tenant_step(tenant);
        return true;
}

/* Bytes of io.stat, where the io controller is on: "8:0 rbytes=1 wbytes=2 ..." a line. */
static uint64_t read_io_bytes(int cgroup_fd)
{
        int fd = openat(cgroup_fd, "io.stat", O_RDONLY | O_CLOEXEC);
        FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
        uint64_t total = 0;
        char word[64];

        if (!file) {
                close_fd(fd);
                return 0;
        }
        while (fscanf(file, "%63s", word) == 1)
                if (strncmp(word, "rbytes=", 7) == 0 || strncmp(word, "wbytes=", 7) == 0)
                        total += strtoull(word + 7, NULL, 10);
        fclose(file);
        return total;
}

static void read_io(struct gpu_tenant *tenant, int cgroup_fd, uint64_t now_ns)
{
        uint64_t bytes = read_io_bytes(cgroup_fd), elapsed_ns = now_ns - tenant->io_ns;

        if (tenant->io_ns && elapsed_ns < NSEC_PER_SEC)
                return;
        tenant->io_bytes_per_second = 0;
        if (tenant->io_ns && bytes > tenant->io_bytes)
                tenant->io_bytes_per_second =
                        (uint64_t)((double)(bytes - tenant->io_bytes) / ((double)elapsed_ns / (double)NSEC_PER_SEC));
        tenant->io_bytes = bytes;
        tenant->io_ns = now_ns;
}

void tenant_read(struct gpu_tenant *tenant)
{
        _cleanup_(close_fdp) int cgroup_fd = -1;
        uint64_t usage_usec, window_ns, now_ns = now_monotonic_ns();

        tenant->read_calls = tenant->calls && gpu_calls_read(tenant->calls, &tenant->reading) >= 0;
        if (tenant->n_uses == 0)
                return;
        tenant_read_jobs(tenant);
        cgroup_fd = open(tenant->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (cgroup_fd < 0)
                return;
        if (cpu_read_usage(cgroup_fd, &usage_usec) >= 0)
                cpu_history_add(&tenant->cpu, usage_usec, tenant->rules.window_ns, now_ns, &tenant->cpu_millicores, &window_ns);
        read_io(tenant, cgroup_fd, now_ns);
}

static void account(struct gpu_seconds *sum, enum gpu_state state, double seconds)
{
        sum->allocated += seconds;
        switch (state) {
        case GPU_ACTIVE:
        case GPU_STARTING:
                sum->active += seconds;
                break;
        case GPU_QUIET:
        case GPU_CANDIDATE:
        case GPU_IDLE:
        case GPU_UNUSED:
                sum->idle += seconds;
                break;
        case GPU_STUCK:
        case GPU_UNKNOWN:
        case GPU_STATE_MAX:
                sum->unknown += seconds;
                break;
        }
}

static void step_use(struct gpu_tenant *tenant, struct gpu_use *use, uint64_t now_ns, double seconds)
{
        struct gpu_evidence evidence;

        evidence_of(tenant, use, now_ns, &evidence);
        gpu_machine_step(&use->machine, &tenant->rules, &evidence, now_ns, &use->verdict);
        if (use->n_open > 0 || use->allotted)
                account(&use->seconds, use->verdict.state, seconds);
}

/* Devices that nobody has opened do nothing, from the first second on. */
static void step_unopened(struct gpu_tenant *tenant, struct gpu_allotment *allotment, uint64_t now_ns, double seconds)
{
        struct gpu_evidence evidence = { .opens_known = tenant->looked_ns && tenant->look_error == 0 &&
                                                        gpu_majors_any(&tenant->watch->majors) };

        gpu_machine_step(&allotment->machine, &tenant->rules, &evidence, now_ns, &allotment->verdict);
        account(&tenant->unopened, allotment->verdict.state == GPU_UNKNOWN ? GPU_UNKNOWN : GPU_UNUSED,
                seconds * allotment->unopened);
}

void tenant_step(struct gpu_tenant *tenant)
{
        struct gpu_part parts[GPU_USES_MAX + GPU_ALLOCATIONS_MAX];
        uint64_t now_ns = now_monotonic_ns();
        double seconds = tenant->stepped_ns ? (double)(now_ns - tenant->stepped_ns) / (double)NSEC_PER_SEC : 0;
        size_t n = 0;

        allotments_match(tenant);
        for (size_t i = 0; i < tenant->n_uses; i++) {
                struct gpu_use *use = &tenant->uses[i];

                step_use(tenant, use, now_ns, seconds);
                parts[n++] = (struct gpu_part){ use->device->name, &use->verdict };
        }
        for (size_t i = 0; i < tenant->n_allotments; i++) {
                struct gpu_allotment *allotment = &tenant->allotments[i];

                if (allotment->unopened == 0)
                        continue;
                step_unopened(tenant, allotment, now_ns, seconds);
                parts[n++] = (struct gpu_part){ allotment->name, &allotment->verdict };
        }
        tenant->stepped_ns = now_ns;
        gpu_verdict_all(parts, n, &tenant->verdict);
}

struct gpu_seconds gpu_tenant_seconds(const struct gpu_tenant *tenant)
{
        struct gpu_seconds sum = tenant->unopened;

        for (size_t i = 0; i < tenant->n_uses; i++) {
                const struct gpu_seconds *seconds = &tenant->uses[i].seconds;

                sum.allocated += seconds->allocated;
                sum.active += seconds->active;
                sum.idle += seconds->idle;
                sum.unknown += seconds->unknown;
        }
        return sum;
}

unsigned gpu_tenant_open_devices(const struct gpu_tenant *tenant)
{
        unsigned n = 0;

        for (size_t i = 0; i < tenant->n_uses; i++)
                n += tenant->uses[i].n_open > 0;
        return n;
}
