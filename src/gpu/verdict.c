/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/verdict.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"

#define QUIET_AFTER_NS (30 * NSEC_PER_SEC)
#define CONFIRM_NS (60 * NSEC_PER_SEC)
#define FRESH_NS (10 * NSEC_PER_SEC) /* NVML's ring of process samples wraps after that */
#define START_HOLD_NS (600 * NSEC_PER_SEC)
#define CPU_VETO_MAX_NS (7200 * NSEC_PER_SEC)
#define FLAPPING_NS (600 * NSEC_PER_SEC)

enum {
        SOURCES_WANTED = 2,
        FACTOR_MAX = 4,
        COLD_STARTS_IN_WINDOW = 3,
        STARTS_IN_HOLD = 2,
        CPU_VETO_MILLICORES = 500,
        IO_VETO_BYTES = 5000000, /* a second */
        FULL_PERCENT = 95,
        POWER_SAMPLES_MIN = 12, /* a minute of readings */
};

static const char *const state_names[] = {
        [GPU_STARTING] = "starting", [GPU_ACTIVE] = "active", [GPU_QUIET] = "quiet", [GPU_CANDIDATE] = "candidate",
        [GPU_IDLE] = "idle",         [GPU_UNUSED] = "unused", [GPU_STUCK] = "stuck", [GPU_UNKNOWN] = "unknown",
};
static_assert(ELEMENTSOF(state_names) == GPU_STATE_MAX, "every state has a name");

static const char *const source_names[] = {
        [GPU_SOURCE_CALLS] = "calls",
        [GPU_SOURCE_VENDOR] = "vendor",
        [GPU_SOURCE_KERNEL] = "kernel",
};
static_assert(ELEMENTSOF(source_names) == GPU_SOURCE_MAX, "every source has a name");

static const char *const source_titles[] = {
        [GPU_SOURCE_CALLS] = "the driver's calls",
        [GPU_SOURCE_VENDOR] = "NVML",
        [GPU_SOURCE_KERNEL] = "the kernel",
};
static_assert(ELEMENTSOF(source_titles) == GPU_SOURCE_MAX, "every source has a title");

struct step { /* what one step looks at, and what it finds */
        struct gpu_machine *machine;
        const struct gpu_rules *rules;
        const struct gpu_evidence *evidence;
        uint64_t now_ns;
        uint64_t quiet_ns; /* for how long two sources have seen nothing */
        struct gpu_verdict *verdict;
};

const char *gpu_state_to_string(enum gpu_state state)
{
        return (size_t)state < ELEMENTSOF(state_names) ? state_names[state] : "unknown";
}

const char *gpu_source_to_string(enum gpu_source_kind source)
{
        return (size_t)source < ELEMENTSOF(source_names) ? source_names[source] : "unknown";
}

static uint64_t elapsed(uint64_t since_ns, uint64_t now_ns)
{
        return now_ns > since_ns ? now_ns - since_ns : 0;
}

static void say(struct step *step, const char *format, ...) _printf_(2, 3);
static void say(struct step *step, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(step->verdict->reason, sizeof(step->verdict->reason), format, arguments);
        va_end(arguments);
}

/* Whether what @kind sees is about this workload and nobody else. */
static bool source_applies(const struct step *step, enum gpu_source_kind kind)
{
        return !(step->evidence->sources[kind].whole_device && step->evidence->shared);
}

/* Whether its silence counts, too. */
static bool source_counts(const struct step *step, enum gpu_source_kind kind)
{
        const struct gpu_source *source = &step->evidence->sources[kind];

        return source->known && source_applies(step, kind) && elapsed(source->read_ns, step->now_ns) <= FRESH_NS;
}

static uint64_t window(const struct gpu_rules *rules)
{
        return MAX(rules->window_ns, COLD_STARTS_IN_WINDOW * rules->cold_start_ns) * MAX(rules->factor, 1u);
}

static uint64_t unused_after(const struct gpu_rules *rules)
{
        return rules->unused_after_ns ? rules->unused_after_ns : GPU_UNUSED_AFTER_NS;
}

static uint64_t stuck_after(const struct gpu_rules *rules)
{
        return rules->stuck_after_ns ? rules->stuck_after_ns : GPU_STUCK_AFTER_NS;
}

static uint64_t start_hold(const struct gpu_rules *rules)
{
        return MAX(START_HOLD_NS, STARTS_IN_HOLD * rules->cold_start_ns);
}

/* Work seen by any source counts, whichever of them are there. */
static void note_work(struct step *step)
{
        struct gpu_machine *machine = step->machine;
        const struct gpu_evidence *evidence = step->evidence;
        uint64_t busy_ns = 0;

        for (int kind = 0; kind < GPU_SOURCE_MAX; kind++)
                if (source_applies(step, kind))
                        busy_ns = MAX(busy_ns, evidence->sources[kind].last_busy_ns);
        if (evidence->waiting > 0)
                busy_ns = step->now_ns;

        if (busy_ns && !machine->worked_ns)
                machine->worked_ns = busy_ns;
        if ((evidence->opened || machine->worked_ns) && !machine->opened_ns)
                machine->opened_ns = step->now_ns;

        if (evidence->open_requests > 0)
                busy_ns = step->now_ns;
        machine->last_busy_ns = MAX(machine->last_busy_ns, busy_ns);
}

/* Which sources count, and since when there have been two of them without a gap. */
static void note_coverage(struct step *step)
{
        struct gpu_verdict *verdict = step->verdict;
        uint64_t first_ns = UINT64_MAX, second_ns = UINT64_MAX, since_ns;

        for (int kind = 0; kind < GPU_SOURCE_MAX; kind++) {
                if (!source_counts(step, kind))
                        continue;
                verdict->n_sources++;
                verdict->sources |= 1u << kind;
                since_ns = step->evidence->sources[kind].since_ns;
                if (since_ns < first_ns) {
                        second_ns = first_ns;
                        first_ns = since_ns;
                } else {
                        second_ns = MIN(second_ns, since_ns);
                }
        }
        if (verdict->n_sources >= SOURCES_WANTED)
                step->quiet_ns = elapsed(MAX(second_ns, step->machine->last_busy_ns), step->now_ns);
}

static int compare_power(const void *a, const void *b)
{
        uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

        return (left > right) - (left < right);
}

/* What it draws when it works; 0 while that is not known well. */
static uint32_t busy_power(const struct gpu_machine *machine)
{
        uint32_t sorted[GPU_POWER_SAMPLES];

        if (machine->n_power < POWER_SAMPLES_MIN)
                return 0;
        memcpy(sorted, machine->power_milliwatts, machine->n_power * sizeof(*sorted));
        qsort(sorted, machine->n_power, sizeof(*sorted), compare_power);
        return sorted[machine->n_power / 2];
}

/* Only where the probes see submissions and NVML sees load at the same time does the power tell what working costs. */
static void note_power(struct step *step)
{
        struct gpu_machine *machine = step->machine;
        const struct gpu_evidence *evidence = step->evidence;

        if (!source_counts(step, GPU_SOURCE_CALLS) || !source_counts(step, GPU_SOURCE_VENDOR) || evidence->percent == 0 ||
            evidence->power_milliwatts == 0 || evidence->sources[GPU_SOURCE_CALLS].last_busy_ns <= machine->stepped_ns)
                return;
        machine->power_milliwatts[machine->next_power] = evidence->power_milliwatts;
        machine->next_power = (machine->next_power + 1) % GPU_POWER_SAMPLES;
        machine->n_power = MIN(machine->n_power + 1, (unsigned)GPU_POWER_SAMPLES);
}

static void note_load(struct step *step)
{
        struct gpu_machine *machine = step->machine;

        if (!source_counts(step, GPU_SOURCE_VENDOR) || step->evidence->percent < FULL_PERCENT)
                machine->full_since_ns = 0;
        else if (machine->full_since_ns == 0)
                machine->full_since_ns = step->now_ns;
}

static bool draws_little(const struct step *step)
{
        uint32_t power = step->evidence->power_milliwatts;

        return power > 0 && power < busy_power(step->machine) / 2;
}

/* A collective operation whose partner is gone shows full load for ever: nothing is submitted, and little power is drawn. */
static bool is_stuck(struct step *step)
{
        const struct gpu_machine *machine = step->machine;
        const struct gpu_source *calls = &step->evidence->sources[GPU_SOURCE_CALLS];
        uint64_t called_ns = MAX(calls->since_ns, calls->last_busy_ns), since_ns = MAX(machine->full_since_ns, called_ns), for_ns;
        char duration[DURATION_TEXT_MAX];

        if (machine->full_since_ns == 0 || !source_counts(step, GPU_SOURCE_CALLS) || !draws_little(step))
                return false;
        for_ns = elapsed(since_ns, step->now_ns);
        if (for_ns < stuck_after(step->rules))
                return false;
        say(step, "%u%% busy without a submission for %s, at %u%% of the power that it draws when it works",
            step->evidence->percent, duration_format(for_ns, duration),
            (unsigned)(step->evidence->power_milliwatts * UINT64_C(100) / busy_power(machine)));
        return true;
}

static bool is_wanted(struct step *step)
{
        const struct gpu_evidence *evidence = step->evidence;

        if (evidence->open_requests > 0)
                say(step, "%u unanswered request%s", evidence->open_requests, evidence->open_requests == 1 ? "" : "s");
        else if (evidence->waiting > 0)
                say(step, "%u thread%s wait%s for the device", evidence->waiting, evidence->waiting == 1 ? "" : "s",
                    evidence->waiting == 1 ? "s" : "");
        else
                return false;
        return true;
}

static bool was_never_opened(struct step *step, enum gpu_state *ret_state)
{
        const struct gpu_machine *machine = step->machine;
        uint64_t age_ns = elapsed(machine->began_ns, step->now_ns);
        char age[DURATION_TEXT_MAX];

        if (machine->opened_ns)
                return false;
        duration_format(age_ns, age);
        if (!step->evidence->opens_known) {
                say(step, "it cannot be seen who has the device open");
                *ret_state = GPU_UNKNOWN;
        } else if (age_ns < unused_after(step->rules)) {
                say(step, "allocated %s ago and not opened yet", age);
                *ret_state = GPU_STARTING;
        } else {
                say(step, "allocated for %s and never opened", age);
                *ret_state = GPU_UNUSED;
        }
        return true;
}

static bool is_starting(struct step *step)
{
        const struct gpu_machine *machine = step->machine;
        uint64_t open_ns = elapsed(machine->opened_ns, step->now_ns);
        char duration[DURATION_TEXT_MAX];

        if (machine->worked_ns || open_ns >= start_hold(step->rules))
                return false;
        say(step, "opened %s ago, and nothing has run on it yet", duration_format(open_ns, duration));
        return true;
}

static bool worked_lately(struct step *step)
{
        const struct gpu_machine *machine = step->machine;
        uint64_t ago_ns = elapsed(machine->last_busy_ns, step->now_ns);
        char ago[DURATION_TEXT_MAX];

        if (machine->last_busy_ns == 0 || ago_ns >= QUIET_AFTER_NS)
                return false;
        duration_format(ago_ns, ago);
        for (int kind = 0; kind < GPU_SOURCE_MAX; kind++)
                if (source_applies(step, kind) && step->evidence->sources[kind].last_busy_ns == machine->last_busy_ns) {
                        say(step, "%s saw it work %s ago", source_titles[kind], ago);
                        return true;
                }
        say(step, "it worked %s ago", ago);
        return true;
}

/* "NVML: MIG is on; the kernel: ..." of the sources that do not count though they might. */
static void list_lacks(const struct step *step, char *text, size_t size)
{
        size_t used = 0;

        text[0] = '\0';
        for (int kind = 0; kind < GPU_SOURCE_MAX; kind++) {
                const struct gpu_source *source = &step->evidence->sources[kind];
                const char *lack = source->lack;

                if (source_counts(step, kind))
                        continue;
                if (source->known && source->whole_device && step->evidence->shared)
                        lack = "cannot tell the workloads that share the device apart";
                else if (source->known)
                        lack = "has not answered for a while";
                if (lack && used < size)
                        used += (size_t)snprintf(text + used, size - used, "%s%s: %s", used ? "; " : "", source_titles[kind], lack);
        }
}

static bool sees_too_little(struct step *step)
{
        char lacks[200];

        if (step->evidence->blind) {
                say(step, "%s", step->evidence->blind);
                return true;
        }
        if (step->verdict->n_sources >= SOURCES_WANTED)
                return false;
        list_lacks(step, lacks, sizeof(lacks));
        say(step, "%s, and two are wanted%s%s",
            step->verdict->n_sources ? "only one source speaks of it" : "no source speaks of it", lacks[0] ? ": " : "", lacks);
        return true;
}

/* Two sources are there, but not for long enough to say that it is quiet: it remains what it was, unless that was a quiet state. */
static enum gpu_state settle(struct step *step)
{
        char duration[DURATION_TEXT_MAX];

        say(step, "nothing for %s, and that is too short to tell", duration_format(step->quiet_ns, duration));
        if (step->machine->state == GPU_ACTIVE || step->machine->state == GPU_STARTING)
                return step->machine->state;
        return GPU_UNKNOWN;
}

static bool works_otherwise(struct step *step)
{
        const struct gpu_evidence *evidence = step->evidence;
        bool cpu = evidence->cpu_millicores >= CPU_VETO_MILLICORES, io = evidence->io_bytes_per_second >= IO_VETO_BYTES;
        char duration[DURATION_TEXT_MAX];

        if (step->quiet_ns >= CPU_VETO_MAX_NS || (!cpu && !io))
                return false;
        duration_format(step->quiet_ns, duration);
        if (cpu)
                say(step, "nothing for %s, but it uses %u.%02u CPU cores, as if it prepared work", duration,
                    evidence->cpu_millicores / 1000, evidence->cpu_millicores % 1000 / 10);
        else
                say(step, "nothing for %s, but it reads or writes %llu MB/s, as if it prepared work", duration,
                    (unsigned long long)(evidence->io_bytes_per_second / 1000000));
        return true;
}

static bool is_confirmed(const struct step *step)
{
        const struct gpu_machine *machine = step->machine;
        const struct gpu_source *calls = &step->evidence->sources[GPU_SOURCE_CALLS];

        if (!source_counts(step, GPU_SOURCE_CALLS) || elapsed(calls->since_ns, step->now_ns) < CONFIRM_NS)
                return false;
        return machine->state == GPU_IDLE ||
               (machine->state == GPU_CANDIDATE && elapsed(machine->since_ns, step->now_ns) >= CONFIRM_NS);
}

static enum gpu_state judge_quiet(struct step *step)
{
        uint64_t required_ns = step->verdict->required_ns;
        char quiet[DURATION_TEXT_MAX], required[DURATION_TEXT_MAX];

        if (step->quiet_ns < QUIET_AFTER_NS)
                return settle(step);
        if (works_otherwise(step))
                return GPU_QUIET;

        duration_format(step->quiet_ns, quiet);
        if (step->quiet_ns < required_ns) {
                say(step, "nothing for %s; a candidate after %s", quiet, duration_format(required_ns, required));
                return GPU_QUIET;
        }
        if (!is_confirmed(step)) {
                say(step, "nothing for %s; idle once the probes have seen nothing for a minute more", quiet);
                return GPU_CANDIDATE;
        }
        say(step, "nothing was submitted, waited for or run for %s", quiet);
        return GPU_IDLE;
}

static enum gpu_state judge(struct step *step)
{
        enum gpu_state state;

        if (is_stuck(step))
                return GPU_STUCK;
        if (was_never_opened(step, &state))
                return state;
        if (is_wanted(step) || worked_lately(step))
                return GPU_ACTIVE;
        if (is_starting(step))
                return GPU_STARTING;
        if (sees_too_little(step))
                return GPU_UNKNOWN;
        return judge_quiet(step);
}

void gpu_machine_begin(struct gpu_machine *machine, uint64_t now_ns)
{
        *machine = (struct gpu_machine){ .state = GPU_STARTING, .since_ns = now_ns, .began_ns = now_ns };
}

void gpu_machine_step(struct gpu_machine *machine, const struct gpu_rules *rules, const struct gpu_evidence *evidence,
                      uint64_t now_ns, struct gpu_verdict *ret_verdict)
{
        struct gpu_verdict verdict = { .required_ns = window(rules) };
        struct step step = { .machine = machine, .rules = rules, .evidence = evidence, .now_ns = now_ns, .verdict = &verdict };

        note_work(&step);
        note_coverage(&step);
        note_power(&step);
        note_load(&step);

        verdict.state = judge(&step);
        if (verdict.state == GPU_QUIET || verdict.state == GPU_CANDIDATE || verdict.state == GPU_IDLE)
                verdict.idle_ns = step.quiet_ns;
        else if (verdict.state == GPU_UNUSED)
                verdict.idle_ns = elapsed(machine->began_ns, now_ns);

        if (verdict.state != machine->state) {
                machine->state = verdict.state;
                machine->since_ns = now_ns;
        }
        machine->stepped_ns = now_ns;
        verdict.since_ns = machine->since_ns;
        *ret_verdict = verdict;
}

/* Whether @verdict says more than @other of a whole that both are parts of. */
static bool outweighs(const struct gpu_verdict *verdict, const struct gpu_verdict *other)
{
        static const int weights[] = {
                [GPU_UNUSED] = 0,  [GPU_IDLE] = 1,  [GPU_CANDIDATE] = 2, [GPU_QUIET] = 3,
                [GPU_UNKNOWN] = 4, [GPU_STUCK] = 5, [GPU_STARTING] = 6,  [GPU_ACTIVE] = 7,
        };
        static_assert(ELEMENTSOF(weights) == GPU_STATE_MAX, "every state has a weight");

        if (verdict->state != other->state)
                return weights[verdict->state] > weights[other->state];
        return verdict->idle_ns < other->idle_ns;
}

void gpu_verdict_all(const struct gpu_part *parts, size_t n_parts, struct gpu_verdict *ret_verdict)
{
        struct gpu_verdict all = { .state = GPU_UNKNOWN };
        const struct gpu_part *chosen = NULL;

        for (size_t i = 0; i < n_parts; i++)
                if (!chosen || outweighs(parts[i].verdict, chosen->verdict))
                        chosen = &parts[i];

        if (!chosen) {
                snprintf(all.reason, sizeof(all.reason), "nothing of it is watched");
        } else {
                all = *chosen->verdict;
                if (chosen->name && n_parts > 1)
                        snprintf(all.reason, sizeof(all.reason), "%.64s: %.180s", chosen->name, chosen->verdict->reason);
        }
        *ret_verdict = all;
}

unsigned gpu_window_factor(unsigned factor, uint64_t slept_ns)
{
        if (slept_ns < FLAPPING_NS)
                return MIN(factor * 2, (unsigned)FACTOR_MAX);
        return MAX(factor / 2, 1u);
}
