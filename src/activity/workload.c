/* SPDX-License-Identifier: Apache-2.0 */
#include "activity/workload.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <string.h>

#include "base/log.h"
#include "base/macros.h"
#include "base/time.h"

static int cgroup_id(int cgroup_fd, __u64 *ret_id)
{
        union {
                struct file_handle handle;
                char bytes[sizeof(struct file_handle) + sizeof(__u64)];
        } u = { .handle.handle_bytes = sizeof(__u64) };
        int mount;

        if (name_to_handle_at(cgroup_fd, "", &u.handle, &mount, AT_EMPTY_PATH) < 0)
                return -errno;
        memcpy(ret_id, u.handle.f_handle, sizeof(*ret_id));
        return 0;
}

static int open_cgroup(struct workload *workload, const char *cgroup)
{
        struct workload *other;
        uint32_t millicores;
        uint64_t usage, window;
        int r;

        workload->cgroup_fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (workload->cgroup_fd < 0)
                return -errno;
        r = cgroup_id(workload->cgroup_fd, &workload->config.cgroup);
        if (r < 0)
                return r;
        HASH_FIND(by_cgroup, workload->activity->by_cgroup, &workload->config.cgroup, sizeof(workload->config.cgroup), other);
        if (other)
                return -EEXIST;
        HASH_ADD(by_cgroup, workload->activity->by_cgroup, config.cgroup, sizeof(workload->config.cgroup), workload);
        if (!workload->by_cgroup.tbl)
                return -ENOMEM;

        r = cpu_read_usage(workload->cgroup_fd, &usage);
        if (r < 0)
                return r;
        cpu_history_add(&workload->cpu, usage, workload->after_ns, now_monotonic_ns(), &millicores, &window);
        return 0;
}

/* Goes on counting generations where an earlier daemon left off. */
static void adopt_generation(struct workload *workload)
{
        struct activity_config config;

        if (bpf_map_lookup_elem(bpf_map__fd(workload->activity->programs->maps.activity_config), &workload->config.cgroup,
                                &config) == 0)
                workload->config.generation = config.generation;
}

static int workload_start(struct workload *workload, const struct workload_settings *settings, const char *cgroup)
{
        int r;

        r = open_cgroup(workload, cgroup);
        if (r < 0)
                return r;
        workload->pin_name = pin_name_of(settings->name);
        if (!workload->pin_name)
                return -ENOMEM;
        if (asprintf(&workload->directory, "%s/%s", workload->activity->directory, workload->pin_name) < 0) {
                workload->directory = NULL;
                return -ENOMEM;
        }
        workload->earlier = has_processes(workload);
        workload->attached_ns = now_monotonic_ns();
        if (workload->activity->adopted && access(workload->directory, F_OK) < 0)
                activity_forget_connections(workload->activity, workload->config.cgroup);
        r = workload_attach(workload);
        if (r < 0)
                return r;
        adopt_generation(workload);
        r = workload_apply(workload, settings);
        if (r < 0)
                return r;
        if (workload->activity->adopted)
                workload_forget_stale(workload);
        return 0;
}

int workload_new(struct activity *activity, const struct workload_settings *settings, const char *cgroup, void *userdata,
                 struct workload **ret_workload)
{
        struct workload *workload = calloc(1, sizeof(*workload));
        int r;

        if (!workload)
                return -ENOMEM;
        workload->activity = activity;
        workload->userdata = userdata;
        workload->cgroup_fd = -1;
        for (size_t i = 0; i < ACTIVITY_PROGRAMS; i++)
                workload->links[i] = -1;
        LIST_INSERT_HEAD(&activity->workloads, workload, others);

        r = workload_start(workload, settings, cgroup);
        if (r < 0) {
                workload_free(workload, false);
                return r;
        }
        *ret_workload = workload;
        return 0;
}

struct workload *workload_free(struct workload *workload, bool keep_pins)
{
        if (!workload)
                return NULL;

        LIST_REMOVE(workload, others);
        if (workload->by_cgroup.tbl) {
                HASH_DELETE(by_cgroup, workload->activity->by_cgroup, workload);
        }
        if (!keep_pins && workload->directory) {
                workload_detach(workload);
                workload_forget_rules(workload);
                activity_forget_connections(workload->activity, workload->config.cgroup);
        }
        for (size_t i = 0; i < ACTIVITY_PROGRAMS; i++)
                close_fd(workload->links[i]);
        close_fd(workload->cgroup_fd);
        keys_free(&workload->keys);
        free(workload->directory);
        free(workload->pin_name);
        free(workload);
        return NULL;
}

int workload_update(struct workload *workload, const struct workload_settings *settings)
{
        return workload_apply(workload, settings);
}
