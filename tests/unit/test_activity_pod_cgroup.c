/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>

#include "activity/pod_cgroup.h"
#include "base/directory.h"
#include "base/macros.h"

#define UID "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
#define UID_ "0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9"
#define OTHER "ffffffff-ffff-ffff-ffff-ffffffffffff"
#define HASH "00112233445566778899aabbccddeeff"
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
        const char *path, *pod, *uid, *container; /* pod: the path of its own cgroup */
} pods[] = {
        /* systemd driver */
        { "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope",
          "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice", UID, ID },
        { "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/crio-" ID ".scope/container",
          "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice", UID, ID },
        { "/kubepods.slice/kubepods-pod" UID_ ".slice/docker-" ID ".scope", "/kubepods.slice/kubepods-pod" UID_ ".slice", UID, ID },
        { "/kubepods.slice/kubepods-pod" HASH ".slice/cri-containerd-" ID ".scope", "/kubepods.slice/kubepods-pod" HASH ".slice",
          HASH, ID },
        { "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" UID_
          ".slice/cri-containerd-" ID ".scope",
          "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" UID_ ".slice",
          UID, ID },
        { "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_ ".slice",
          "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_ ".slice", UID, "" },
        { "kubepods.slice/kubepods-pod" UID_ ".slice/", "kubepods.slice/kubepods-pod" UID_ ".slice", UID, "" },
        /* cgroupfs driver */
        { "/kubepods/burstable/pod" UID "/" ID, "/kubepods/burstable/pod" UID, UID, ID },
        { "/kubepods/besteffort/pod" UID "/crio-" ID "/container", "/kubepods/besteffort/pod" UID, UID, ID },
        { "/kubepods/pod" UID "/" ID "/init.scope", "/kubepods/pod" UID, UID, ID },
        { "/kubepods/pod" HASH "/" ID, "/kubepods/pod" HASH, HASH, ID },
        { "/sys/fs/cgroup/kubelet/kubepods/burstable/pod" UID "/" ID, "/sys/fs/cgroup/kubelet/kubepods/burstable/pod" UID, UID,
          ID },
        /* of the pod, but no container: what CRI-O's monitor and runtimes' helpers run in */
        { "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" ID ".scope", "/kubepods.slice/kubepods-pod" UID_ ".slice", UID,
          "" },
        { "/kubepods/pod" UID "/" ID "0", "/kubepods/pod" UID, UID, "" },
        /* a container that plays another pod deeper down */
        { "/kubepods/pod" UID "/" ID "/kubepods/pod" OTHER "/" ID, "/kubepods/pod" UID, UID, ID },
        { "/kubepods/pod" UID "/x/kubepods.slice/kubepods-pod" UID_ ".slice/" ID, "/kubepods/pod" UID, UID, "" },
};

static void a_path_tells_its_pod(void **state)
{
        for (size_t i = 0; i < ELEMENTSOF(pods); i++) {
                struct pod_cgroup pod;

                assert_int_equal(pod_cgroup_parse(pods[i].path, &pod), 0);
                assert_string_equal(pod.uid, pods[i].uid);
                assert_string_equal(pod.container, pods[i].container);
                assert_int_equal(pod.length, strlen(pods[i].pod));
                assert_memory_equal(pods[i].path, pods[i].pod, pod.length);
        }
}

static void what_only_looks_like_a_pod_s_is_nobody_s(void **state)
{
        static const char *const paths[] = {
                "",
                "/",
                "/system.slice/kubelet.service",
                "/kubepods.slice",
                "/kubepods/burstable",
                "/pod" UID "/" ID,
                "/kubepods/system/pod" UID "/" ID,
                "/burstable/pod" UID,
                "/kubepodsx/pod" UID,
                "/xkubepods/pod" UID,
                "/xkubepods.slice/xkubepods-pod" UID_ ".slice",
                "/kubepods/pod" UID_,                                                  /* the other driver's dashes */
                "/kubepods.slice/kubepods-pod" UID ".slice",                           /* systemd would read them as levels */
                "/kubepods/kubepods-pod" UID_ ".slice",                                /* half of each driver */
                "/kubepods.slice/pod" UID,                                             /* likewise */
                "/kubepods.slice/kubepods-burstable-pod" UID_ ".slice",                /* its class's slice is missing */
                "/kubepods.slice/kubepods-burstable.slice/kubepods-pod" UID_ ".slice", /* another class's */
                "/a-kubepods.slice/b-kubepods-burstable.slice/b-kubepods-burstable-pod" UID_ ".slice",
                "/kubepods.slice/-pod" UID_ ".slice",
                "/kubepods/pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f",
                "/kubepods/pod0A1B2C3D-4e5f-6071-8293-a4b5c6d7e8f9",
                "/kubepods/pod0a1b2c3d4-e5f-6071-8293-a4b5c6d7e8f9",
                "/kubepods/pod" HASH "0",
                "/kubepods/pod",
                "/kubepods/pod" UID "x",
                "/docker/" ID,
        };

        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                struct pod_cgroup pod = { .length = 42 };

                if (pod_cgroup_parse(paths[i], &pod) != -ENOENT)
                        fail_msg("%s was taken for %s's", paths[i], pod.uid);
                assert_int_equal(pod.length, 42);
        }
}

static void *new_root(void)
{
        char *root = strdup("/tmp/lull-pods-XXXXXX");

        assert_non_null(mkdtemp(root));
        return root;
}

static void remove_root(char **root)
{
        char command[128];

        snprintf(command, sizeof(command), "rm -r %s", *root);
        assert_int_equal(system(command), 0);
        free(*root);
}

static void a_pod_s_cgroup_is_found_wherever_a_kubelet_puts_it(void **state)
{
        for (size_t i = 0; i < ELEMENTSOF(pods); i++) {
                _cleanup_(remove_root) char *root = new_root();
                _cleanup_(freep) char *wanted = NULL, *found = NULL;

                if (strncmp(pods[i].path, "/sys", 4) == 0)
                        continue;
                assert_true(asprintf(&wanted, "%s/%s", root, pods[i].pod + strspn(pods[i].pod, "/")) > 0);
                assert_int_equal(pod_cgroup_find(root, pods[i].uid, &found), -ENOENT);
                assert_int_equal(directory_make(wanted, 0755), 0);
                assert_int_equal(pod_cgroup_find(root, pods[i].uid, &found), 0);
                assert_string_equal(found, wanted);
        }
}

static void a_pod_s_cgroup_is_not_looked_for_where_a_workload_may_make_one(void **state)
{
        _cleanup_(remove_root) char *root = new_root();
        _cleanup_(freep) char *fake = NULL, *found = NULL;

        assert_true(asprintf(&fake, "%s/kubepods/pod" UID "/" ID "/kubepods/pod" OTHER, root) > 0);
        assert_int_equal(directory_make(fake, 0755), 0);
        assert_int_equal(pod_cgroup_find(root, OTHER, &found), -ENOENT);
}

static void what_is_no_uid_is_not_looked_for(void **state)
{
        static const char *const uids[] = { "", "..", "../../etc", UID "/..", UID_, "0a1b2c3d", HASH "/" };
        char *found = NULL;

        for (size_t i = 0; i < ELEMENTSOF(uids); i++)
                assert_int_equal(pod_cgroup_find("/tmp", uids[i], &found), -EINVAL);
        assert_int_equal(pod_cgroup_find("/nowhere", UID, &found), -ENOENT);
        assert_null(found);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_path_tells_its_pod),
                cmocka_unit_test(what_only_looks_like_a_pod_s_is_nobody_s),
                cmocka_unit_test(a_pod_s_cgroup_is_found_wherever_a_kubelet_puts_it),
                cmocka_unit_test(a_pod_s_cgroup_is_not_looked_for_where_a_workload_may_make_one),
                cmocka_unit_test(what_is_no_uid_is_not_looked_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
