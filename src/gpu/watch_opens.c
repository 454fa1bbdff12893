/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at a cgroup when one of its processes opens a device.
 *
 * While tenants are found, one link at the cgroup below which that is done sees all of them. Named ones have a link each, so that no
 * other process runs the program. Where there are no links the turns find the same, later.
 */
#include <string.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/time.h"
#include "gpu/opens.h"
#include "gpu/watch_private.h"

enum { OPENED_MAX = 64 }; /* cgroups to be looked at; past that the next turn looks at everything */

struct opened {
        uint64_t cgroup;
        uint64_t due_ns;
        unsigned looks; /* so far */
};

struct watch_opens {
        struct gpu_opens *opens; /* NULL: not to be had */
        int error;               /* why that is so, or why some cgroup's opens are not seen; 0 */
        int link_fd;             /* the watch's own; -1 */
        struct opened opened[OPENED_MAX];
        size_t n_opened;
        sd_event_source *timer;
};

/* An open is told before the driver has done it, and others may follow within the second that is not told again. */
static const uint64_t pauses_ns[] = { 100 * NSEC_PER_MSEC, NSEC_PER_SEC, 4 * NSEC_PER_SEC };

static struct gpu_tenant *tenant_around(const struct gpu_watch *watch, const char *cgroup)
{
        struct gpu_tenant *tenant;

        TAILQ_FOREACH(tenant, &watch->tenants, entry)
                if (tenant->found ? strcmp(tenant->cgroup, cgroup) == 0 : cgroup_is_inside(cgroup, tenant->cgroup))
                        return tenant;
        return NULL;
}

static bool any_holds_device(struct gpu_watch *watch, const char *cgroup)
{
        _cleanup_(freep) pid_t *pids = NULL;
        int n = gpu_cgroup_processes(cgroup, false, &pids);

        for (int i = 0; i < n; i++)
                if (watch_holds_device(watch, pids[i]))
                        return true;
        return false;
}

static void look_at(struct gpu_watch *watch, uint64_t id)
{
        _cleanup_(freep) char *path = NULL, *cgroup = NULL;
        struct gpu_tenant *tenant;

        if (cgroup_path_by_id(watch->cgroup_root, id, &path) < 0)
                return; /* it is gone */
        if (asprintf(&cgroup, "%s%s", watch->cgroup_root, strcmp(path, "/") == 0 ? "" : path) < 0) {
                cgroup = NULL;
                return;
        }
        tenant = tenant_around(watch, cgroup);
        if (!tenant) {
                if (watch->find && any_holds_device(watch, cgroup)) {
                        watch_find_tenant(watch, path);
                        watch_stir(watch);
                }
                return;
        }
        if (tenant_look(tenant))
                watch_stir(watch);
}

static void set_timer(struct watch_opens *opens)
{
        uint64_t due_ns = UINT64_MAX;

        for (size_t i = 0; i < opens->n_opened; i++)
                due_ns = MIN(due_ns, opens->opened[i].due_ns);
        if (opens->n_opened > 0)
                sd_event_source_set_time(opens->timer, due_ns / NSEC_PER_USEC + 1);
        sd_event_source_set_enabled(opens->timer, opens->n_opened > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_due(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct gpu_watch *watch = userdata;
        struct watch_opens *opens = watch->opens;
        uint64_t now_ns = now_monotonic_ns();

        for (size_t i = 0; i < opens->n_opened;) {
                struct opened *opened = &opens->opened[i];

                if (opened->due_ns > now_ns) {
                        i++;
                        continue;
                }
                look_at(watch, opened->cgroup);
                if (++opened->looks < ELEMENTSOF(pauses_ns))
                        opened->due_ns = now_ns + pauses_ns[opened->looks];
                else
                        *opened = opens->opened[--opens->n_opened];
        }
        set_timer(opens);
        return 0;
}

static void on_opened(uint64_t cgroup, void *userdata)
{
        struct gpu_watch *watch = userdata;
        struct watch_opens *opens = watch->opens;

        for (size_t i = 0; i < opens->n_opened; i++)
                if (opens->opened[i].cgroup == cgroup) {
                        opens->opened[i].looks = 0;
                        opens->opened[i].due_ns = MIN(opens->opened[i].due_ns, now_monotonic_ns() + pauses_ns[0]);
                        set_timer(opens);
                        return;
                }
        if (opens->n_opened == OPENED_MAX) {
                watch->turn = 0;
                watch_stir(watch);
                return;
        }
        opens->opened[opens->n_opened++] = (struct opened){ .cgroup = cgroup, .due_ns = now_monotonic_ns() + pauses_ns[0] };
        set_timer(opens);
}

static void note_error(struct watch_opens *opens, int error)
{
        if (!opens->error)
                log_warning("opens of GPUs are not seen as they happen%s, but looked for twice a minute: %s",
                            opens->opens ? " everywhere" : "", strerror(-error));
        opens->error = error;
}

static void attach_root(struct gpu_watch *watch)
{
        int fd = gpu_opens_attach(watch->opens->opens, watch->below ? watch->below : watch->cgroup_root);

        if (fd < 0)
                note_error(watch->opens, fd);
        else
                watch->opens->link_fd = fd;
}

/* What fails leaves a half-made one, which says why. */
static int opens_start(struct gpu_watch *watch)
{
        struct watch_opens *opens = watch->opens;
        int r;

        r = sd_event_add_time(watch->event, &opens->timer, CLOCK_MONOTONIC, 0, 0, on_due, watch);
        if (r >= 0)
                r = sd_event_source_set_enabled(opens->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = gpu_opens_new(watch->event, on_opened, watch, &opens->opens);
        return r;
}

void watch_opens_begin(struct gpu_watch *watch)
{
        struct watch_opens *opens = watch->opens;
        int r = 0;

        if (!opens) {
                opens = watch->opens = calloc(1, sizeof(*opens));
                if (!opens)
                        return;
                opens->link_fd = -1;
                r = opens_start(watch);
                if (r < 0)
                        note_error(opens, r);
                else if (watch->find)
                        attach_root(watch);
        }
        if (!opens->opens)
                return;
        r = gpu_opens_set_majors(opens->opens, &watch->majors);
        if (r < 0)
                note_error(opens, r);
}

void watch_opens_end(struct gpu_watch *watch)
{
        struct watch_opens *opens = watch->opens;

        if (!opens)
                return;
        close_fd(opens->link_fd);
        sd_event_source_disable_unref(opens->timer);
        gpu_opens_free(opens->opens);
        free(opens);
        watch->opens = NULL;
}

void tenant_watch_opens(struct gpu_tenant *tenant)
{
        struct watch_opens *opens = tenant->watch->opens;
        uint64_t id;
        int fd;

        if (!opens || !opens->opens || opens->link_fd >= 0 || tenant->found)
                return;
        if (cgroup_id(tenant->cgroup, &id) < 0 || id == tenant->opens_cgroup)
                return;
        fd = gpu_opens_attach(opens->opens, tenant->cgroup);
        if (fd < 0)
                note_error(opens, fd);
        tenant->opens_cgroup = id;
        close_fd(tenant->opens_link);
        tenant->opens_link = fd < 0 ? -1 : fd;
}

json_t *watch_opens_json(const struct gpu_watch *watch)
{
        const struct watch_opens *opens = watch->opens;

        if (!opens)
                return json_string("there is no driver");
        if (!opens->opens)
                return json_sprintf("looked for twice a minute: %s", strerror(-opens->error));
        return json_sprintf("%s: %llu so far, %llu not told",
                            opens->error ? "not all are seen as they happen" : "seen as they happen",
                            (unsigned long long)gpu_opens_seen(opens->opens), (unsigned long long)gpu_opens_lost(opens->opens));
}
