/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says: DRM fdinfo and KFD's sysfs, from texts as drivers write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/directory.h"
#include "base/macros.h"
#include "gpu/drm_fdinfo.h"
#include "gpu/kfd.h"

static const char amdgpu[] = "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t1056\ndrm-driver:\tamdgpu\npasid:\t32770\n"
                             "drm-pdev:\t0000:0b:00.0\ndrm-client-id:\t8\ndrm-memory-vram:\t1892 KiB\n"
                             "drm-engine-capacity-compute:\t4\ndrm-engine-gfx:\t9288864723 ns\ndrm-engine-compute:\t15 ns\n";
static const char xe[] = "drm-driver:\txe\ndrm-client-id:\t42\ndrm-pdev:\t0000:03:00.0\ndrm-cycles-rcs:\t28257900\n"
                         "drm-total-cycles-rcs:\t7655183225\ndrm-cycles-ccs:\t0\ndrm-total-cycles-ccs:\t7655183225\n"
                         "drm-engine-capacity-ccs:\t4\n";

static void engines_are_read_in_nanoseconds_and_in_cycles(void **state)
{
        struct drm_client client;

        assert_int_equal(drm_fdinfo_parse(amdgpu, &client), 0);
        assert_string_equal(client.driver, "amdgpu");
        assert_string_equal(client.pdev, "0000:0b:00.0");
        assert_true(client.has_id);
        assert_int_equal(client.id, 8);
        assert_int_equal(client.n_engines, 2);
        assert_string_equal(client.engines[0].name, "gfx");
        assert_int_equal(client.engines[0].busy_ns, 9288864723);
        assert_int_equal(client.engines[1].busy_ns, 15);

        assert_int_equal(drm_fdinfo_parse(xe, &client), 0);
        assert_int_equal(client.n_engines, 2);
        assert_string_equal(client.engines[0].name, "rcs");
        assert_int_equal(client.engines[0].busy_cycles, 28257900);
        assert_int_equal(client.engines[0].busy_ns, 0);
}

static void other_descriptors_have_no_client(void **state)
{
        struct drm_client client;

        assert_int_equal(drm_fdinfo_parse("pos:\t0\nflags:\t02\n", &client), -ENODATA);
        assert_int_equal(drm_fdinfo_parse("", &client), -ENODATA);
        assert_int_equal(drm_fdinfo_parse("drm-driver", &client), -ENODATA);
        assert_int_equal(drm_fdinfo_parse("drm-driver:", &client), -ENODATA);
}

static void hostile_text_stays_within_its_bounds(void **state)
{
        struct drm_client client;
        char text[8192] = "drm-driver:\t";
        size_t length = strlen(text);

        memset(text + length, 'a', 100);
        length += 100;
        for (unsigned i = 0; i < 40; i++)
                length += (size_t)snprintf(text + length, sizeof(text) - length, "\ndrm-engine-%u:\t%u ns", i, i);
        length += (size_t)snprintf(text + length, sizeof(text) - length, "\ndrm-engine-%0100u:\t1 ns\ndrm-engine-:\t1 ns\n", 1);
        assert_int_equal(drm_fdinfo_parse(text, &client), 0);
        assert_int_equal(strlen(client.driver), sizeof(client.driver) - 1);
        assert_int_equal(client.n_engines, DRM_ENGINES_MAX);
}

static struct drm_client client_of(uint64_t id, uint64_t busy_ns)
{
        return (struct drm_client){ .driver = "amdgpu",
                                    .pdev = "0000:0b:00.0",
                                    .id = id,
                                    .has_id = true,
                                    .engines = { { .name = "compute", .busy_ns = busy_ns } },
                                    .n_engines = 1 };
}

static struct drm_usage_totals read_clients(struct drm_usage *usage, const struct drm_client *clients, size_t n, uint64_t now_ns)
{
        drm_usage_begin(usage);
        for (size_t i = 0; i < n; i++)
                drm_usage_add(usage, &clients[i], 1, (uint32_t)i);
        drm_usage_end(usage, now_ns);
        return drm_usage_totals(usage);
}

static void a_counter_that_advances_is_work(void **state)
{
        struct drm_usage *usage = drm_usage_new();
        struct drm_client client = client_of(1, 1000);
        struct drm_usage_totals totals;

        totals = read_clients(usage, &client, 1, 10);
        assert_int_equal(totals.last_busy_ns, 0); /* when that was is not known */
        assert_int_equal(totals.since_ns, 10);

        client = client_of(1, 1500);
        totals = read_clients(usage, &client, 1, 20);
        assert_int_equal(totals.last_busy_ns, 20);
        assert_int_equal(totals.busy_ns, 500);

        totals = read_clients(usage, &client, 1, 30);
        assert_int_equal(totals.last_busy_ns, 20);
        assert_int_equal(totals.since_ns, 10);
        drm_usage_free(usage);
}

static void a_counter_that_goes_back_is_clamped(void **state)
{
        struct drm_usage *usage = drm_usage_new();
        static const uint64_t values[] = { 1000, 800, 1000, 1100 };
        struct drm_usage_totals totals = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(values); i++) {
                struct drm_client client = client_of(1, values[i]);

                totals = read_clients(usage, &client, 1, 10 * (i + 1));
                assert_int_equal(totals.last_busy_ns, i == 3 ? 40 : 0);
        }
        assert_int_equal(totals.busy_ns, 100);
        drm_usage_free(usage);
}

static void two_descriptors_of_one_client_count_once(void **state)
{
        struct drm_usage *usage = drm_usage_new();
        struct drm_client clients[2] = { client_of(1, 0), client_of(1, 0) };

        read_clients(usage, clients, 2, 10);
        clients[0] = clients[1] = client_of(1, 700);
        assert_int_equal(read_clients(usage, clients, 2, 20).busy_ns, 700);
        drm_usage_free(usage);
}

static void without_ids_descriptors_are_told_apart_by_process(void **state)
{
        struct drm_usage *usage = drm_usage_new();
        struct drm_client clients[2] = { client_of(0, 0), client_of(0, 0) };

        clients[0].has_id = clients[1].has_id = false;
        read_clients(usage, clients, 2, 10);
        clients[0].engines[0].busy_ns = clients[1].engines[0].busy_ns = 700;
        assert_int_equal(read_clients(usage, clients, 2, 20).busy_ns, 1400);
        drm_usage_free(usage);
}

static void what_a_new_client_has_used_is_new_work(void **state)
{
        struct drm_usage *usage = drm_usage_new();
        struct drm_client clients[2] = { client_of(1, 50), client_of(2, 60) };

        read_clients(usage, clients, 1, 10);
        assert_int_equal(read_clients(usage, clients, 2, 20).last_busy_ns, 20);
        assert_int_equal(drm_usage_totals(usage).busy_ns, 60);
        drm_usage_free(usage);
}

static void cycles_are_work_too(void **state)
{
        struct drm_usage *usage = drm_usage_new();
        struct drm_client client = { .driver = "xe", .has_id = true, .engines = { { .name = "ccs" } }, .n_engines = 1 };

        read_clients(usage, &client, 1, 10);
        client.engines[0].busy_cycles = 1;
        assert_int_equal(read_clients(usage, &client, 1, 20).last_busy_ns, 20);
        drm_usage_free(usage);
}

static void a_reading_that_lacks_something_is_a_gap(void **state)
{
        struct drm_usage *usage = drm_usage_new();
        struct drm_client client = client_of(1, 0), uncounted = { .driver = "nouveau", .has_id = true, .id = 9 };

        assert_int_equal(read_clients(usage, &client, 1, 10).since_ns, 10);
        drm_usage_begin(usage);
        drm_usage_fail(usage);
        drm_usage_end(usage, 20);
        assert_int_equal(drm_usage_totals(usage).since_ns, 0);
        assert_int_equal(read_clients(usage, &client, 1, 30).since_ns, 30);
        assert_int_equal(read_clients(usage, &uncounted, 1, 40).since_ns, 0);
        drm_usage_free(usage);
}

static void too_many_clients_are_not_a_complete_reading(void **state)
{
        struct drm_usage *usage = drm_usage_new();

        drm_usage_begin(usage);
        for (unsigned i = 0; i < 300; i++) {
                struct drm_client client = client_of(i, 1);

                drm_usage_add(usage, &client, 1, i);
        }
        drm_usage_end(usage, 10);
        assert_int_equal(drm_usage_totals(usage).since_ns, 0);
        drm_usage_free(usage);
}

struct sysfs {
        char root[64];
};

static void writes(const struct sysfs *sysfs, const char *name, const char *text)
{
        char path[256], directory[256], *slash;
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", sysfs->root, name);
        snprintf(directory, sizeof(directory), "%s", path);
        slash = strrchr(directory, '/');
        *slash = '\0';
        assert_int_equal(directory_make(directory, 0755), 0);
        file = fopen(path, "we");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

static int make_sysfs(void **state)
{
        struct sysfs *sysfs = calloc(1, sizeof(*sysfs));

        assert_non_null(sysfs);
        snprintf(sysfs->root, sizeof(sysfs->root), "/tmp/lull-kfd-XXXXXX");
        assert_non_null(mkdtemp(sysfs->root));
        writes(sysfs, "topology/nodes/0/properties", "cpu_cores_count 8\ndrm_render_minor 0\n");
        writes(sysfs, "topology/nodes/0/gpu_id", "0\n");
        writes(sysfs, "topology/nodes/1/properties", "simd_count 208\ndrm_render_minor 128\nhive_id 0\n");
        writes(sysfs, "topology/nodes/1/gpu_id", "4711\n");
        *state = sysfs;
        return 0;
}

static int end_sysfs(void **state)
{
        struct sysfs *sysfs = *state;
        char command[128];

        snprintf(command, sizeof(command), "rm -r %s", sysfs->root);
        assert_int_equal(system(command), 0);
        free(sysfs);
        return 0;
}

static void compute_units_of_a_process_are_read(void **state)
{
        const struct sysfs *sysfs = *state;
        uint32_t units = 99;

        writes(sysfs, "proc/42/stats_4711/cu_occupancy", "104\n");
        assert_int_equal(kfd_occupancy(sysfs->root, 42, 128, &units), 0);
        assert_int_equal(units, 104);
        assert_int_equal(kfd_occupancy(sysfs->root, 43, 128, &units), -ESRCH);
        assert_int_equal(kfd_occupancy(sysfs->root, 42, 12, &units), -EOPNOTSUPP);
        assert_int_equal(kfd_occupancy(sysfs->root, 42, 129, &units), -EOPNOTSUPP);
}

static void a_device_that_does_not_tell_its_occupancy_is_no_source(void **state)
{
        const struct sysfs *sysfs = *state;
        uint32_t units = 99;

        writes(sysfs, "proc/42/stats_4711/evicted_ms", "0\n");
        assert_int_equal(kfd_occupancy(sysfs->root, 42, 128, &units), -EOPNOTSUPP);
        assert_int_equal(units, 99);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(engines_are_read_in_nanoseconds_and_in_cycles),
                cmocka_unit_test(other_descriptors_have_no_client),
                cmocka_unit_test(hostile_text_stays_within_its_bounds),
                cmocka_unit_test(a_counter_that_advances_is_work),
                cmocka_unit_test(a_counter_that_goes_back_is_clamped),
                cmocka_unit_test(two_descriptors_of_one_client_count_once),
                cmocka_unit_test(without_ids_descriptors_are_told_apart_by_process),
                cmocka_unit_test(what_a_new_client_has_used_is_new_work),
                cmocka_unit_test(cycles_are_work_too),
                cmocka_unit_test(a_reading_that_lacks_something_is_a_gap),
                cmocka_unit_test(too_many_clients_are_not_a_complete_reading),
                cmocka_unit_test_setup_teardown(compute_units_of_a_process_are_read, make_sysfs, end_sysfs),
                cmocka_unit_test_setup_teardown(a_device_that_does_not_tell_its_occupancy_is_no_source, make_sysfs, end_sysfs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
