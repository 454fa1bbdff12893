/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"
#include "gpu/calls_private.h"
#include "gpu/detacher.h"

/* What changes the mappings of a process all but surely changes the size of its address space too; this bounds the rest. */
#define MAPPINGS_KEPT_NS (60 * NSEC_PER_SEC)

static void _printf_(2, 3) complain(struct gpu_workload *workload, const char *format, ...)
{
        va_list arguments;

        if (workload->reason[0])
                return;
        va_start(arguments, format);
        vsnprintf(workload->reason, sizeof(workload->reason), format, arguments);
        va_end(arguments);
}

/* ---- probes of one process and library */

static void links_end(struct gpu_workload *workload, struct hook_links *links)
{
        detacher_close(workload->calls->detacher, links->fds, links->n);
        free(links->fds);
        *links = (struct hook_links){};
}

static void use_unprobe(struct gpu_workload *workload, struct use *use, bool waits_too)
{
        links_end(workload, &use->submissions);
        if (waits_too)
                links_end(workload, &use->waits);
        use->error = 0;
}

static void use_end(struct gpu_workload *workload, struct use *use)
{
        use_unprobe(workload, use, true);
        libraries_drop(workload->calls->libraries, use->library);
}

static int attach(const struct gpu_workload *workload, pid_t pid, const struct use *use, const struct bpf_program *program,
                  enum driver_role role, struct hook_links *links)
{
        const struct hook hook = {
                .program_fd = bpf_program__fd(program),
                .returns = program == workload->calls->programs->progs.gpu_wait_leave,
                .library_fd = use->library->fd,
                .offsets = use->library->offsets[role],
                .n_offsets = use->library->n_offsets[role],
                .pid = pid,
                .cookie = workload->watch,
        };

        return hook_attach(workload->calls->method, &hook, links);
}

/* The end of a wait first: one that is seen to begin is seen to end. */
static int attach_missing(const struct gpu_workload *workload, pid_t pid, struct use *use)
{
        const struct gpu_calls_bpf *programs = workload->calls->programs;
        int r = 0;

        if (use->waits.n == 0 && !workload->waits_off) {
                r = attach(workload, pid, use, programs->progs.gpu_wait_leave, DRIVER_ROLE_WAIT, &use->waits);
                if (r >= 0)
                        r = attach(workload, pid, use, programs->progs.gpu_wait_enter, DRIVER_ROLE_WAIT, &use->waits);
        }
        if (r >= 0 && use->submissions.n == 0 && workload->duty == DUTY_PROBING)
                r = attach(workload, pid, use, programs->progs.gpu_submit, DRIVER_ROLE_SUBMIT, &use->submissions);
        return r;
}

/* Returns whether something was missing, or -errno. */
static int use_probe(struct gpu_workload *workload, pid_t pid, struct use *use)
{
        size_t before = use->submissions.n;
        int r = attach_missing(workload, pid, use);

        if (r < 0) {
                use_unprobe(workload, use, true);
                use->error = r;
                return r;
        }
        return use->submissions.n > before;
}

/* ---- one process */

static void process_end(struct gpu_workload *workload, struct process *process)
{
        for (size_t i = 0; i < process->n_uses; i++)
                use_end(workload, &process->uses[i]);
        process->n_uses = 0;
}

static bool maps(const struct mapping *mappings, int n, const struct library *library)
{
        for (int i = 0; i < n; i++)
                if (mappings[i].device == library->id.device && mappings[i].inode == library->id.inode)
                        return true;
        return false;
}

static bool uses(const struct process *process, const struct mapping *mapping)
{
        for (size_t i = 0; i < process->n_uses; i++)
                if (process->uses[i].library->id.device == mapping->device && process->uses[i].library->id.inode == mapping->inode)
                        return true;
        return false;
}

static void end_unmapped(struct gpu_workload *workload, struct process *process, const struct mapping *mappings, int n)
{
        size_t kept = 0;

        for (size_t i = 0; i < process->n_uses; i++) {
                if (maps(mappings, n, process->uses[i].library))
                        process->uses[kept++] = process->uses[i];
                else
                        use_end(workload, &process->uses[i]);
        }
        process->n_uses = kept;
}

static int process_read_mappings(struct gpu_workload *workload, struct process *process, uint64_t now_ns)
{
        _cleanup_(freep) struct mapping *mappings = calloc(PROCESS_LIBRARIES_MAX, sizeof(*mappings));
        int n, r;

        if (!mappings)
                return -ENOMEM;
        n = process_mappings(process->pid, mappings);
        if (n < 0)
                return n;
        end_unmapped(workload, process, mappings, n);
        for (int i = 0; i < n; i++) {
                struct library *library;

                if (uses(process, &mappings[i]))
                        continue;
                r = libraries_use(workload->calls->libraries, process->pid, &mappings[i], &library);
                if (r < 0)
                        return r;
                process->uses[process->n_uses++] = (struct use){ .library = library };
        }
        process->mappings_read_ns = now_ns;
        return 0;
}

/* Returns -ESRCH for one that is gone. */
static int process_look(struct gpu_workload *workload, struct process *process, uint64_t now_ns, bool began_now)
{
        struct process_stamp stamp;
        int r;

        r = process_stamp_read(process->pid, &stamp);
        if (r < 0)
                return r;
        if (process->stamp.began != stamp.began)
                process_end(workload, process); /* another one by the same number */
        if (began_now || process->error || process->stamp.began != stamp.began || process->stamp.size != stamp.size ||
            now_ns - process->mappings_read_ns >= MAPPINGS_KEPT_NS)
                process->error = process_read_mappings(workload, process, now_ns);
        process->stamp = stamp;
        return process->error == -ESRCH ? -ESRCH : 0;
}

/* ---- all of them */

static struct process *process_find(struct gpu_workload *workload, pid_t pid)
{
        size_t low = 0, high = workload->n_processes;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (workload->processes[middle].pid == pid)
                        return &workload->processes[middle];
                if (workload->processes[middle].pid < pid)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

/* The processes of @list, in its order: what is known of them is taken over, of others forgotten. */
static int take_list(struct gpu_workload *workload, const struct process_list *list)
{
        struct process *processes = calloc(MAX(list->n, (size_t)1), sizeof(*processes));

        if (!processes)
                return -ENOMEM;
        for (size_t i = 0; i < list->n; i++) {
                struct process *known = process_find(workload, list->pids[i]);

                if (known) {
                        processes[i] = *known;
                        known->n_uses = 0;
                }
                processes[i].pid = list->pids[i];
        }
        workload_forget_processes(workload);
        workload->processes = processes;
        workload->n_processes = list->n;
        return 0;
}

void workload_forget_processes(struct gpu_workload *workload)
{
        for (size_t i = 0; i < workload->n_processes; i++)
                process_end(workload, &workload->processes[i]);
        free(workload->processes);
        workload->processes = NULL;
        workload->n_processes = 0;
        workload->n_users = 0;
}

static void look_at_each(struct gpu_workload *workload, uint64_t now_ns, pid_t began_now)
{
        size_t kept = 0;

        for (size_t i = 0; i < workload->n_processes; i++) {
                struct process *process = &workload->processes[i];
                int r = process_look(workload, process, now_ns, process->pid == began_now);

                if (r == -ESRCH) {
                        process_end(workload, process);
                        continue;
                }
                if (r < 0)
                        process->error = r;
                if (process->error)
                        complain(workload, "process %d: its mappings can't be read: %s", process->pid,
                                 process->error == -E2BIG ? "there are too many" : probe_reason(process->error));
                workload->processes[kept++] = *process;
        }
        workload->n_processes = kept;
}

static void probe_process(struct gpu_workload *workload, struct process *process, pid_t began_now)
{
        for (size_t i = 0; i < process->n_uses; i++) {
                struct use *use = &process->uses[i];
                const char *reason = use->library->reason;

                if (!reason && workload->duty != DUTY_OFF) {
                        int r = use_probe(workload, process->pid, use);

                        if (r > 0 && process->pid != began_now)
                                workload->gap = true;
                        if (r < 0)
                                reason = probe_reason(r);
                }
                if (reason)
                        complain(workload, "process %d: %s can't be probed: %s", process->pid, use->library->path, reason);
        }
}

static void probe_each(struct gpu_workload *workload, pid_t began_now)
{
        workload->n_users = 0;
        workload->gap = false;
        for (size_t i = 0; i < workload->n_processes; i++) {
                struct process *process = &workload->processes[i];

                if (process->n_uses == 0)
                        continue;
                if (workload->n_users++ < GPU_USERS_MAX)
                        probe_process(workload, process, began_now);
                else
                        complain(workload, "more than %d processes use a driver library", GPU_USERS_MAX);
        }
}

static int look(struct gpu_workload *workload, pid_t began_now)
{
        struct process_list list = {};
        int r;

        workload->reason[0] = '\0';
        r = process_list_read(workload->cgroup, &list);
        if (r >= 0)
                r = take_list(workload, &list);
        if (r >= 0) {
                look_at_each(workload, now_monotonic_ns(), began_now);
                probe_each(workload, began_now);
                if (list.foreign)
                        complain(workload, "some of its processes are in another PID namespace: the daemon must share the host's");
        } else {
                complain(workload, "%s: %s", workload->cgroup,
                         r == -E2BIG ? "too many processes or cgroups below it" : strerror(-r));
        }
        process_list_done(&list);
        return r;
}

int workload_look(struct gpu_workload *workload, pid_t began_now)
{
        int r = look(workload, began_now);

        if (workload->duty != DUTY_PROBING || r < 0 || workload->reason[0])
                workload->covered_since_ns = 0;
        else if (workload->covered_since_ns == 0 || workload->gap)
                workload->covered_since_ns = now_monotonic_ns();
        return r;
}

size_t workload_slow(const struct gpu_workload *workload)
{
        size_t n = 0;

        for (size_t i = 0; i < workload->n_processes; i++)
                for (size_t j = 0; j < workload->processes[i].n_uses; j++)
                        n += workload->processes[i].uses[j].library->n_slow > 0;
        return n;
}

/* ---- watches */

static int counts_fd(const struct gpu_workload *workload)
{
        return bpf_map__fd(workload->calls->programs->maps.gpu_counts);
}

int workload_begin_watch(struct gpu_workload *workload)
{
        struct gpu_calls *calls = workload->calls;
        _cleanup_(freep) struct gpu_counts *zeros = calloc((size_t)calls->n_cpus, sizeof(*zeros));
        uint64_t watch = calls->last_watch + 1;

        if (!zeros)
                return -ENOMEM;
        if (bpf_map_update_elem(counts_fd(workload), &watch, zeros, BPF_ANY) < 0)
                return -errno;
        calls->last_watch = workload->watch = watch;
        return 0;
}

void workload_unprobe(struct gpu_workload *workload, bool waits_too)
{
        workload->covered_since_ns = 0;
        for (size_t i = 0; i < workload->n_processes; i++)
                for (size_t j = 0; j < workload->processes[i].n_uses; j++)
                        use_unprobe(workload, &workload->processes[i].uses[j], waits_too);
}

/* What is still being taken off finds nothing to count in. */
void workload_end_watch(struct gpu_workload *workload)
{
        bpf_map_delete_elem(counts_fd(workload), &workload->watch);
        workload_unprobe(workload, true);
        workload_forget_waits(workload);
        workload->watch = 0;
}
