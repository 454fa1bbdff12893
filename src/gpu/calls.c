/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/calls.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/macros.h"
#include "bpf/describe.h"
#include "gpu/calls_private.h"
#include "gpu/detacher.h"

/* ---- events */

static void on_call(struct gpu_calls *calls, const struct gpu_event *event)
{
        struct gpu_workload *workload;

        LIST_FOREACH(workload, &calls->workloads, others)
        if (workload->duty != DUTY_OFF && workload->watch == event->subject) {
                duty_called(workload);
                if (calls->callbacks.stirred)
                        calls->callbacks.stirred(workload, workload->userdata);
                return;
        }
}

/* Before it can call anything it is probed. */
static void on_initialised(struct gpu_calls *calls, const struct gpu_event *event)
{
        struct gpu_workload *workload;

        LIST_FOREACH(workload, &calls->workloads, others)
        if (workload->cgroup_id == event->subject) {
                workload->initialised_ns = event->when_ns;
                if (workload->duty != DUTY_OFF)
                        workload_look(workload, (pid_t)event->process);
                if (calls->callbacks.stirred)
                        calls->callbacks.stirred(workload, workload->userdata);
                return;
        }
}

static int on_event(void *userdata, void *data, size_t size)
{
        const struct gpu_event *event = data;

        if (size < sizeof(*event))
                return 0;
        if (event->kind == GPU_EVENT_CALL)
                on_call(userdata, event);
        else if (event->kind == GPU_EVENT_INITIALISED)
                on_initialised(userdata, event);
        return 0;
}

static int on_ring(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct gpu_calls *calls = userdata;

        ring_buffer__consume(calls->ring);
        return 0;
}

/* ---- start */

static int choose_method(struct gpu_calls *calls, const char *wanted)
{
        int error = -EOPNOTSUPP;

        for (int method = 0; method < HOOK_METHOD_MAX; method++) {
                int r;

                if (wanted && strcmp(wanted, hook_method_to_string(method)) != 0)
                        continue;
                r = hook_method_probe(method);
                if (r > 0) {
                        calls->method = method;
                        return 0;
                }
                if (r < 0)
                        error = r;
        }
        return error;
}

static int load_programs(struct gpu_calls *calls)
{
        calls->programs = gpu_calls_bpf__open();
        if (!calls->programs)
                return -errno;
        if (calls->method == HOOK_METHOD_MULTI) {
                struct bpf_program *const probes[] = { calls->programs->progs.gpu_submit, calls->programs->progs.gpu_wait_enter,
                                                       calls->programs->progs.gpu_wait_leave,
                                                       calls->programs->progs.gpu_initialise };

                for (size_t i = 0; i < ELEMENTSOF(probes); i++)
                        bpf_program__set_expected_attach_type(probes[i], (enum bpf_attach_type)HOOK_ATTACH_MULTI);
        }
        return gpu_calls_bpf__load(calls->programs);
}

static int watch_exits(struct gpu_calls *calls)
{
        calls->exit_link = bpf_program__attach(calls->programs->progs.gpu_thread_exit);
        return calls->exit_link ? 0 : -errno;
}

static int listen_to_ring(struct gpu_calls *calls)
{
        calls->ring = ring_buffer__new(bpf_map__fd(calls->programs->maps.gpu_events), on_event, calls, NULL);
        if (!calls->ring)
                return -errno;
        return sd_event_add_io(calls->event, &calls->ring_source, ring_buffer__epoll_fd(calls->ring), EPOLLIN, on_ring, calls);
}

static int make_parts(struct gpu_calls *calls)
{
        int r = detacher_new(calls->event, &calls->detacher);

        if (r < 0)
                return r;
        return libraries_new(calls->method, bpf_program__fd(calls->programs->progs.gpu_initialise), calls->detacher,
                             &calls->libraries);
}

static int calls_start(struct gpu_calls *calls)
{
        static const struct step {
                const char *what;
                int (*take)(struct gpu_calls *calls);
        } steps[] = {
                { "load the programs for driver libraries", load_programs },
                { "watch for threads that end", watch_exits },
                { "listen to the ring buffer", listen_to_ring },
                { "make room", make_parts },
        };

        for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
                int r = steps[i].take(calls);

                if (r < 0) {
                        log_error("gpu: cannot %s: %s", steps[i].what, strerror(-r));
                        return r;
                }
        }
        return 0;
}

int gpu_calls_new(sd_event *event, const struct gpu_calls_callbacks *callbacks, const char *method, struct gpu_calls **ret_calls)
{
        struct gpu_calls *calls = calloc(1, sizeof(*calls));
        int r;

        if (!calls)
                return -ENOMEM;
        LIST_INIT(&calls->workloads);
        calls->event = sd_event_ref(event);
        calls->callbacks = *callbacks;
        calls->n_cpus = libbpf_num_possible_cpus();
        libbpf_log_to_debug();
        r = choose_method(calls, method);
        if (r < 0)
                log_error("gpu: cannot probe driver libraries%s%s: %s", method ? " by " : "", method ? method : "", strerror(-r));
        else
                r = calls_start(calls);
        if (r < 0) {
                gpu_calls_free(calls);
                return r;
        }
        *ret_calls = calls;
        return 0;
}

struct gpu_calls *gpu_calls_free(struct gpu_calls *calls)
{
        if (!calls)
                return NULL;

        sd_event_source_disable_unref(calls->ring_source);
        ring_buffer__free(calls->ring);
        libraries_free(calls->libraries);
        detacher_free(calls->detacher);
        bpf_link__destroy(calls->exit_link);
        gpu_calls_bpf__destroy(calls->programs);
        sd_event_unref(calls->event);
        free(calls);
        return NULL;
}

const char *gpu_calls_method(const struct gpu_calls *calls)
{
        return hook_method_to_string(calls->method);
}

/* ---- workloads */

static int find_room(const struct gpu_calls *calls, const char *cgroup)
{
        const struct gpu_workload *workload;

        if (calls->n_workloads == GPU_WORKLOADS_MAX)
                return -ENOBUFS;
        LIST_FOREACH(workload, &calls->workloads, others)
        if (cgroup_is_inside(workload->cgroup, cgroup) || cgroup_is_inside(cgroup, workload->cgroup))
                return -EEXIST;
        return 0;
}

static int workload_start(struct gpu_workload *workload, const char *cgroup)
{
        int r;

        r = cgroup_id(cgroup, &workload->cgroup_id);
        if (r < 0)
                return r;
        workload->cgroup = strdup(cgroup);
        if (!workload->cgroup)
                return -ENOMEM;
        r = duty_new(workload);
        if (r < 0)
                return r;
        if (bpf_map_update_elem(bpf_map__fd(workload->calls->programs->maps.gpu_workloads), &workload->cgroup_id, &(uint8_t){ 1 },
                                BPF_ANY) < 0)
                return -errno;
        workload_look(workload, 0); /* from now on its libraries tell of processes that begin to use them */
        return 0;
}

int gpu_workload_new(struct gpu_calls *calls, const char *cgroup, void *userdata, struct gpu_workload **ret_workload)
{
        struct gpu_workload *workload;
        int r;

        r = find_room(calls, cgroup);
        if (r < 0)
                return r;
        workload = calloc(1, sizeof(*workload));
        if (!workload)
                return -ENOMEM;
        workload->calls = calls;
        workload->userdata = userdata;
        LIST_INSERT_HEAD(&calls->workloads, workload, others);
        calls->n_workloads++;
        r = workload_start(workload, cgroup);
        if (r < 0) {
                gpu_workload_free(workload);
                return r;
        }
        *ret_workload = workload;
        return 0;
}

struct gpu_workload *gpu_workload_free(struct gpu_workload *workload)
{
        struct gpu_calls *calls;

        if (!workload)
                return NULL;

        calls = workload->calls;
        duty_stop(workload);
        workload_forget_processes(workload);
        bpf_map_delete_elem(bpf_map__fd(calls->programs->maps.gpu_workloads), &workload->cgroup_id);
        sd_event_source_disable_unref(workload->timer);
        LIST_REMOVE(workload, others);
        calls->n_workloads--;
        free(workload->cgroup);
        free(workload);
        return NULL;
}

int gpu_calls_arm(struct gpu_workload *workload)
{
        return duty_start(workload);
}

void gpu_calls_disarm(struct gpu_workload *workload)
{
        duty_stop(workload);
}
