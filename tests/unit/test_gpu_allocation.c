/* SPDX-License-Identifier: Apache-2.0 */
/* What is allocated against what is open, of tenants made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/time.h"
#include "gpu/watch_private.h"

#define HOUR_NS (3600 * NSEC_PER_SEC)

enum { NVIDIA0, NVIDIA1, AMD, N_DEVICES };

struct world {
        struct gpu_watch watch;
        struct gpu_device devices[N_DEVICES];
        struct gpu_tenant *tenant;
};

static void world_begin(struct world *world)
{
        static const struct gpu_tenant_config config = { .name = "web", .cgroup = "/cg", .rules = { .window_ns = HOUR_NS } };

        *world = (struct world){
                .watch = { .majors.nvidia = 195, .saw_all = true },
                .devices = { { .kind = GPU_NODE_NVIDIA, .name = "nvidia0", .driver = "nvidia", .bus_id = "0000:01:00.0" },
                             { .kind = GPU_NODE_NVIDIA,
                               .minor = 1,
                               .name = "nvidia1",
                               .driver = "nvidia",
                               .bus_id = "0000:02:00.0" },
                             { .kind = GPU_NODE_DRM, .minor = 128, .name = "renderD128", .driver = "amdgpu" } },
        };
        TAILQ_INIT(&world->watch.tenants);
        for (size_t i = 0; i < N_DEVICES; i++)
                world->watch.devices[world->watch.n_devices++] = &world->devices[i];
        assert_int_equal(tenant_make(&world->watch, &config, false, &world->tenant), 0);
        world->tenant->looked_ns = now_monotonic_ns();
}

static void world_end(struct world *world)
{
        gpu_tenant_free(world->tenant);
}

static void open_device(struct gpu_tenant *tenant, struct gpu_device *device)
{
        tenant->uses = reallocarray(tenant->uses, tenant->n_uses + 1, sizeof(*tenant->uses));
        tenant->uses[tenant->n_uses] = (struct gpu_use){ .device = device, .n_open = 1 };
        gpu_machine_begin(&tenant->uses[tenant->n_uses++].machine, now_monotonic_ns());
}

/* The texts of @object's disagreement with " | " between. */
static char *disagreement(const json_t *object, char *text, size_t size)
{
        json_t *list = json_object_get(object, "disagreement"), *element;
        size_t i, used = 0;

        assert_true(json_is_array(list));
        text[0] = '\0';
        json_array_foreach(list, i, element)
                used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " | " : "", json_string_value(element));
        return text;
}

static void opened_devices_are_compared_with_allocated_ones(void **state)
{
        static const struct {
                struct gpu_allocation allocations[2];
                bool open[N_DEVICES];
                unsigned unopened;
                const char *differs;
        } rows[] = {
                { { { .name = "nvidia.com/gpu", .count = 1 } }, { 0 }, 1, "nvidia.com/gpu is allocated and was never opened" },
                { { { .name = "nvidia.com/gpu", .count = 1 } }, { [NVIDIA1] = true }, 0, "" },
                { { { .name = "nvidia.com/gpu", .count = 2 } },
                  { [NVIDIA0] = true },
                  1,
                  "1 of 2 nvidia.com/gpu are allocated and were never opened" },
                { { { .name = "nvidia.com/gpu", .count = 2 } }, { [NVIDIA0] = true, [NVIDIA1] = true }, 0, "" },
                { { { .name = "nvidia.com/gpu", .count = 1 } },
                  { [NVIDIA0] = true, [NVIDIA1] = true },
                  0,
                  "nvidia1 is open and not allocated" },
                { { { .name = "nvidia.com/mig-1g.10gb", .count = 3, .parts = true } }, { [NVIDIA0] = true }, 0, "" },
                { { { .name = "gpu.nvidia.com/n/gpu-0", .count = 1, .bus_id = "0000:01:00.0" } }, { [NVIDIA0] = true }, 0, "" },
                { { { .name = "gpu.nvidia.com/n/gpu-0", .count = 1, .bus_id = "0000:01:00.0" } },
                  { [NVIDIA1] = true },
                  1,
                  "nvidia0 (gpu.nvidia.com/n/gpu-0) is allocated and was never opened | nvidia1 is open and not allocated" },
                { { { .name = "nvidia.com/gpu", .count = 1 },
                    { .name = "gpu.nvidia.com/n/gpu-0", .count = 1, .bus_id = "0000:01:00.0" } },
                  { [NVIDIA0] = true, [NVIDIA1] = true },
                  0,
                  "" },
                { { { .name = "gpu.nvidia.com/n/gpu-9", .count = 1, .bus_id = "0000:09:00.0" } }, { [NVIDIA0] = true }, 0, "" },
                { { { .name = "amd.com/gpu", .count = 1 } },
                  { [NVIDIA0] = true },
                  1,
                  "amd.com/gpu is allocated and was never opened | nvidia0 is open and not allocated" },
                { { { .name = "amd.com/gpu", .count = 1 } }, { [AMD] = true }, 0, "" },
                { { { .name = "notnvidia.com/gpu", .count = 1 } }, { [AMD] = true }, 0, "" },
                { { { .name = "dra.example.com/n/x", .count = 1, .bus_id = "0000:09:00.0", .doubtful = true } }, { 0 }, 0, "" },
                { { { .name = "dra.example.com/n/x", .count = 1, .bus_id = "0000:09:00.0", .doubtful = true } },
                  { [NVIDIA0] = true },
                  0,
                  "nvidia0 is open and not allocated" },
                { { { .name = "dra.example.com/n/x", .count = 1, .bus_id = "0000:01:00.0", .doubtful = true } },
                  { 0 },
                  1,
                  "nvidia0 (dra.example.com/n/x) is allocated and was never opened" },
                { { { .name = NULL } }, { [NVIDIA0] = true }, 0, "nvidia0 is open and not allocated" },
                { { { .name = NULL } }, { 0 }, 0, "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                struct world world;
                char text[256];
                json_t *json;
                size_t n = 0;

                world_begin(&world);
                while (n < ELEMENTSOF(rows[i].allocations) && rows[i].allocations[n].name)
                        n++;
                assert_int_equal(gpu_tenant_set_allocations(world.tenant, rows[i].allocations, n), 0);
                for (size_t j = 0; j < N_DEVICES; j++)
                        if (rows[i].open[j])
                                open_device(world.tenant, &world.devices[j]);
                tenant_step(world.tenant);

                json = gpu_tenant_json(world.tenant);
                assert_string_equal(disagreement(json, text, sizeof(text)), rows[i].differs);
                json_decref(json);
                assert_int_equal(allotments_unopened(world.tenant), rows[i].unopened);
                world_end(&world);
        }
}

static void where_nobody_tells_of_allocations_nothing_differs(void **state)
{
        struct world world;
        json_t *json;

        world_begin(&world);
        open_device(world.tenant, &world.devices[NVIDIA0]);
        tenant_step(world.tenant);
        json = gpu_tenant_json(world.tenant);
        assert_true(json_is_null(json_object_get(json, "disagreement")));
        assert_true(json_is_null(json_object_get(json, "allocations")));
        json_decref(json);
        assert_int_equal(gpu_tenant_allocated_devices(world.tenant), -ENODATA);
        world_end(&world);
}

static enum gpu_state state_of(struct world *world)
{
        struct gpu_standing standing;

        tenant_step(world->tenant);
        gpu_tenant_known(world->tenant, &standing);
        assert_int_equal(standing.devices, world->tenant->n_uses + allotments_unopened(world->tenant));
        return standing.verdict.state;
}

static void an_allocated_device_is_starting_then_unused_and_starting_again_once_it_is_opened(void **state)
{
        struct gpu_allocation allocation = { .name = "nvidia.com/gpu", .count = 1 };
        struct world world;

        world_begin(&world);
        assert_int_equal(gpu_tenant_set_allocations(world.tenant, &allocation, 1), 0);
        assert_int_equal(state_of(&world), GPU_STARTING);

        gpu_tenant_set_rules(world.tenant, &(struct gpu_rules){ .window_ns = HOUR_NS, .unused_after_ns = 1 });
        assert_int_equal(state_of(&world), GPU_UNUSED);

        world.watch.rules.unused_after_ns = 1; /* where the tenant's own rules say nothing */
        gpu_tenant_set_rules(world.tenant, &(struct gpu_rules){ .window_ns = HOUR_NS });
        assert_int_equal(gpu_tenant_set_allocations(world.tenant, &(struct gpu_allocation){ .name = "amd.com/gpu", .count = 1 }, 1),
                         0);
        assert_int_equal(state_of(&world), GPU_UNUSED);
        assert_int_equal(gpu_tenant_set_allocations(world.tenant, &allocation, 1), 0);

        open_device(world.tenant, &world.devices[NVIDIA0]);
        assert_int_equal(state_of(&world), GPU_STARTING);
        world.tenant->uses[0].n_open = 0; /* closed again, it was opened nevertheless */
        tenant_step(world.tenant);
        assert_int_equal(allotments_unopened(world.tenant), 0);
        world_end(&world);
}

static void what_a_tenants_rules_leave_out_is_the_watchs(void **state)
{
        struct world world;

        world_begin(&world);
        world.watch.rules = (struct gpu_rules){ .window_ns = 1, .unused_after_ns = 2, .stuck_after_ns = 3 };
        gpu_tenant_set_rules(world.tenant, &(struct gpu_rules){ .window_ns = HOUR_NS });
        assert_int_equal(world.tenant->rules.window_ns, HOUR_NS);
        assert_int_equal(world.tenant->rules.unused_after_ns, 2);
        assert_int_equal(world.tenant->rules.stuck_after_ns, 3);
        gpu_tenant_set_rules(world.tenant, &(struct gpu_rules){ .unused_after_ns = 5, .stuck_after_ns = 6 });
        assert_int_equal(world.tenant->rules.unused_after_ns, 5);
        assert_int_equal(world.tenant->rules.stuck_after_ns, 6);
        world_end(&world);
}

static void an_earlier_time_may_be_told(void **state)
{
        struct gpu_allocation allocation = { .name = "nvidia.com/gpu", .count = 1, .since_ns = 1 };
        struct world world;

        world_begin(&world);
        world.watch.rules.unused_after_ns = now_monotonic_ns() / 2;
        gpu_tenant_set_rules(world.tenant, &(struct gpu_rules){ .window_ns = HOUR_NS });
        assert_int_equal(gpu_tenant_set_allocations(world.tenant, &allocation, 1), 0);
        assert_int_equal(state_of(&world), GPU_UNUSED);

        allocation.since_ns = 0; /* what was known is not forgotten */
        assert_int_equal(gpu_tenant_set_allocations(world.tenant, &allocation, 1), 0);
        assert_int_equal(state_of(&world), GPU_UNUSED);
        world_end(&world);
}

static void where_opens_cannot_be_seen_nothing_is_called_unused(void **state)
{
        static const struct gpu_allocation allocation = { .name = "nvidia.com/gpu", .count = 1, .since_ns = 1 };
        struct world world;

        world_begin(&world);
        gpu_tenant_set_rules(world.tenant, &(struct gpu_rules){ .window_ns = HOUR_NS, .unused_after_ns = 1 });
        assert_int_equal(gpu_tenant_set_allocations(world.tenant, &allocation, 1), 0);
        assert_int_equal(state_of(&world), GPU_UNUSED);

        world.tenant->look_error = -EACCES;
        assert_int_equal(state_of(&world), GPU_UNKNOWN);
        world.tenant->look_error = 0;
        world.watch.majors.nvidia = 0; /* no driver is there */
        assert_int_equal(state_of(&world), GPU_UNKNOWN);
        world.watch.majors.nvidia = 195;
        world.tenant->looked_ns = 0;
        assert_int_equal(state_of(&world), GPU_UNKNOWN);
        world_end(&world);
}

static void allocated_devices_cost_seconds_whether_they_are_open_or_not(void **state)
{
        static const struct gpu_allocation allocation = { .name = "nvidia.com/gpu", .count = 3 };
        struct gpu_seconds seconds;
        struct world world;

        world_begin(&world);
        assert_int_equal(gpu_tenant_set_allocations(world.tenant, &allocation, 1), 0);
        open_device(world.tenant, &world.devices[NVIDIA0]);
        world.tenant->uses[0].n_open = 0; /* closed, and still allocated */
        tenant_step(world.tenant);
        world.tenant->stepped_ns = now_monotonic_ns() - NSEC_PER_SEC;
        tenant_step(world.tenant);

        seconds = gpu_tenant_seconds(world.tenant);
        assert_true(seconds.allocated >= 3 && seconds.allocated < 4);
        assert_true(seconds.idle >= 2 && seconds.idle < 3); /* of the two that were never opened */
        assert_int_equal(gpu_tenant_allocated_devices(world.tenant), 3);
        assert_int_equal(gpu_tenant_open_devices(world.tenant), 0);
        world_end(&world);
}

static const json_t *device_named(const json_t *answer, const char *name)
{
        json_t *device;
        size_t i;

        json_array_foreach(json_object_get(answer, "devices"), i, device)
                if (strcmp(json_string_value(json_object_get(device, "name")), name) == 0)
                        return device;
        fail_msg("no device %s", name);
        return NULL;
}

static void a_device_tells_to_whom_it_is_allocated_and_who_has_it_open_instead(void **state)
{
        static const struct gpu_allocation allocation = { .name = "gpu.nvidia.com/n/gpu-0", .count = 1, .bus_id = "0000:01:00.0" };
        struct world world;
        const json_t *device;
        json_t *answer;
        char text[256];

        world_begin(&world);
        assert_int_equal(gpu_tenant_set_allocations(world.tenant, &allocation, 1), 0);
        open_device(world.tenant, &world.devices[NVIDIA1]);
        tenant_step(world.tenant);
        answer = gpu_watch_json(&world.watch);

        device = device_named(answer, "nvidia0");
        assert_string_equal(json_string_value(json_array_get(json_object_get(device, "allocated_to"), 0)), "web");
        assert_string_equal(disagreement(device, text, sizeof(text)), "allocated to web, which has never opened it");
        assert_string_equal(json_string_value(json_object_get(device, "state")), "starting");
        device = device_named(answer, "nvidia1");
        assert_int_equal(json_array_size(json_object_get(device, "allocated_to")), 0);
        assert_string_equal(disagreement(device, text, sizeof(text)), "open in web, to which it is not allocated");
        device = device_named(answer, "renderD128");
        assert_string_equal(disagreement(device, text, sizeof(text)), "");
        assert_string_equal(json_string_value(json_object_get(device, "state")), "free");
        json_decref(answer);
        world_end(&world);
}

static void allocations_are_bounded(void **state)
{
        struct gpu_allocation allocations[GPU_ALLOCATIONS_MAX + 1];
        struct world world;

        world_begin(&world);
        for (size_t i = 0; i < ELEMENTSOF(allocations); i++)
                allocations[i] = (struct gpu_allocation){ .name = "nvidia.com/gpu", .count = 1 };
        assert_int_equal(gpu_tenant_set_allocations(world.tenant, allocations, ELEMENTSOF(allocations)), 0);
        assert_int_equal(gpu_tenant_allocated_devices(world.tenant), GPU_ALLOCATIONS_MAX);
        tenant_step(world.tenant);
        world_end(&world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(opened_devices_are_compared_with_allocated_ones),
                cmocka_unit_test(where_nobody_tells_of_allocations_nothing_differs),
                cmocka_unit_test(an_allocated_device_is_starting_then_unused_and_starting_again_once_it_is_opened),
                cmocka_unit_test(what_a_tenants_rules_leave_out_is_the_watchs),
                cmocka_unit_test(an_earlier_time_may_be_told),
                cmocka_unit_test(where_opens_cannot_be_seen_nothing_is_called_unused),
                cmocka_unit_test(allocated_devices_cost_seconds_whether_they_are_open_or_not),
                cmocka_unit_test(a_device_tells_to_whom_it_is_allocated_and_who_has_it_open_instead),
                cmocka_unit_test(allocations_are_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
