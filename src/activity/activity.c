/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <string.h>
#include <sys/epoll.h>

#include "activity/workload.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/time.h"
#include "bpf/describe.h"
#include "bpf/pins.h"

/* The ring buffer is not pinned: doorbells rung while no daemon listens are of no use to the next one. */
static const char *const pinned_maps[] = { "activity_config", "activity_totals",      "activity_ports",
                                           "activity_rules",  "activity_connects",    "activity_probes",
                                           "activity_slots",  "activity_connections", "activity_sockets" };

static struct bpf_map *map_by_name(const struct activity *activity, const char *name)
{
        return bpf_object__find_map_by_name(activity->programs->obj, name);
}

static bool same_shape(int fd, const struct bpf_map *map)
{
        struct bpf_map_info info = {};
        __u32 length = sizeof(info);

        return bpf_obj_get_info_by_fd(fd, &info, &length) == 0 && info.type == bpf_map__type(map) &&
               info.key_size == bpf_map__key_size(map) && info.value_size == bpf_map__value_size(map) &&
               info.max_entries == bpf_map__max_entries(map);
}

/* All of an earlier daemon's maps or none: half of them would be half a truth. */
static int adopt_maps(struct activity *activity)
{
        int fds[ELEMENTSOF(pinned_maps)], r = 0;
        bool all = true;

        for (size_t i = 0; i < ELEMENTSOF(pinned_maps); i++) {
                fds[i] = pin_open(activity->directory, pinned_maps[i]);
                all = all && fds[i] >= 0 && same_shape(fds[i], map_by_name(activity, pinned_maps[i]));
        }
        for (size_t i = 0; i < ELEMENTSOF(pinned_maps); i++) {
                if (all && r >= 0)
                        r = bpf_map__reuse_fd(map_by_name(activity, pinned_maps[i]), fds[i]);
                close_fd(fds[i]);
        }
        activity->adopted = all;
        return r;
}

/* The copies of configurations that programs made for an earlier daemon are old from the start. */
static void begin_epoch(struct activity *activity)
{
        activity->programs->bss->epoch = now_monotonic_ns();
}

static int load_programs(struct activity *activity)
{
        int r;

        activity->programs = activity_bpf__open();
        if (!activity->programs)
                return -errno;
        r = adopt_maps(activity);
        if (r < 0)
                return r;
        begin_epoch(activity);
        activity->programs->rodata->tick_ns = activity->tick_ns;
        return activity_bpf__load(activity->programs);
}

static int pin_maps(struct activity *activity)
{
        int r;

        if (activity->adopted)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(pinned_maps); i++) {
                r = pin_replace(activity->directory, pinned_maps[i], bpf_map__fd(map_by_name(activity, pinned_maps[i])));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int on_event(void *userdata, void *data, size_t size)
{
        struct activity *activity = userdata;
        const struct activity_event *event = data;
        struct workload *workload;

        if (size < sizeof(*event) || !activity->callbacks.bound)
                return 0;
        LIST_FOREACH(workload, &activity->workloads, others)
        if (workload->config.cgroup == event->cgroup) {
                activity->callbacks.bound(workload, event->port, event->transport, workload->userdata);
                break;
        }
        return 0;
}

static int on_ring(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct activity *activity = userdata;

        ring_buffer__consume(activity->ring);
        return 0;
}

static int listen_to_ring(struct activity *activity)
{
        activity->ring = ring_buffer__new(bpf_map__fd(activity->programs->maps.activity_events), on_event, activity, NULL);
        if (!activity->ring)
                return -errno;
        return sd_event_add_io(activity->event, &activity->ring_source, ring_buffer__epoll_fd(activity->ring), EPOLLIN, on_ring,
                               activity);
}

static int activity_start(struct activity *activity)
{
        static const struct step {
                const char *what;
                int (*take)(struct activity *activity);
        } steps[] = {
                { "load the programs for cgroups", load_programs },
                { "pin the maps", pin_maps },
                { "listen to the ring buffer", listen_to_ring },
        };
        int r;

        for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
                r = steps[i].take(activity);
                if (r < 0) {
                        log_error("activity: cannot %s: %s", steps[i].what, strerror(-r));
                        return r;
                }
        }
        return 0;
}

static uint64_t clock_tick_ns(void)
{
        struct timespec tick;

        clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
        return (uint64_t)tick.tv_sec * NSEC_PER_SEC + (uint64_t)tick.tv_nsec;
}

int activity_new(sd_event *event, const char *bpffs, const struct activity_callbacks *callbacks, struct activity **ret_activity)
{
        struct activity *activity = calloc(1, sizeof(*activity));
        int r;

        if (!activity)
                return -ENOMEM;
        LIST_INIT(&activity->workloads);
        activity->prober_link = -1;
        activity->event = sd_event_ref(event);
        activity->callbacks = *callbacks;
        activity->n_cpus = libbpf_num_possible_cpus();
        activity->tick_ns = clock_tick_ns();
        libbpf_log_to_debug();

        if (asprintf(&activity->directory, "%s/activity", bpffs) < 0) {
                activity->directory = NULL;
                r = -ENOMEM;
        } else {
                r = pins_prepare(activity->directory);
        }
        if (r < 0)
                log_error("activity: cannot use %s/activity for pins: %s", bpffs, strerror(-r));
        else
                r = activity_start(activity);
        if (r < 0) {
                activity_free(activity, true);
                return r;
        }
        *ret_activity = activity;
        return 0;
}

static bool is_known(const struct activity *activity, const char *pin_name)
{
        struct workload *workload;

        LIST_FOREACH(workload, &activity->workloads, others)
        if (strcmp(workload->pin_name, pin_name) == 0)
                return true;
        return false;
}

static void closedirp(DIR **directory)
{
        if (*directory)
                closedir(*directory);
}

static void remove_unknown(struct activity *activity)
{
        _cleanup_(closedirp) DIR *directory = opendir(activity->directory);
        struct dirent *entry;

        if (!directory)
                return;
        while ((entry = readdir(directory))) {
                _cleanup_(freep) char *path = NULL;

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || is_known(activity, entry->d_name))
                        continue;
                if (asprintf(&path, "%s/%s", activity->directory, entry->d_name) < 0) {
                        path = NULL;
                        return;
                }
                pins_remove_all(path);
        }
}

void activity_settle(struct activity *activity)
{
        remove_unknown(activity);
        activity_forget_connections(activity, 0);
        if (!activity->prober)
                prober_unpin(activity);
}

static void remove_pins(struct activity *activity)
{
        remove_unknown(activity);
        prober_unpin(activity);
        for (size_t i = 0; i < ELEMENTSOF(pinned_maps); i++)
                pin_remove(activity->directory, pinned_maps[i]);
        rmdir(activity->directory);
}

struct activity *activity_free(struct activity *activity, bool keep_pins)
{
        if (!activity)
                return NULL;

        if (!keep_pins)
                remove_pins(activity);
        sd_event_source_disable_unref(activity->ring_source);
        ring_buffer__free(activity->ring);
        prober_done(activity);
        activity_bpf__destroy(activity->programs);
        sd_event_unref(activity->event);
        free(activity->directory);
        free(activity);
        return NULL;
}

json_t *activity_programs(const struct activity *activity)
{
        json_t *programs = json_array();
        bool attached = !LIST_EMPTY(&activity->workloads);

        for (size_t i = 0; i < ACTIVITY_PROGRAMS; i++)
                json_array_append_new(programs, program_describe(bpf_program__fd(attach_program(activity, i)), attach_type_name(i),
                                                                 attach_name(i), attached));
        if (activity->prober)
                json_array_append_new(programs, program_describe(bpf_program__fd(activity->prober->progs.activity_probe),
                                                                 "sock_ops", "cgroup/sock_ops", true));
        return programs;
}
