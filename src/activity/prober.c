/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <fcntl.h>

#include "activity/workload.h"
#include "base/macros.h"
#include "bpf/pins.h"

#define PROBER_PIN "prober_link"

static int prober_load(struct activity *activity)
{
        struct activity_probe_bpf *prober = activity_probe_bpf__open();
        struct bpf_map *map;
        int r = 0;

        if (!prober)
                return errno > 0 ? -errno : -ENOMEM;
        bpf_object__for_each_map(map, prober->obj)
        {
                const struct bpf_map *shared = bpf_object__find_map_by_name(activity->programs->obj, bpf_map__name(map));

                if (shared && r >= 0)
                        r = bpf_map__reuse_fd(map, bpf_map__fd(shared));
        }
        if (r >= 0)
                r = activity_probe_bpf__load(prober);
        if (r < 0) {
                activity_probe_bpf__destroy(prober);
                return r;
        }
        activity->prober = prober;
        return 0;
}

void prober_unpin(struct activity *activity)
{
        pin_remove(activity->directory, PROBER_PIN);
}

void prober_done(struct activity *activity)
{
        activity->prober_link = close_fd(activity->prober_link);
        activity_probe_bpf__destroy(activity->prober);
        activity->prober = NULL;
}

/* An earlier daemon's link goes with its pin. Its connections stay known: the map tells of them until they end, or others push them
 * out. */
static int prober_attach(struct activity *activity, const char *cgroup)
{
        _cleanup_(close_fdp) int cgroup_fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC), link = -1;
        int r;

        if (cgroup_fd < 0)
                return -errno;
        r = prober_load(activity);
        if (r < 0)
                return r;
        link = bpf_link_create(bpf_program__fd(activity->prober->progs.activity_probe), cgroup_fd, BPF_CGROUP_SOCK_OPS, NULL);
        if (link < 0)
                return -errno;
        r = pin_replace(activity->directory, PROBER_PIN, link);
        if (r < 0)
                return r;
        activity->prober_link = TAKE_FD(link);
        return 0;
}

int activity_watch_prober(struct activity *activity, const char *cgroup)
{
        int r = 0;

        prober_done(activity);
        if (cgroup)
                r = prober_attach(activity, cgroup);
        if (!cgroup || r < 0) {
                prober_done(activity);
                prober_unpin(activity);
        }
        return r;
}
