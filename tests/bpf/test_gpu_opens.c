/* SPDX-License-Identifier: Apache-2.0 */
/* Opens of devices as the kernel tells them, with other character devices taken for GPUs. */
#include "children.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "base/macros.h"
#include "gpu/opens.h"

enum { GPU_MAJOR = 1, OTHER_MAJOR = 10, FUSE = 229, TOLD_MAX = 1024 }; /* memory devices, miscellaneous ones */

struct setup {
        cgroup_path cgroup, below, outside;
        char directory[64], gpu[96], other[96];
        sd_event *event;
        struct gpu_opens *opens;
        int link_fd;
        uint64_t told[TOLD_MAX];
        size_t n_told;
};

static void on_opened(uint64_t cgroup, void *userdata)
{
        struct setup *setup = userdata;

        assert_true(setup->n_told < TOLD_MAX);
        setup->told[setup->n_told++] = cgroup;
}

static int set_up(void **state)
{
        struct setup *setup = calloc(1, sizeof(*setup));

        make_cgroup("opens", setup->cgroup);
        make_cgroup_below(setup->cgroup, "container", setup->below);
        make_cgroup("opens-outside", setup->outside);
        snprintf(setup->directory, sizeof(setup->directory), "/tmp/lull-opens-XXXXXX");
        assert_non_null(mkdtemp(setup->directory));
        assert_int_equal(mount("tmpfs", setup->directory, "tmpfs", 0, NULL), 0); /* with device nodes, wherever /tmp is */
        snprintf(setup->gpu, sizeof(setup->gpu), "%s/gpu", setup->directory);
        snprintf(setup->other, sizeof(setup->other), "%s/other", setup->directory);
        assert_int_equal(mknod(setup->gpu, S_IFCHR | 0600, makedev(GPU_MAJOR, 3)), 0);
        assert_int_equal(mknod(setup->other, S_IFCHR | 0600, makedev(OTHER_MAJOR, FUSE)), 0);

        assert_int_equal(sd_event_new(&setup->event), 0);
        assert_int_equal(gpu_opens_new(setup->event, on_opened, setup, &setup->opens), 0);
        assert_int_equal(gpu_opens_set_majors(setup->opens, &(struct gpu_majors){ .nvidia = GPU_MAJOR }), 0);
        setup->link_fd = gpu_opens_attach(setup->opens, setup->cgroup);
        assert_true(setup->link_fd >= 0);
        *state = setup;
        return 0;
}

static int tear_down(void **state)
{
        struct setup *setup = *state;

        close_fd(setup->link_fd);
        gpu_opens_free(setup->opens);
        sd_event_unref(setup->event);
        umount(setup->directory);
        rmdir(setup->directory);
        rmdir(setup->below);
        rmdir(setup->cgroup);
        rmdir(setup->outside);
        free(setup);
        return 0;
}

/* Takes what has been told by now. */
static void listen(struct setup *setup)
{
        assert_true(sd_event_run(setup->event, 0) >= 0);
}

static int open_once(const char *path)
{
        int fd = open(path, O_RDONLY | O_NOCTTY);

        return fd < 0 ? errno : close(fd);
}

static int open_ten_times(const char *path)
{
        int error = 0;

        for (int i = 0; i < 10 && !error; i++)
                error = open_once(path);
        return error;
}

static void an_open_is_told_with_the_cgroup_of_whoever_opens(void **state)
{
        struct setup *setup = *state;

        assert_int_equal(in_cgroup(setup->cgroup, open_once, setup->gpu), 0);
        assert_int_equal(in_cgroup(setup->below, open_once, setup->gpu), 0);
        assert_int_equal(in_cgroup(setup->outside, open_once, setup->gpu), 0);
        listen(setup);
        assert_int_equal(setup->n_told, 2);
        assert_int_equal(setup->told[0], id_of(setup->cgroup));
        assert_int_equal(setup->told[1], id_of(setup->below));
        assert_int_equal(gpu_opens_seen(setup->opens), 2);
}

static void a_crowd_of_opens_is_told_once(void **state)
{
        struct setup *setup = *state;

        assert_int_equal(in_cgroup(setup->cgroup, open_ten_times, setup->gpu), 0);
        listen(setup);
        assert_int_equal(setup->n_told, 1);
        assert_int_equal(gpu_opens_seen(setup->opens), 10);
}

static int make_nodes(const char *directory)
{
        char path[PATH_MAX];

        for (unsigned major = 1; major < 256; major++) {
                snprintf(path, sizeof(path), "%s/%u", directory, major);
                if (mknod(path, S_IFCHR | 0600, makedev(major, 7)) < 0 || unlink(path) < 0 ||
                    mknod(path, S_IFBLK | 0600, makedev(major, 7)) < 0 || unlink(path) < 0)
                        return errno;
        }
        return 0;
}

static void nothing_else_is_told_or_denied(void **state)
{
        struct setup *setup = *state;

        assert_int_equal(in_cgroup(setup->cgroup, open_once, setup->other), 0);
        assert_int_equal(in_cgroup(setup->cgroup, make_nodes, setup->directory), 0);
        assert_int_equal(in_cgroup(setup->cgroup, open_once, "/proc/self/exe"), 0);
        listen(setup);
        assert_int_equal(setup->n_told, 0);
        assert_int_equal(gpu_opens_seen(setup->opens), 0);
}

static void numbers_that_drivers_have_exchanged_are_known(void **state)
{
        struct setup *setup = *state;

        assert_int_equal(gpu_opens_set_majors(setup->opens, &(struct gpu_majors){ .nvidia = OTHER_MAJOR, .kfd = GPU_MAJOR }), 0);
        assert_int_equal(in_cgroup(setup->cgroup, open_once, setup->gpu), 0);
        assert_int_equal(in_cgroup(setup->below, open_once, setup->other), 0);
        listen(setup);
        assert_int_equal(setup->n_told, 2);
        assert_int_equal(gpu_opens_set_majors(setup->opens, &(struct gpu_majors){ .nvidia = OTHER_MAJOR }), 0);
        assert_int_equal(in_cgroup(setup->cgroup, open_once, setup->gpu), 0);
        assert_int_equal(gpu_opens_seen(setup->opens), 2);
}

static void after_the_link_is_closed_nothing_is_seen(void **state)
{
        struct setup *setup = *state;

        setup->link_fd = close_fd(setup->link_fd);
        assert_int_equal(in_cgroup(setup->cgroup, open_once, setup->gpu), 0);
        assert_int_equal(gpu_opens_seen(setup->opens), 0);
}

enum { CROWD = 300 };

static void for_each_of_crowd(struct setup *setup, void (*what)(struct setup *setup, const char *cgroup))
{
        char path[PATH_MAX + 16];

        for (int i = 0; i < CROWD; i++) {
                snprintf(path, sizeof(path), "%s/%d", setup->cgroup, i);
                what(setup, path);
        }
}

static void make_and_open(struct setup *setup, const char *cgroup)
{
        assert_int_equal(mkdir(cgroup, 0755), 0);
        assert_int_equal(in_cgroup(cgroup, open_once, setup->gpu), 0);
}

static bool was_told(const struct setup *setup, const char *cgroup)
{
        uint64_t id = id_of(cgroup);

        for (size_t i = 0; i < setup->n_told; i++)
                if (setup->told[i] == id)
                        return true;
        return false;
}

static void open_again(struct setup *setup, const char *cgroup)
{
        if (!was_told(setup, cgroup))
                assert_int_equal(in_cgroup(cgroup, open_once, setup->gpu), 0);
}

static void require_told_and_remove(struct setup *setup, const char *cgroup)
{
        bool told = was_told(setup, cgroup);

        rmdir(cgroup);
        assert_true(told);
}

static void what_there_is_no_room_for_is_counted_and_told_by_the_next_open(void **state)
{
        struct setup *setup = *state;
        uint64_t lost;

        for_each_of_crowd(setup, make_and_open);
        lost = gpu_opens_lost(setup->opens);
        assert_true(lost > 0);
        listen(setup);
        assert_int_equal(setup->n_told + lost, CROWD);

        for_each_of_crowd(setup, open_again);
        listen(setup);
        for_each_of_crowd(setup, require_told_and_remove);
        assert_int_equal(gpu_opens_lost(setup->opens), lost);
}

/* A device program by others, who allow nothing. Returns its fd. */
static int load_denial(void)
{
        const struct bpf_insn program[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT } };
        int fd = bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, "denial", "GPL", program, ELEMENTSOF(program), NULL);

        assert_true(fd >= 0);
        return fd;
}

static int attach_denial(const char *cgroup, int program, unsigned flags)
{
        _cleanup_(close_fdp) int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return bpf_prog_attach(program, fd, BPF_CGROUP_DEVICE, flags) < 0 ? -errno : 0;
}

static void detach_denial(const char *cgroup, int program)
{
        _cleanup_(close_fdp) int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(bpf_prog_detach2(program, fd, BPF_CGROUP_DEVICE), 0);
}

/* As container runtimes and systemd attach theirs: beside ours, below it, around it. */
static void what_others_deny_stays_denied_and_ours_denies_nothing(void **state)
{
        static const unsigned flags[] = { 0, BPF_F_ALLOW_OVERRIDE, BPF_F_ALLOW_MULTI };
        struct setup *setup = *state;
        int denial = load_denial();

        for (size_t i = 0; i < ELEMENTSOF(flags); i++) {
                assert_int_equal(attach_denial(setup->below, denial, flags[i]), 0);
                assert_int_equal(in_cgroup(setup->below, open_once, setup->gpu), EPERM);
                assert_int_equal(in_cgroup(setup->cgroup, open_once, setup->gpu), 0);
                detach_denial(setup->below, denial);
                assert_int_equal(in_cgroup(setup->below, open_once, setup->gpu), 0);
        }
        assert_int_equal(gpu_opens_seen(setup->opens), 3 * ELEMENTSOF(flags)); /* the denied ones, too */
        assert_int_equal(attach_denial(setup->cgroup, denial, BPF_F_ALLOW_MULTI), 0);
        assert_int_equal(in_cgroup(setup->cgroup, open_once, setup->other), EPERM);
        detach_denial(setup->cgroup, denial);
        assert_int_equal(in_cgroup(setup->cgroup, open_once, setup->other), 0);
        close_fd(denial);
}

static void a_cgroup_whose_program_suffers_no_other_is_left_alone(void **state)
{
        struct setup *setup = *state;
        int denial = load_denial();

        assert_int_equal(attach_denial(setup->outside, denial, 0), 0);
        assert_int_equal(gpu_opens_attach(setup->opens, setup->outside), -EPERM);
        assert_int_equal(in_cgroup(setup->outside, open_once, setup->gpu), EPERM);
        detach_denial(setup->outside, denial);
        close_fd(denial);
        assert_int_equal(gpu_opens_attach(setup->opens, "/proc"), -EBADF);
}

#define METHOD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                METHOD(an_open_is_told_with_the_cgroup_of_whoever_opens),
                METHOD(a_crowd_of_opens_is_told_once),
                METHOD(nothing_else_is_told_or_denied),
                METHOD(numbers_that_drivers_have_exchanged_are_known),
                METHOD(after_the_link_is_closed_nothing_is_seen),
                METHOD(what_there_is_no_room_for_is_counted_and_told_by_the_next_open),
                METHOD(what_others_deny_stays_denied_and_ours_denies_nothing),
                METHOD(a_cgroup_whose_program_suffers_no_other_is_left_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
