/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"
#include "gpu/verdict.h"

#define SECONDS(n) ((n) * NSEC_PER_SEC)
#define MINUTES(n) SECONDS((n) * UINT64_C(60))
#define HOURS(n) MINUTES((n) * UINT64_C(60))

#define NOW HOURS(20)

static const struct gpu_rules rules = { .window_ns = 1800 * NSEC_PER_SEC, .factor = 1 };

/* A source that has seen nothing for @silent_ns. */
static struct gpu_source silent(uint64_t silent_ns)
{
        return (struct gpu_source){ .known = true, .since_ns = NOW - silent_ns, .read_ns = NOW };
}

static struct gpu_source busy(uint64_t ago_ns)
{
        return (struct gpu_source){ .known = true, .since_ns = NOW - HOURS(5), .read_ns = NOW, .last_busy_ns = NOW - ago_ns };
}

/* The device open, and both the calls and NVML silent for so long. */
static struct gpu_evidence nothing_for(uint64_t silent_ns)
{
        return (struct gpu_evidence){
                .sources = { [GPU_SOURCE_CALLS] = silent(silent_ns), [GPU_SOURCE_VENDOR] = silent(silent_ns) },
                .opens_known = true,
                .opened = true,
        };
}

/* In @state for two minutes, after work five hours ago. */
static struct gpu_machine machine_in(enum gpu_state state)
{
        struct gpu_machine machine = {
                .state = state,
                .since_ns = NOW - MINUTES(2),
                .began_ns = NOW - HOURS(6),
                .opened_ns = NOW - HOURS(6),
                .worked_ns = NOW - HOURS(6),
                .last_busy_ns = NOW - HOURS(5),
                .full_since_ns = NOW - MINUTES(11),
                .stepped_ns = NOW - SECONDS(5),
        };

        for (unsigned i = 0; i < 20; i++)
                machine.power_milliwatts[machine.n_power++] = 400000;
        machine.next_power = machine.n_power;
        return machine;
}

static struct gpu_verdict step(struct gpu_machine *machine, const struct gpu_evidence *evidence)
{
        struct gpu_verdict verdict;

        gpu_machine_step(machine, &rules, evidence, NOW, &verdict);
        assert_int_equal(verdict.state, machine->state);
        return verdict;
}

enum kind {
        SUBMITTED,
        WAITING,
        VENDOR_BUSY,
        KERNEL_BUSY,
        REQUESTED,
        SILENT_10S,
        SILENT_5M,
        SILENT_4H,
        SILENT_4H_PROBES_NEW, /* two other sources, and probes since half a minute */
        SILENT_4H_WITHOUT_PROBES,
        CPU_1H,
        IO_1H,
        CPU_4H,
        ONLY_CALLS,
        ONLY_VENDOR,
        NO_SOURCE,
        BLIND,
        VENDOR_STALE,
        SHARED_SILENT, /* NVML speaks of the whole device only */
        SHARED_BUSY,
        FULL_LOAD_LITTLE_POWER,
        FULL_LOAD_MUCH_POWER,
        KIND_MAX,
};

static struct gpu_evidence evidence_of(enum kind kind)
{
        struct gpu_evidence evidence = nothing_for(HOURS(4));
        struct gpu_source *calls = &evidence.sources[GPU_SOURCE_CALLS], *vendor = &evidence.sources[GPU_SOURCE_VENDOR],
                          *kernel = &evidence.sources[GPU_SOURCE_KERNEL];

        switch (kind) {
        case SUBMITTED:
                *calls = busy(SECONDS(1));
                break;
        case WAITING:
                evidence.waiting = 1;
                break;
        case VENDOR_BUSY:
                *vendor = busy(0);
                evidence.percent = 3;
                break;
        case KERNEL_BUSY:
                *kernel = busy(0);
                break;
        case REQUESTED:
                evidence.open_requests = 1;
                break;
        case SILENT_10S:
                return nothing_for(SECONDS(10));
        case SILENT_5M:
                return nothing_for(MINUTES(5));
        case SILENT_4H_PROBES_NEW:
                *calls = silent(SECONDS(30));
                *kernel = silent(HOURS(4));
                break;
        case SILENT_4H_WITHOUT_PROBES:
                *calls = (struct gpu_source){ .lack = "not armed" };
                *kernel = silent(HOURS(4));
                break;
        case CPU_1H:
                evidence = nothing_for(HOURS(1));
                evidence.cpu_millicores = 500;
                break;
        case IO_1H:
                evidence = nothing_for(HOURS(1));
                evidence.io_bytes_per_second = 5000000;
                break;
        case CPU_4H:
                evidence.cpu_millicores = 500;
                break;
        case ONLY_CALLS:
                vendor->known = false;
                break;
        case ONLY_VENDOR:
                calls->known = false;
                break;
        case NO_SOURCE:
                calls->known = vendor->known = false;
                break;
        case BLIND:
                evidence.blind = "a driver library in use is not probed";
                break;
        case VENDOR_STALE:
                vendor->read_ns = NOW - SECONDS(11);
                break;
        case SHARED_BUSY:
                *vendor = busy(0);
                /* fall through */
        case SHARED_SILENT:
                evidence.shared = vendor->whole_device = true;
                break;
        case FULL_LOAD_LITTLE_POWER:
        case FULL_LOAD_MUCH_POWER:
                *vendor = busy(0);
                evidence.percent = 99;
                evidence.power_milliwatts = kind == FULL_LOAD_LITTLE_POWER ? 199000 : 200000;
                break;
        case SILENT_4H:
        case KIND_MAX:
                break;
        }
        return evidence;
}

/* What follows from each state, in the order of enum gpu_state, for each kind of evidence. */
#define FROM_ALL(state) { state, state, state, state, state, state, state, state }
static const enum gpu_state expected[KIND_MAX][GPU_STATE_MAX] = {
        [SUBMITTED] = FROM_ALL(GPU_ACTIVE),
        [WAITING] = FROM_ALL(GPU_ACTIVE),
        [VENDOR_BUSY] = FROM_ALL(GPU_ACTIVE),
        [KERNEL_BUSY] = FROM_ALL(GPU_ACTIVE),
        [REQUESTED] = FROM_ALL(GPU_ACTIVE),
        [SILENT_10S] = { GPU_STARTING, GPU_ACTIVE, GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN },
        [SILENT_5M] = FROM_ALL(GPU_QUIET),
        [SILENT_4H] = { GPU_CANDIDATE, GPU_CANDIDATE, GPU_CANDIDATE, GPU_IDLE, GPU_IDLE, GPU_CANDIDATE, GPU_CANDIDATE,
                        GPU_CANDIDATE },
        [SILENT_4H_PROBES_NEW] = FROM_ALL(GPU_CANDIDATE),
        [SILENT_4H_WITHOUT_PROBES] = FROM_ALL(GPU_CANDIDATE),
        [CPU_1H] = FROM_ALL(GPU_QUIET),
        [IO_1H] = FROM_ALL(GPU_QUIET),
        [CPU_4H] = { GPU_CANDIDATE, GPU_CANDIDATE, GPU_CANDIDATE, GPU_IDLE, GPU_IDLE, GPU_CANDIDATE, GPU_CANDIDATE, GPU_CANDIDATE },
        [ONLY_CALLS] = FROM_ALL(GPU_UNKNOWN),
        [ONLY_VENDOR] = FROM_ALL(GPU_UNKNOWN),
        [NO_SOURCE] = FROM_ALL(GPU_UNKNOWN),
        [BLIND] = FROM_ALL(GPU_UNKNOWN),
        [VENDOR_STALE] = FROM_ALL(GPU_UNKNOWN),
        [SHARED_SILENT] = FROM_ALL(GPU_UNKNOWN),
        [SHARED_BUSY] = FROM_ALL(GPU_UNKNOWN),
        [FULL_LOAD_LITTLE_POWER] = FROM_ALL(GPU_STUCK),
        [FULL_LOAD_MUCH_POWER] = FROM_ALL(GPU_ACTIVE),
};

static void every_state_meets_every_evidence(void **state)
{
        for (int kind = 0; kind < KIND_MAX; kind++)
                for (int from = 0; from < GPU_STATE_MAX; from++) {
                        struct gpu_evidence evidence = evidence_of(kind);
                        struct gpu_machine machine = machine_in(from);
                        struct gpu_verdict verdict = step(&machine, &evidence);

                        if (verdict.state != expected[kind][from])
                                fail_msg("evidence %d in %s: %s (%s), not %s", kind, gpu_state_to_string(from),
                                         gpu_state_to_string(verdict.state), verdict.reason,
                                         gpu_state_to_string(expected[kind][from]));
                        assert_true(verdict.reason[0] != '\0');
                        assert_int_equal(verdict.since_ns, verdict.state == (enum gpu_state)from ? NOW - MINUTES(2) : NOW);
                }
}

/* Before it was opened, the same evidence says nothing about work. */
static void what_was_never_opened_is_unused_after_half_an_hour(void **state)
{
        static const struct {
                uint64_t age_ns;
                bool opens_known;
                enum gpu_state state;
        } cases[] = {
                { MINUTES(29), true, GPU_STARTING },
                { MINUTES(30), true, GPU_UNUSED },
                { MINUTES(31), false, GPU_UNKNOWN },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (int from = 0; from < GPU_STATE_MAX; from++) {
                        struct gpu_evidence evidence = nothing_for(HOURS(1));
                        struct gpu_machine machine = { .state = from, .began_ns = NOW - cases[i].age_ns };

                        evidence.opened = false;
                        evidence.opens_known = cases[i].opens_known;
                        evidence.open_requests = 1; /* served without the device */
                        assert_int_equal(step(&machine, &evidence).state, cases[i].state);
                }
}

static void an_unused_device_that_is_opened_begins_to_start(void **state)
{
        struct gpu_machine machine = { .state = GPU_UNUSED, .began_ns = NOW - HOURS(1) };
        struct gpu_evidence evidence = nothing_for(HOURS(1));

        assert_int_equal(step(&machine, &evidence).state, GPU_STARTING);
}

static void starting_lasts_ten_minutes_or_two_cold_starts(void **state)
{
        static const struct {
                uint64_t open_ns, cold_start_ns;
                enum gpu_state state;
        } cases[] = {
                { MINUTES(9), 0, GPU_STARTING },
                { MINUTES(10), 0, GPU_QUIET },
                { MINUTES(15), MINUTES(8), GPU_STARTING },
                { MINUTES(16), MINUTES(8), GPU_QUIET },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct gpu_rules patient = { .window_ns = MINUTES(30), .cold_start_ns = cases[i].cold_start_ns, .factor = 1 };
                struct gpu_machine machine = { .state = GPU_STARTING,
                                               .began_ns = NOW - HOURS(1),
                                               .opened_ns = NOW - cases[i].open_ns };
                struct gpu_evidence evidence = nothing_for(cases[i].open_ns);
                struct gpu_verdict verdict;

                gpu_machine_step(&machine, &patient, &evidence, NOW, &verdict);
                assert_int_equal(verdict.state, cases[i].state);
        }
}

static void the_window_is_three_cold_starts_at_least_and_doubles(void **state)
{
        static const struct {
                struct gpu_rules rules;
                uint64_t required_ns;
        } cases[] = {
                { { .window_ns = MINUTES(5), .factor = 1 }, MINUTES(5) },
                { { .window_ns = MINUTES(5), .cold_start_ns = MINUTES(2), .factor = 1 }, MINUTES(6) },
                { { .window_ns = MINUTES(5), .cold_start_ns = MINUTES(1), .factor = 4 }, MINUTES(20) },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct gpu_machine machine = machine_in(GPU_QUIET);
                struct gpu_evidence evidence = nothing_for(cases[i].required_ns - 1);
                struct gpu_verdict verdict;

                gpu_machine_step(&machine, &cases[i].rules, &evidence, NOW, &verdict);
                assert_int_equal(verdict.state, GPU_QUIET);
                assert_int_equal(verdict.required_ns, cases[i].required_ns);

                evidence = nothing_for(cases[i].required_ns);
                gpu_machine_step(&machine, &cases[i].rules, &evidence, NOW, &verdict);
                assert_int_equal(verdict.state, GPU_CANDIDATE);
        }
}

static void only_what_two_sources_have_watched_counts_as_quiet(void **state)
{
        struct gpu_machine machine = machine_in(GPU_QUIET);
        struct gpu_evidence evidence = nothing_for(HOURS(4));
        struct gpu_verdict verdict;

        evidence.sources[GPU_SOURCE_VENDOR] = silent(MINUTES(7));
        verdict = step(&machine, &evidence);
        assert_int_equal(verdict.idle_ns, MINUTES(7));

        evidence.sources[GPU_SOURCE_KERNEL] = silent(MINUTES(9));
        verdict = step(&machine, &evidence);
        assert_int_equal(verdict.idle_ns, MINUTES(9));
        assert_int_equal(verdict.n_sources, 3);
}

static void one_source_that_sees_work_is_enough(void **state)
{
        struct gpu_machine machine = machine_in(GPU_UNKNOWN);
        struct gpu_evidence evidence = { .sources = { [GPU_SOURCE_VENDOR] = busy(SECONDS(2)) },
                                         .opened = true,
                                         .opens_known = true };
        struct gpu_verdict verdict = step(&machine, &evidence);

        assert_int_equal(verdict.state, GPU_ACTIVE);
        assert_string_equal(verdict.reason, "NVML saw it work 2s ago");
}

static void stuck_needs_ten_minutes_and_a_known_power(void **state)
{
        struct gpu_evidence evidence = evidence_of(FULL_LOAD_LITTLE_POWER);
        struct gpu_machine machine = machine_in(GPU_ACTIVE);

        machine.full_since_ns = NOW - MINUTES(9);
        assert_int_equal(step(&machine, &evidence).state, GPU_ACTIVE);

        machine = machine_in(GPU_ACTIVE);
        machine.n_power = 11;
        assert_int_equal(step(&machine, &evidence).state, GPU_ACTIVE);

        machine = machine_in(GPU_ACTIVE);
        evidence.power_milliwatts = 0;
        assert_int_equal(step(&machine, &evidence).state, GPU_ACTIVE);

        machine = machine_in(GPU_ACTIVE);
        evidence = evidence_of(FULL_LOAD_LITTLE_POWER);
        evidence.sources[GPU_SOURCE_CALLS].since_ns = NOW - MINUTES(9); /* what was before is not known */
        assert_int_equal(step(&machine, &evidence).state, GPU_ACTIVE);

        machine = machine_in(GPU_ACTIVE);
        evidence = evidence_of(FULL_LOAD_LITTLE_POWER);
        evidence.waiting = 2; /* a collective operation blocks its callers */
        assert_int_equal(step(&machine, &evidence).state, GPU_STUCK);
}

static void unused_and_stuck_come_after_what_the_rules_say(void **state)
{
        struct gpu_rules impatient = {
                .window_ns = MINUTES(30), .factor = 1, .unused_after_ns = MINUTES(2), .stuck_after_ns = MINUTES(3)
        };
        struct gpu_evidence unopened = nothing_for(HOURS(1)), full = evidence_of(FULL_LOAD_LITTLE_POWER);
        struct gpu_verdict verdict;

        unopened.opened = false;
        for (int late = 0; late < 2; late++) {
                struct gpu_machine waiting = { .state = GPU_STARTING, .began_ns = NOW - MINUTES(2) + !late };
                struct gpu_machine busy_one = machine_in(GPU_ACTIVE);

                gpu_machine_step(&waiting, &impatient, &unopened, NOW, &verdict);
                assert_int_equal(verdict.state, late ? GPU_UNUSED : GPU_STARTING);
                busy_one.full_since_ns = NOW - MINUTES(3) + !late;
                gpu_machine_step(&busy_one, &impatient, &full, NOW, &verdict);
                assert_int_equal(verdict.state, late ? GPU_STUCK : GPU_ACTIVE);
        }
}

static void work_counts_also_of_a_source_whose_silence_does_not(void **state)
{
        struct gpu_machine machine = machine_in(GPU_UNKNOWN);
        struct gpu_evidence evidence = { .opened = true, .opens_known = true, .blind = "a driver library in use is not probed" };

        evidence.sources[GPU_SOURCE_CALLS] = (struct gpu_source){ .lack = "partial", .last_busy_ns = NOW - SECONDS(3) };
        assert_int_equal(step(&machine, &evidence).state, GPU_ACTIVE);
}

/* A life, five seconds a step: begins, works for a minute, and then never again. */
static void a_workload_that_stops_working_is_idle_after_the_window_and_a_minute(void **state)
{
        struct gpu_evidence evidence = { .opened = true, .opens_known = true };
        uint64_t reached_ns[GPU_STATE_MAX] = { 0 }, began_ns = HOURS(1), worked_until_ns = began_ns + MINUTES(3);
        struct gpu_machine machine;
        struct gpu_verdict verdict;

        gpu_machine_begin(&machine, began_ns);
        for (uint64_t now = began_ns; now < began_ns + MINUTES(40); now += SECONDS(5)) {
                for (int kind = GPU_SOURCE_CALLS; kind <= GPU_SOURCE_VENDOR; kind++)
                        evidence.sources[kind] = (struct gpu_source){
                                .known = true,
                                .since_ns = began_ns,
                                .read_ns = now,
                                .last_busy_ns = now < began_ns + MINUTES(2) ? 0 : MIN(now, worked_until_ns),
                        };
                gpu_machine_step(&machine, &rules, &evidence, now, &verdict);
                if (!reached_ns[verdict.state])
                        reached_ns[verdict.state] = now;
        }

        assert_int_equal(reached_ns[GPU_STARTING], began_ns);
        assert_int_equal(reached_ns[GPU_ACTIVE], began_ns + MINUTES(2));
        assert_int_equal(reached_ns[GPU_QUIET], worked_until_ns + SECONDS(30));
        assert_int_equal(reached_ns[GPU_CANDIDATE], worked_until_ns + MINUTES(30));
        assert_int_equal(reached_ns[GPU_IDLE], worked_until_ns + MINUTES(31));
        assert_int_equal(reached_ns[GPU_UNKNOWN], 0);
        assert_int_equal(verdict.state, GPU_IDLE);
}

static void a_request_in_flight_restarts_the_window(void **state)
{
        struct gpu_machine machine = machine_in(GPU_IDLE);
        struct gpu_evidence evidence = evidence_of(REQUESTED);
        struct gpu_verdict verdict;

        assert_int_equal(step(&machine, &evidence).state, GPU_ACTIVE);
        evidence = nothing_for(HOURS(4));
        for (int kind = 0; kind < GPU_SOURCE_MAX; kind++)
                evidence.sources[kind].read_ns = NOW + MINUTES(1);
        gpu_machine_step(&machine, &rules, &evidence, NOW + MINUTES(1), &verdict);
        assert_int_equal(verdict.state, GPU_QUIET);
        assert_int_equal(verdict.idle_ns, MINUTES(1));
}

static void several_devices_are_idle_only_when_all_are(void **state)
{
        static const struct {
                enum gpu_state a, b, all;
        } cases[] = {
                { GPU_IDLE, GPU_IDLE, GPU_IDLE },           { GPU_IDLE, GPU_ACTIVE, GPU_ACTIVE },
                { GPU_IDLE, GPU_CANDIDATE, GPU_CANDIDATE }, { GPU_IDLE, GPU_QUIET, GPU_QUIET },
                { GPU_IDLE, GPU_UNKNOWN, GPU_UNKNOWN },     { GPU_IDLE, GPU_STUCK, GPU_STUCK },
                { GPU_IDLE, GPU_STARTING, GPU_STARTING },   { GPU_IDLE, GPU_UNUSED, GPU_IDLE },
                { GPU_UNUSED, GPU_UNUSED, GPU_UNUSED },     { GPU_UNKNOWN, GPU_ACTIVE, GPU_ACTIVE },
                { GPU_STUCK, GPU_ACTIVE, GPU_ACTIVE },      { GPU_STUCK, GPU_UNKNOWN, GPU_STUCK },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases) * 2; i++) {
                bool swap = i % 2;
                struct gpu_verdict a = { .state = swap ? cases[i / 2].b : cases[i / 2].a, .reason = "one" };
                struct gpu_verdict b = { .state = swap ? cases[i / 2].a : cases[i / 2].b, .reason = "one" }, all;
                struct gpu_part parts[] = { { "gpu0", &a }, { "gpu1", &b } };

                gpu_verdict_all(parts, 2, &all);
                assert_int_equal(all.state, cases[i / 2].all);
                assert_non_null(strstr(all.reason, ": one"));
        }
}

static void the_least_idle_device_says_how_long(void **state)
{
        struct gpu_verdict a = { .state = GPU_IDLE, .idle_ns = HOURS(2) }, b = { .state = GPU_IDLE, .idle_ns = HOURS(1) }, all;
        struct gpu_part parts[] = { { "gpu0", &a }, { "gpu1", &b } };

        gpu_verdict_all(parts, 2, &all);
        assert_int_equal(all.idle_ns, HOURS(1));
}

static void of_no_device_nothing_is_known(void **state)
{
        struct gpu_verdict all;

        gpu_verdict_all(NULL, 0, &all);
        assert_int_equal(all.state, GPU_UNKNOWN);
}

static void an_early_wake_doubles_the_window_four_times_at_most(void **state)
{
        assert_int_equal(gpu_window_factor(1, MINUTES(9)), 2);
        assert_int_equal(gpu_window_factor(2, MINUTES(9)), 4);
        assert_int_equal(gpu_window_factor(4, MINUTES(9)), 4);
        assert_int_equal(gpu_window_factor(4, MINUTES(10)), 2);
        assert_int_equal(gpu_window_factor(1, MINUTES(10)), 1);
}

static void an_unknown_one_says_what_is_missing(void **state)
{
        struct gpu_machine machine = machine_in(GPU_QUIET);
        struct gpu_evidence evidence = evidence_of(SHARED_SILENT);

        assert_string_equal(
                step(&machine, &evidence).reason,
                "only one source speaks of it, and two are wanted: NVML: cannot tell the workloads that share the device "
                "apart");
        evidence = evidence_of(ONLY_CALLS);
        evidence.sources[GPU_SOURCE_VENDOR].lack = "the device is divided by MIG";
        assert_string_equal(step(&machine, &evidence).reason,
                            "only one source speaks of it, and two are wanted: NVML: the device is divided by MIG");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_state_meets_every_evidence),
                cmocka_unit_test(what_was_never_opened_is_unused_after_half_an_hour),
                cmocka_unit_test(an_unused_device_that_is_opened_begins_to_start),
                cmocka_unit_test(starting_lasts_ten_minutes_or_two_cold_starts),
                cmocka_unit_test(the_window_is_three_cold_starts_at_least_and_doubles),
                cmocka_unit_test(only_what_two_sources_have_watched_counts_as_quiet),
                cmocka_unit_test(one_source_that_sees_work_is_enough),
                cmocka_unit_test(stuck_needs_ten_minutes_and_a_known_power),
                cmocka_unit_test(unused_and_stuck_come_after_what_the_rules_say),
                cmocka_unit_test(work_counts_also_of_a_source_whose_silence_does_not),
                cmocka_unit_test(a_workload_that_stops_working_is_idle_after_the_window_and_a_minute),
                cmocka_unit_test(a_request_in_flight_restarts_the_window),
                cmocka_unit_test(several_devices_are_idle_only_when_all_are),
                cmocka_unit_test(the_least_idle_device_says_how_long),
                cmocka_unit_test(of_no_device_nothing_is_known),
                cmocka_unit_test(an_early_wake_doubles_the_window_four_times_at_most),
                cmocka_unit_test(an_unknown_one_says_what_is_missing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
