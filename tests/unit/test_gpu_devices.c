/* SPDX-License-Identifier: Apache-2.0 */
/* Which open file is which GPU, and who has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/macros.h"
#include "gpu/devices.h"
#include "gpu/holders.h"
#include "serve/gpu.h"

static const char proc_devices[] = "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n226 drm\n234 nvidia-caps\n235 kfd\n"
                                   "511 nvidia-uvm\n\nBlock devices:\n  7 loop\n236 kfd\n";

static void drivers_are_found_by_their_names(void **state)
{
        struct gpu_majors majors = gpu_majors_parse(proc_devices);

        assert_int_equal(majors.nvidia, 195);
        assert_int_equal(majors.drm, 226);
        assert_int_equal(majors.nvidia_caps, 234);
        assert_int_equal(majors.kfd, 235);
        assert_int_equal(majors.nvidia_uvm, 511);
        assert_true(gpu_majors_any(&majors));

        majors = gpu_majors_parse("Character devices:\n195 nvidia-frontend\n");
        assert_int_equal(majors.nvidia, 195);
        majors = gpu_majors_parse("Character devices:\n  1 mem\n");
        assert_false(gpu_majors_any(&majors));
        majors = gpu_majors_parse("");
        assert_false(gpu_majors_any(&majors));
}

static void nodes_are_told_apart(void **state)
{
        static const struct {
                unsigned major, minor;
                enum gpu_node_kind kind;
        } cases[] = {
                { 195, 0, GPU_NODE_NVIDIA },    { 195, 253, GPU_NODE_NVIDIA }, { 195, 254, GPU_NODE_CONTROL },
                { 195, 255, GPU_NODE_CONTROL }, { 226, 128, GPU_NODE_DRM },    { 226, 0, GPU_NODE_DRM },
                { 511, 0, GPU_NODE_CONTROL },   { 234, 1, GPU_NODE_CONTROL },  { 235, 0, GPU_NODE_KFD },
                { 1, 3, GPU_NODE_NONE },        { 0, 0, GPU_NODE_NONE },
        };
        struct gpu_majors majors = gpu_majors_parse(proc_devices), none = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_int_equal(gpu_node_of(&majors, makedev(cases[i].major, cases[i].minor)).kind, cases[i].kind);
                assert_int_equal(gpu_node_of(&none, makedev(cases[i].major, cases[i].minor)).kind, GPU_NODE_NONE);
        }
}

static void a_card_is_the_device_of_its_render_node(void **state)
{
        char root[] = "/tmp/lull-sys-XXXXXX", path[256], target[256], command[64];
        struct gpu_drm_device device;

        assert_non_null(mkdtemp(root));
        snprintf(path, sizeof(path), "%s/devices/0000:0b:00.0/drm/renderD129", root);
        assert_int_equal(directory_make(path, 0755), 0);
        snprintf(path, sizeof(path), "%s/drivers/amdgpu", root);
        assert_int_equal(directory_make(path, 0755), 0);
        snprintf(target, sizeof(target), "%s/devices/0000:0b:00.0/driver", root);
        assert_int_equal(symlink(path, target), 0);
        snprintf(path, sizeof(path), "%s/dev/char/226:1", root);
        assert_int_equal(directory_make(path, 0755), 0);
        snprintf(target, sizeof(target), "%s/devices/0000:0b:00.0", root);
        strcat(path, "/device");
        assert_int_equal(symlink(target, path), 0);

        assert_int_equal(gpu_drm_find(root, 226, 1, &device), 0);
        assert_int_equal(device.render_minor, 129);
        assert_string_equal(device.driver, "amdgpu");
        assert_string_equal(device.bus_id, "0000:0b:00.0");
        assert_int_equal(gpu_drm_find(root, 226, 2, &device), -ENODEV);

        snprintf(path, sizeof(path), "%s/devices/0000:0b:00.0/drm/renderD129", root);
        assert_int_equal(rmdir(path), 0); /* only a display */
        assert_int_equal(gpu_drm_find(root, 226, 1, &device), -ENODEV);
        snprintf(command, sizeof(command), "rm -r %s", root);
        assert_int_equal(system(command), 0);
}

struct found {
        unsigned n;
        int fd;
        struct gpu_node node;
};

static void on_found(pid_t pid, int fd, const struct gpu_node *node, void *userdata)
{
        struct found *found = userdata;

        assert_int_equal(pid, getpid());
        if (node->minor == 7) {
                found->n++;
                found->fd = fd;
                found->node = *node;
        }
}

/* /dev/full, which nobody else has open, stands for nvidia7. */
static void descriptors_of_a_process_are_looked_through(void **state)
{
        struct gpu_majors majors = { .nvidia = 1 };
        struct found found = { 0 };
        int fd = open("/dev/full", O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(gpu_holders_of_process("/proc", &majors, getpid(), on_found, &found), 0);
        assert_int_equal(found.n, 1);
        assert_int_equal(found.fd, fd);
        assert_int_equal(found.node.kind, GPU_NODE_NVIDIA);

        close(fd);
        assert_int_equal(gpu_holders_of_process("/proc", &majors, getpid(), on_found, &found), 0);
        assert_int_equal(found.n, 1);
        assert_int_equal(gpu_holders_of_process("/proc", &majors, INT32_MAX, on_found, &found), -ESRCH);
}

static void a_paragraph_says_why(void **state)
{
        json_t *workload =
                json_pack("{ss, ss, ss, sf, s[ss], s[{ss,ss},{ss,ss}], s{si,si}, s{sf,sf}}", "name", "web", "state", "idle",
                          "reason", "nothing was submitted, waited for or run for 31m", "since_seconds", 60.0, "sources", "calls",
                          "vendor", "devices", "device", "nvidia0", "state", "idle", "device", "nvidia1", "state", "unused",
                          "calls", "submissions", 12, "waiting", 0, "gpu_seconds", "allocated", 4000.0, "idle", 3600.0);
        char *text = NULL;

        assert_non_null(workload);
        assert_int_equal(gpu_why_text(workload, &text), 0);
        assert_string_equal(text,
                            "web is idle since 1m: nothing was submitted, waited for or run for 31m. What is known comes from the "
                            "driver's calls and NVML. Of its devices nvidia0 is idle, nvidia1 is unused; it is idle only when all "
                            "are. It has submitted work 12 times and 0 of its threads wait. Since it is watched it has had devices "
                            "for 1h6m, and was idle for 1h of that.");
        free(text);
        json_decref(workload);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(drivers_are_found_by_their_names),
                cmocka_unit_test(nodes_are_told_apart),
                cmocka_unit_test(a_card_is_the_device_of_its_render_node),
                cmocka_unit_test(descriptors_of_a_process_are_looked_through),
                cmocka_unit_test(a_paragraph_says_why),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
