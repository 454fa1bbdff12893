/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "standalone/managed.h"

struct fixture {
        char directory[32];
        struct context context;
        struct policy policy;
        struct managed saved, loaded;
};

static void set_up(struct fixture *fixture)
{
        *fixture = (struct fixture){ .directory = "/tmp/lull-state-XXXXXX", .policy = { .name = "web" } };
        assert_non_null(mkdtemp(fixture->directory));
        fixture->context.state_dir = fixture->directory;
        fixture->saved = (struct managed){
                .context = &fixture->context,
                .policy = &fixture->policy,
                .machine = { .phase = PHASE_AWAKE, .since_ns = 12345 },
                .since_realtime_ns = 67890,
                .idle_factor = 4,
                .wake = { .cause = CAUSE_OPERATOR, .realtime_ns = 1 },
        };
        fixture->loaded = (struct managed){ .context = &fixture->context, .policy = &fixture->policy, .idle_factor = 1 };
}

static void tear_down(struct fixture *fixture)
{
        json_decref(fixture->loaded.earlier_wake);
        json_decref(fixture->loaded.earlier_sleep);
        managed_forget_state(&fixture->saved);
        assert_int_equal(rmdir(fixture->directory), 0); /* nothing else was left in it */
}

/* Saves, changes one member of what was saved, and loads. */
static int save_change_load(struct fixture *fixture, const char *member, json_t *value, struct saved_phase *ret_saved)
{
        char path[64];
        json_t *state;

        managed_save_state(&fixture->saved);
        snprintf(path, sizeof(path), "%s/web.json", fixture->directory);
        state = json_load_file(path, 0, NULL);
        assert_non_null(state);
        assert_int_equal(json_object_set_new(state, member, value), 0);
        assert_int_equal(json_dump_file(state, path, 0), 0);
        json_decref(state);
        return managed_load_state(&fixture->loaded, ret_saved);
}

static void what_is_saved_is_what_the_next_daemon_reads(void **state)
{
        struct saved_phase saved = { 0 };
        struct fixture fixture;

        set_up(&fixture);
        managed_save_state(&fixture.saved);

        assert_int_equal(managed_load_state(&fixture.loaded, &saved), 0);

        assert_int_equal(saved.phase, PHASE_AWAKE);
        assert_int_equal(saved.since_ns, 12345);
        assert_int_equal(saved.since_realtime_ns, 67890);
        assert_int_equal(fixture.loaded.idle_factor, 4);
        assert_string_equal(json_string_value(json_object_get(fixture.loaded.earlier_wake, "cause")), "operator");
        assert_null(fixture.loaded.earlier_sleep);
        tear_down(&fixture);
}

static void a_phase_of_another_boot_says_nothing(void **state)
{
        struct saved_phase saved = { 0 };
        struct fixture fixture;

        set_up(&fixture);
        fixture.saved.machine.phase = PHASE_ASLEEP;

        assert_int_equal(save_change_load(&fixture, "boot", json_string("another"), &saved), 0);

        assert_int_equal(saved.phase, PHASE_AWAKE);
        assert_int_equal(saved.since_ns, 0);
        assert_non_null(fixture.loaded.earlier_wake); /* wall-clock time still means something */
        tear_down(&fixture);
}

static void what_cannot_be_right_is_not_believed(void **state)
{
        struct saved_phase saved = { 0 };
        struct fixture fixture;

        set_up(&fixture);
        assert_int_equal(save_change_load(&fixture, "version", json_integer(2), &saved), -EPROTO);
        assert_int_equal(save_change_load(&fixture, "idle_factor", json_integer(17), &saved), 0);
        assert_int_equal(fixture.loaded.idle_factor, 1);
        tear_down(&fixture);
}

static void no_state_and_no_json_are_told_apart(void **state)
{
        struct saved_phase saved = { 0 };
        struct fixture fixture;
        char path[64];
        FILE *file;

        set_up(&fixture);
        assert_int_equal(managed_load_state(&fixture.loaded, &saved), -ENOENT);

        snprintf(path, sizeof(path), "%s/web.json", fixture.directory);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs("{\"version\": 1,", file);
        fclose(file);
        assert_int_equal(managed_load_state(&fixture.loaded, &saved), -EBADMSG);
        tear_down(&fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_saved_is_what_the_next_daemon_reads),
                cmocka_unit_test(a_phase_of_another_boot_says_nothing),
                cmocka_unit_test(what_cannot_be_right_is_not_believed),
                cmocka_unit_test(no_state_and_no_json_are_told_apart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
