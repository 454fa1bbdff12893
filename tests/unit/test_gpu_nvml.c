/* SPDX-License-Identifier: Apache-2.0 */
/* Against the stand-in of tests/gpu, loaded as the real library is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/macros.h"
#include "base/time.h"
#include "gpu/nvml.h"

struct world {
        sd_event *event;
        struct nvml *nvml;
        char library[PATH_MAX], state[64];
        unsigned readings;
};

static void on_read(void *userdata)
{
        struct world *world = userdata;

        world->readings++;
}

static void says(struct world *world, const char *text)
{
        FILE *file = fopen(world->state, "we");

        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

static int make_world(void **state)
{
        struct world *world = calloc(1, sizeof(*world));
        char self[PATH_MAX] = "";

        assert_non_null(world);
        assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
        snprintf(world->library, sizeof(world->library), "%.3000s/../gpu/libnvidia-ml.so.1", dirname(self));
        snprintf(world->state, sizeof(world->state), "/tmp/lull-nvml-%d", getpid());
        setenv("LULL_NVML_STATE", world->state, 1);
        assert_true(sd_event_new(&world->event) >= 0);
        assert_int_equal(nvml_new(world->event, world->library, &world->nvml), 0);
        nvml_on_read(world->nvml, on_read, world);
        *state = world;
        return 0;
}

static int end_world(void **state)
{
        struct world *world = *state;

        nvml_free(world->nvml);
        sd_event_unref(world->event);
        unlink(world->state);
        free(world);
        return 0;
}

static const struct nvml_snapshot *ask(struct world *world)
{
        unsigned before = world->readings;

        nvml_request(world->nvml);
        while (world->readings == before)
                assert_true(sd_event_run(world->event, UINT64_MAX) >= 0);
        return nvml_latest(world->nvml);
}

static void devices_are_read_with_all_that_NVML_knows(void **state)
{
        struct world *world = *state;
        const struct nvml_snapshot *snapshot;

        says(world, "device minor=3 percent=37 power=250000 used=1000 total=4000 bus=101\n"
                    "device minor=4\n"
                    "process 0 4711 37\nprocess 0 4712 0\n");
        snapshot = ask(world);

        assert_string_equal(snapshot->problem, "");
        assert_int_equal(snapshot->n_devices, 2);
        assert_string_equal(snapshot->devices[0].uuid, "GPU-00000000-0000-0000-0000-000000000003");
        assert_string_equal(snapshot->devices[0].name, "Stand-in");
        assert_string_equal(snapshot->devices[0].bus_id, "0000:65:00.0");
        assert_int_equal(snapshot->devices[0].minor, 3);
        assert_int_equal(snapshot->devices[0].percent, 37);
        assert_int_equal(snapshot->devices[0].power_milliwatts, 250000);
        assert_int_equal(snapshot->devices[0].memory_used, 1000);
        assert_int_equal(snapshot->devices[0].memory_total, 4000);
        assert_int_equal(snapshot->devices[0].n_processes, 1);
        assert_int_equal(snapshot->devices[0].processes[0].pid, 4711);
        assert_int_equal(snapshot->devices[0].processes[0].percent, 37);
        assert_true(snapshot->devices[1].percent_since_ns > 0);
        assert_int_equal(snapshot->devices[1].n_processes, 0);
        assert_true(snapshot->devices[1].processes_since_ns > 0);
}

static void work_between_two_readings_is_not_missed(void **state)
{
        struct world *world = *state;

        says(world, "device percent=0\nsample 0 12\nsample 0 80\nsample 0 0\n");
        assert_int_equal(ask(world)->devices[0].percent, 80);
}

static void utilisation_is_known_since_the_first_reading_of_an_unbroken_row(void **state)
{
        struct world *world = *state;
        uint64_t since_ns;

        says(world, "device\n");
        since_ns = ask(world)->devices[0].percent_since_ns;
        assert_int_equal(ask(world)->devices[0].percent_since_ns, since_ns);
        assert_int_equal(ask(world)->devices[0].processes_since_ns, nvml_latest(world->nvml)->devices[0].processes_since_ns);

        says(world, "device error=15 process_error=999\n");
        assert_int_equal(ask(world)->devices[0].percent_since_ns, 0);
        assert_int_equal(nvml_latest(world->nvml)->devices[0].processes_since_ns, 0);

        says(world, "device\n");
        assert_true(ask(world)->devices[0].percent_since_ns > since_ns);
}

static void under_MIG_the_utilisation_is_not_known(void **state)
{
        struct world *world = *state;
        const struct nvml_device *device;

        says(world, "device mig=1 error=3 process_error=3\n");
        device = &ask(world)->devices[0];
        assert_true(device->mig);
        assert_int_equal(device->percent_since_ns, 0);
        assert_int_equal(device->processes_since_ns, 0);
        assert_string_equal(device->problem, "the device is divided by MIG");
}

static void a_lost_device_does_not_hide_the_others(void **state)
{
        struct world *world = *state;
        const struct nvml_snapshot *snapshot;

        says(world, "device minor=0 lost=15\ndevice minor=1 percent=5\n");
        snapshot = ask(world);
        assert_string_equal(snapshot->problem, "");
        assert_string_equal(snapshot->devices[0].problem, "the device has fallen off the bus");
        assert_int_equal(snapshot->devices[0].percent_since_ns, 0);
        assert_int_equal(snapshot->devices[1].percent, 5);
}

static void without_a_driver_it_says_so(void **state)
{
        struct world *world = *state;
        const struct nvml_snapshot *snapshot;

        says(world, "init 9\n");
        snapshot = ask(world);
        assert_string_equal(snapshot->problem, "it cannot be initialised: the driver is not loaded");
        assert_int_equal(snapshot->read_ns, 0);
}

static void without_the_library_it_says_so(void **state)
{
        struct world *world = *state;

        world->nvml = nvml_free(world->nvml);
        assert_int_equal(nvml_new(world->event, "libnvidia-ml.so.none", &world->nvml), 0);
        nvml_on_read(world->nvml, on_read, world);
        assert_string_equal(ask(world)->problem, "libnvidia-ml.so.none cannot be loaded");
}

static void a_crash_of_the_library_ends_only_its_reader(void **state)
{
        struct world *world = *state;

        says(world, "device\ncrash\n");
        assert_string_equal(ask(world)->problem, "its reader ended by itself");
}

/* The loop goes on while NVML hangs, what it last said stays, and no second reader piles up behind the first. */
static void a_call_that_hangs_holds_nobody_up(void **state)
{
        struct world *world = *state;
        const struct nvml_snapshot *snapshot;
        uint64_t read_ns;
        unsigned turns = 0;

        says(world, "device percent=9\n");
        read_ns = ask(world)->read_ns;

        says(world, "device percent=10\nhang\n");
        world->readings = 0;
        nvml_request(world->nvml);
        while (world->readings == 0) {
                assert_true(sd_event_run(world->event, NSEC_PER_SEC / 10 / NSEC_PER_USEC) >= 0);
                nvml_request(world->nvml);
                turns++;
        }
        assert_true(turns > 3);
        snapshot = nvml_latest(world->nvml);
        assert_string_equal(snapshot->problem, "it does not answer; its reader was ended");
        assert_int_equal(snapshot->read_ns, read_ns);
        assert_int_equal(snapshot->devices[0].percent, 9);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(devices_are_read_with_all_that_NVML_knows, make_world, end_world),
                cmocka_unit_test_setup_teardown(work_between_two_readings_is_not_missed, make_world, end_world),
                cmocka_unit_test_setup_teardown(utilisation_is_known_since_the_first_reading_of_an_unbroken_row, make_world,
                                                end_world),
                cmocka_unit_test_setup_teardown(under_MIG_the_utilisation_is_not_known, make_world, end_world),
                cmocka_unit_test_setup_teardown(a_lost_device_does_not_hide_the_others, make_world, end_world),
                cmocka_unit_test_setup_teardown(without_a_driver_it_says_so, make_world, end_world),
                cmocka_unit_test_setup_teardown(without_the_library_it_says_so, make_world, end_world),
                cmocka_unit_test_setup_teardown(a_crash_of_the_library_ends_only_its_reader, make_world, end_world),
                cmocka_unit_test_setup_teardown(a_call_that_hangs_holds_nobody_up, make_world, end_world),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
