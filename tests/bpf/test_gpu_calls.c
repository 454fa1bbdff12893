/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes in cgroups of their own, with stand-ins for driver libraries (tests/gpu) and real probes on them. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cgroup.h"
#include "base/macros.h"
#include "base/time.h"
#include "gpu/calls.h"

enum { DEADLINE_SECONDS = 60, CLIENTS_MAX = 4 };

struct client {
        pid_t pid;
        FILE *commands, *answers;
};

struct setup {
        const char *method;
        char cgroup[PATH_MAX], other[PATH_MAX], programs[PATH_MAX], directory[64];
        sd_event *event;
        struct gpu_calls *calls;
        struct gpu_workload *workload;
        struct client clients[CLIENTS_MAX];
        size_t n_clients;
        unsigned stirred;
};

/* ---- clients */

static void enter(const char *cgroup)
{
        char path[PATH_MAX + 16];
        FILE *file;

        snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
        file = fopen(path, "we");
        if (!file || fprintf(file, "0") < 0 || fclose(file) != 0)
                _exit(127);
}

static void answer(struct client *client, char *ret_line, int size)
{
        if (!fgets(ret_line, size, client->answers))
                fail_msg("the client has ended");
        ret_line[strcspn(ret_line, "\n")] = '\0';
}

static struct client *start(struct setup *setup, const char *cgroup, const char *program)
{
        struct client *client = &setup->clients[setup->n_clients++];
        int commands[2], answers[2];
        char path[PATH_MAX + 16], line[64];

        assert_true(setup->n_clients <= CLIENTS_MAX);
        assert_int_equal(pipe2(commands, 0), 0);
        assert_int_equal(pipe2(answers, 0), 0);
        snprintf(path, sizeof(path), "%s/%s", setup->programs, program);
        client->pid = fork();
        if (client->pid == 0) {
                enter(cgroup);
                dup2(commands[0], STDIN_FILENO);
                dup2(answers[1], STDOUT_FILENO);
                for (int fd = STDERR_FILENO + 1; fd < 256; fd++)
                        close(fd);
                execl(path, program, NULL);
                _exit(127);
        }
        close(commands[0]);
        close(answers[1]);
        client->commands = fdopen(commands[1], "w");
        client->answers = fdopen(answers[0], "r");
        answer(client, line, sizeof(line));
        assert_string_equal(line, "ready");
        return client;
}

static void _printf_(2, 3) say(struct client *client, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        vfprintf(client->commands, format, arguments);
        va_end(arguments);
        fputc('\n', client->commands);
        fflush(client->commands);
}

/* Says what is to be done, and waits until it is. */
#define DO(client, expected, ...)                                                                                                  \
        do {                                                                                                                       \
                char _line[PATH_MAX];                                                                                              \
                say(client, __VA_ARGS__);                                                                                          \
                answer(client, _line, sizeof(_line));                                                                              \
                assert_string_equal(_line, expected);                                                                              \
        } while (0)

static struct client *start_with(struct setup *setup, const char *cgroup, const char *library)
{
        struct client *client = start(setup, cgroup, "client");

        DO(client, "opened", "open %s%s%s", library[0] == '/' ? "" : setup->programs, library[0] == '/' ? "" : "/", library);
        return client;
}

static void end(struct client *client, int signal)
{
        if (client->pid <= 0)
                return;
        if (signal)
                kill(client->pid, signal);
        fclose(client->commands);
        waitpid(client->pid, NULL, 0);
        fclose(client->answers);
        client->pid = 0;
}

/* ---- what is seen */

static void on_stirred(struct gpu_workload *workload, void *userdata)
{
        struct setup *setup = userdata;

        setup->stirred++;
}

static struct gpu_calls_reading look(struct setup *setup)
{
        struct gpu_calls_reading reading;

        assert_int_equal(gpu_calls_read(setup->workload, &reading), 0);
        return reading;
}

/* Runs the event loop until @condition, which may use "reading", a fresh one. */
#define UNTIL(setup, condition)                                                                                                    \
        do {                                                                                                                       \
                uint64_t _deadline = now_monotonic_ns() + DEADLINE_SECONDS * NSEC_PER_SEC;                                         \
                struct gpu_calls_reading reading = look(setup);                                                                    \
                while (!(condition)) {                                                                                             \
                        if (now_monotonic_ns() > _deadline)                                                                        \
                                fail_msg("not within %d s: %s (coverage %s: %s)", DEADLINE_SECONDS, #condition,                    \
                                         gpu_coverage_to_string(reading.coverage), reading.reason);                                \
                        assert_true(sd_event_run((setup)->event, 100000) >= 0);                                                    \
                        reading = look(setup);                                                                                     \
                }                                                                                                                  \
        } while (0)

/* Runs the event loop until the client answers. */
static long answer_meanwhile(struct setup *setup, struct client *client)
{
        struct pollfd poll_fd = { .fd = fileno(client->answers), .events = POLLIN };
        char line[64];

        while (poll(&poll_fd, 1, 0) == 0)
                assert_true(sd_event_run(setup->event, 20000) >= 0);
        answer(client, line, sizeof(line));
        return atol(line);
}

static void arm(struct setup *setup)
{
        assert_int_equal(gpu_calls_arm(setup->workload), 0);
}

/* ---- set up */

static int set_up_method(void **state, const char *method)
{
        static const struct gpu_calls_callbacks callbacks = { .stirred = on_stirred };
        struct setup *setup = calloc(1, sizeof(*setup));
        char *root;

        setup->method = method;
        assert_true(readlink("/proc/self/exe", setup->programs, sizeof(setup->programs) - 1) > 0);
        *strrchr(setup->programs, '/') = '\0';
        strcpy(strrchr(setup->programs, '/'), "/gpu");
        snprintf(setup->directory, sizeof(setup->directory), "/tmp/lull-gpu-XXXXXX");
        assert_non_null(mkdtemp(setup->directory));

        assert_int_equal(cgroup_find_root(&root), 0);
        snprintf(setup->cgroup, sizeof(setup->cgroup), "%s/lull-test-gpu-%d", root, getpid());
        snprintf(setup->other, sizeof(setup->other), "%s/lull-test-gpu-other-%d", root, getpid());
        free(root);
        assert_int_equal(mkdir(setup->cgroup, 0755), 0);
        assert_int_equal(mkdir(setup->other, 0755), 0);

        assert_int_equal(sd_event_new(&setup->event), 0);
        assert_int_equal(gpu_calls_new(setup->event, &callbacks, method, &setup->calls), 0);
        assert_int_equal(gpu_workload_new(setup->calls, setup->cgroup, setup, &setup->workload), 0);
        *state = setup;
        return 0;
}

static int set_up(void **state)
{
        return set_up_method(state, NULL);
}

static int set_up_perf(void **state)
{
        return set_up_method(state, "perf");
}

static int tear_down(void **state)
{
        struct setup *setup = *state;
        char command[128];

        for (size_t i = 0; i < setup->n_clients; i++)
                end(&setup->clients[i], SIGKILL);
        gpu_workload_free(setup->workload);
        gpu_calls_free(setup->calls);
        sd_event_unref(setup->event);
        rmdir(setup->cgroup);
        rmdir(setup->other);
        snprintf(command, sizeof(command), "rm -r %s", setup->directory);
        assert_int_equal(system(command), 0);
        free(setup);
        return 0;
}

static void copy(const struct setup *setup, const char *library, const char *name)
{
        char command[2 * PATH_MAX];

        snprintf(command, sizeof(command), "cp %s/%s %s/%s", setup->programs, library, setup->directory, name);
        assert_int_equal(system(command), 0);
}

/* ---- promises */

static void every_call_counts_however_it_is_reached(void **state)
{
        struct setup *setup = *state;
        struct client *cudart = start_with(setup, setup->cgroup, "libcuda.so.1");
        struct client *linked = start(setup, setup->cgroup, "client-linked");
        uint64_t before;

        DO(cudart, "called", "call cuLaunchKernel 7");
        arm(setup);
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_FULL);
        assert_int_equal(look(setup).submissions, 0);
        assert_int_equal(look(setup).last_submission_ns, 0);

        before = look(setup).covered_since_ns;
        assert_true(before > 0);
        assert_int_equal(look(setup).quiet_since_ns, before);
        DO(cudart, "called", "call cuLaunchKernel 1000");
        DO(cudart, "called", "thread cuLaunchKernel 100");
        DO(linked, "called", "launch 10");
        DO(linked, "called", "call cuGraphLaunch 1");
        DO(cudart, "called", "call cuMemcpyHtoD 2");
        DO(cudart, "called", "call cuLaunchKernel_ptsz 3");
        DO(cudart, "called", "call cuDeviceGetCount 4");
        assert_int_equal(look(setup).submissions, 1116);
        assert_true(look(setup).last_submission_ns >= before);
        assert_true(look(setup).quiet_since_ns >= look(setup).last_submission_ns);
        assert_int_equal(look(setup).covered_since_ns, before);
        assert_int_equal(look(setup).users, 2);
        assert_int_equal(look(setup).libraries, 1);
        assert_int_equal(look(setup).slow, 0);
}

static void other_vendors_count_too(void **state)
{
        struct setup *setup = *state;
        struct client *amd = start_with(setup, setup->cgroup, "libamdhip64.so.6");
        struct client *intel = start_with(setup, setup->cgroup, "libze_loader.so.1");
        struct gpu_library_view views[4];

        arm(setup);
        DO(amd, "called", "call hipLaunchKernel 5");
        DO(amd, "called", "call hipMalloc 1");
        DO(intel, "called", "call zeCommandQueueExecuteCommandLists 6");
        DO(intel, "called", "call zeCommandListAppendLaunchKernel 7");
        assert_int_equal(look(setup).submissions, 18);
        DO(amd, "called", "call hipDeviceSynchronize 3");
        assert_int_equal(look(setup).waits, 3);
        DO(intel, "begun", "begin zeFenceHostSynchronize");
        UNTIL(setup, reading.waiting == 1);
        DO(intel, "released", "release");

        assert_int_equal(gpu_workload_libraries(setup->workload, views, 4), 2);
        assert_int_equal(views[0].vendor, GPU_VENDOR_AMD);
        assert_int_equal(views[1].vendor, GPU_VENDOR_INTEL);
        assert_int_equal(views[0].functions, 6);
}

static void a_thread_waits_until_its_device_is_done(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1");

        arm(setup);
        DO(client, "begun", "begin cuStreamSynchronize");
        UNTIL(setup, reading.waiting == 1);
        assert_int_equal(look(setup).quiet_since_ns, 0);
        DO(client, "begun", "begin cuEventSynchronize"); /* which waits in cuStreamSynchronize */
        UNTIL(setup, reading.waiting == 2 && reading.waits == 3);

        DO(client, "released", "release");
        DO(client, "released", "release");
        assert_int_equal(look(setup).waiting, 0);
        assert_true(look(setup).quiet_since_ns >= look(setup).last_wait_ns);
        DO(client, "called", "call cuCtxSynchronize 20");
        assert_int_equal(look(setup).waits, 23);
        assert_int_equal(look(setup).waiting, 0);
}

static void a_process_that_dies_in_a_wait_waits_no_more(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1");

        arm(setup);
        DO(client, "begun", "begin cuStreamSynchronize");
        UNTIL(setup, reading.waiting == 1);
        end(client, SIGKILL);
        UNTIL(setup, reading.waiting == 0 && reading.processes == 0);
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_NONE);
}

static void a_wait_left_without_a_return_ends_with_the_next(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1");

        arm(setup);
        DO(client, "left", "abandon cuEventSynchronize");
        assert_int_equal(look(setup).waiting, 1);
        DO(client, "called", "call cuCtxSynchronize 1");
        assert_int_equal(look(setup).waiting, 0);
}

static void who_is_not_armed_is_not_probed(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1");
        struct client *bystander = start_with(setup, setup->other, "libcuda.so.1");
        struct gpu_workload *other;
        struct gpu_calls_reading reading;

        assert_int_equal(gpu_workload_new(setup->calls, setup->other, setup, &other), 0);
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_DISARMED);
        assert_int_equal(look(setup).quiet_since_ns, 0);
        arm(setup);
        DO(client, "called", "call cuLaunchKernel 3");
        DO(bystander, "called", "call cuLaunchKernel 5");
        assert_int_equal(look(setup).submissions, 3);
        assert_int_equal(gpu_calls_read(other, &reading), 0);
        assert_int_equal(reading.coverage, GPU_COVERAGE_DISARMED);
        assert_int_equal(reading.submissions, 0);

        gpu_calls_disarm(setup->workload);
        DO(client, "called", "call cuLaunchKernel 3");
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_DISARMED);
        arm(setup);
        assert_int_equal(look(setup).submissions, 0);
        DO(client, "called", "call cuLaunchKernel 4");
        assert_int_equal(look(setup).submissions, 4);
        gpu_workload_free(other);
}

static void who_initialises_a_known_library_is_probed_without_a_gap(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1"), *late;
        uint64_t covered;

        DO(client, "called", "call cuLaunchKernel 1");
        arm(setup);
        covered = look(setup).covered_since_ns;
        late = start_with(setup, setup->cgroup, "libcuda.so.1");
        DO(late, "called", "call cuInit 1");
        while (setup->stirred == 0)
                assert_true(sd_event_run(setup->event, DEADLINE_SECONDS * 1000000) > 0);
        DO(late, "called", "call cuLaunchKernel 9");
        assert_int_equal(look(setup).submissions, 9);
        assert_int_equal(look(setup).covered_since_ns, covered);
        assert_true(look(setup).initialised_ns > 0);
}

static void who_comes_with_a_library_of_its_own_leaves_a_gap(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1"), *late;
        char path[128];
        uint64_t covered;

        arm(setup);
        covered = look(setup).covered_since_ns;
        copy(setup, "libcuda.so.1", "libcuda.so.550.54.15");
        snprintf(path, sizeof(path), "%s/libcuda.so.550.54.15", setup->directory);
        late = start_with(setup, setup->cgroup, path);
        DO(late, "called", "call cuLaunchKernel 9");
        assert_true(look(setup).covered_since_ns > covered);
        assert_int_equal(look(setup).libraries, 2);
        DO(late, "called", "call cuLaunchKernel 9");
        DO(client, "called", "call cuLaunchKernel 1");
        assert_int_equal(look(setup).submissions, 10);
}

static void a_deleted_library_is_probed(void **state)
{
        struct setup *setup = *state;
        struct gpu_library_view view;
        struct client *client;
        char path[128];

        copy(setup, "libcuda.so.1", "libcuda.so.1");
        snprintf(path, sizeof(path), "%s/libcuda.so.1", setup->directory);
        client = start_with(setup, setup->cgroup, path);
        assert_int_equal(unlink(path), 0);
        copy(setup, "slow/libcuda.so.1", "libcuda.so.1");

        arm(setup);
        DO(client, "called", "call cuLaunchKernel 2");
        assert_int_equal(look(setup).submissions, 2);
        assert_int_equal(gpu_workload_libraries(setup->workload, &view, 1), 1);
        assert_true(view.deleted);
        assert_string_equal(view.path, path);
        assert_int_equal(view.slow, 0);
}

static void a_slow_function_is_said_and_counted(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "slow/libcuda.so.1");

        arm(setup);
        DO(client, "called", "call cuLaunchKernel 2");
        assert_int_equal(look(setup).submissions, 2);
        assert_int_equal(look(setup).slow, 1);
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_FULL);
}

static void what_cannot_be_probed_is_said(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1");
        char command[256];

        arm(setup);
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_FULL);
        snprintf(command, sizeof(command), "head -c 8192 /dev/zero > %s/libamdhip64.so.6", setup->directory);
        assert_int_equal(system(command), 0);
        DO(client, "mapped", "map %s/libamdhip64.so.6", setup->directory);
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_PARTIAL);
        assert_int_equal(look(setup).quiet_since_ns, 0);
        assert_int_equal(look(setup).unprobed, 1);
        assert_non_null(strstr(look(setup).reason, "libamdhip64.so.6 can't be probed: not a shared library of this machine"));
        DO(client, "called", "call cuLaunchKernel 2");
        assert_int_equal(look(setup).submissions, 2);
}

static void a_workload_without_a_driver_library_is_covered(void **state)
{
        struct setup *setup = *state;

        arm(setup);
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_NONE);
        start(setup, setup->cgroup, "client");
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_NONE);
        assert_int_equal(look(setup).processes, 1);
        assert_int_equal(look(setup).users, 0);
        assert_int_equal(look(setup).quiet_since_ns, look(setup).covered_since_ns);
}

static void processes_of_cgroups_below_count(void **state)
{
        struct setup *setup = *state;
        struct client *client;
        char below[PATH_MAX + 16];

        snprintf(below, sizeof(below), "%s/container", setup->cgroup);
        assert_int_equal(mkdir(below, 0755), 0);
        client = start_with(setup, below, "libcuda.so.1");
        arm(setup);
        DO(client, "called", "call cuLaunchKernel 2");
        assert_int_equal(look(setup).submissions, 2);
        end(client, SIGKILL);
        assert_int_equal(rmdir(below), 0);
}

static void a_library_that_is_unloaded_is_let_go(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1");

        arm(setup);
        assert_int_equal(look(setup).users, 1);
        DO(client, "closed", "close");
        assert_int_equal(look(setup).users, 0);
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_NONE);
}

static void nothing_is_known_of_a_cgroup_that_is_gone(void **state)
{
        struct setup *setup = *state;
        struct gpu_calls_reading reading;

        arm(setup);
        assert_int_equal(rmdir(setup->cgroup), 0);
        assert_int_equal(gpu_calls_read(setup->workload, &reading), -ENOENT);
}

static void one_cgroup_belongs_to_one_workload(void **state)
{
        struct setup *setup = *state;
        struct gpu_workload *second;
        char path[PATH_MAX + 16];

        assert_int_equal(gpu_workload_new(setup->calls, setup->cgroup, NULL, &second), -EEXIST);
        snprintf(path, sizeof(path), "%s/below", setup->cgroup);
        assert_int_equal(gpu_workload_new(setup->calls, path, NULL, &second), -EEXIST);
        strcpy(path, setup->cgroup);
        *strrchr(path, '/') = '\0';
        assert_int_equal(gpu_workload_new(setup->calls, path, NULL, &second), -EEXIST);
}

static void a_busy_workload_is_sampled_until_it_is_quiet(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1");
        uint64_t calls;

        arm(setup);
        say(client, "pace cuLaunchKernel 50000 2000");
        UNTIL(setup, reading.coverage == GPU_COVERAGE_SAMPLED);
        assert_int_equal(look(setup).quiet_since_ns, 0);
        assert_int_equal(answer_meanwhile(setup, client), 100000);
        calls = look(setup).submissions;
        assert_true(calls > 0 && calls < 100000);

        UNTIL(setup, reading.coverage == GPU_COVERAGE_FULL);
        assert_int_equal(look(setup).submissions, calls);
        assert_true(look(setup).quiet_since_ns > look(setup).last_submission_ns);
        DO(client, "called", "call cuLaunchKernel 2");
        assert_int_equal(look(setup).submissions, calls + 2);
}

static void a_wait_that_begins_between_samples_is_known(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1");

        arm(setup);
        say(client, "pace cuLaunchKernel 50000 1000");
        UNTIL(setup, reading.coverage == GPU_COVERAGE_SAMPLED);
        answer_meanwhile(setup, client);
        DO(client, "begun", "begin cuStreamSynchronize");
        UNTIL(setup, reading.waiting == 1);
        assert_int_equal(look(setup).coverage, GPU_COVERAGE_SAMPLED);

        UNTIL(setup, reading.coverage == GPU_COVERAGE_FULL);
        assert_int_equal(look(setup).waiting, 1);
        assert_int_equal(look(setup).quiet_since_ns, 0);
        DO(client, "released", "release");
        assert_int_equal(look(setup).waiting, 0);
        assert_true(look(setup).quiet_since_ns > 0);
}

static void waits_are_taken_off_where_there_are_many(void **state)
{
        struct setup *setup = *state;
        struct client *client = start_with(setup, setup->cgroup, "libcuda.so.1");

        arm(setup);
        say(client, "pace cuCtxSynchronize 50000 2000");
        UNTIL(setup, reading.coverage == GPU_COVERAGE_SAMPLED);
        assert_int_equal(answer_meanwhile(setup, client), 100000);
        assert_true(look(setup).waits < 100000);
        assert_int_equal(look(setup).waiting, 0);
}

#define METHOD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define PERF(test) { "perf: " #test, test, set_up_perf, tear_down, NULL }

int main(void)
{
        const struct CMUnitTest tests[] = {
                METHOD(every_call_counts_however_it_is_reached),
                METHOD(other_vendors_count_too),
                METHOD(a_thread_waits_until_its_device_is_done),
                METHOD(a_process_that_dies_in_a_wait_waits_no_more),
                METHOD(a_wait_left_without_a_return_ends_with_the_next),
                METHOD(who_is_not_armed_is_not_probed),
                METHOD(who_initialises_a_known_library_is_probed_without_a_gap),
                METHOD(who_comes_with_a_library_of_its_own_leaves_a_gap),
                METHOD(a_deleted_library_is_probed),
                METHOD(a_slow_function_is_said_and_counted),
                METHOD(what_cannot_be_probed_is_said),
                METHOD(a_workload_without_a_driver_library_is_covered),
                METHOD(processes_of_cgroups_below_count),
                METHOD(a_library_that_is_unloaded_is_let_go),
                METHOD(nothing_is_known_of_a_cgroup_that_is_gone),
                METHOD(one_cgroup_belongs_to_one_workload),
                METHOD(a_busy_workload_is_sampled_until_it_is_quiet),
                METHOD(a_wait_that_begins_between_samples_is_known),
                METHOD(waits_are_taken_off_where_there_are_many),
                PERF(every_call_counts_however_it_is_reached),
                PERF(a_thread_waits_until_its_device_is_done),
                PERF(who_is_not_armed_is_not_probed),
                PERF(who_initialises_a_known_library_is_probed_without_a_gap),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
