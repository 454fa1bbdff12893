/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time.h"
#include "controller/controller_private.h"
#include "serve/families.h"

static enum phase phase_of(const struct subject *subject)
{
        return subject_known(subject)->object->status.phase;
}

static void write_phases(struct metrics_writer *writer, const struct controller *controller)
{
        unsigned counts[PHASE_MAX] = { 0 };
        const struct subject *subject;

        for (subject = controller->subjects; subject; subject = subject->hh.next)
                counts[phase_of(subject)]++;
        metrics_family(writer, "lull_policies");
        for (int phase = 0; phase < PHASE_MAX; phase++) {
                const char *labels[] = { "phase", phase_to_string(phase), NULL };

                metrics_sample(writer, labels, counts[phase]);
        }
        metrics_family(writer, "lull_policy_phase");
        for (subject = controller->subjects; subject; subject = subject->hh.next)
                for (int phase = 0; phase < PHASE_MAX; phase++) {
                        const char *labels[] = { "policy", subject->key, "phase", phase_to_string(phase), NULL };

                        metrics_sample(writer, labels, phase_of(subject) == (enum phase)phase);
                }
}

static void write_conditions(struct metrics_writer *writer, const struct controller *controller)
{
        const struct subject *subject;

        metrics_family(writer, "lull_policy_condition");
        for (subject = controller->subjects; subject; subject = subject->hh.next) {
                const struct scale_to_zero_status *status = &subject_known(subject)->object->status;

                for (size_t i = 0; i < status->n_conditions; i++) {
                        const char *labels[] = { "policy", subject->key, "type", status->conditions[i].type, NULL };

                        if (status->conditions[i].holds)
                                metrics_sample(writer, labels, 1);
                }
        }
}

static void write_transitions(struct metrics_writer *writer, const struct controller *controller)
{
        const struct subject *subject;

        metrics_family(writer, "lull_transitions_total");
        for (subject = controller->subjects; subject; subject = subject->hh.next)
                for (int pair = 0; pair < PHASE_MAX * PHASE_MAX; pair++) {
                        int from = pair / PHASE_MAX, to = pair % PHASE_MAX;
                        const char *labels[] = { "policy", subject->key,        "from", phase_to_string(from),
                                                 "to",     phase_to_string(to), NULL };

                        if (subject->transitions[from][to])
                                metrics_sample(writer, labels, (double)subject->transitions[from][to]);
                }
}

static void write_wakes(struct metrics_writer *writer, const struct controller *controller)
{
        static const char *const causes[WAKE_CAUSE_MAX] = {
                [WAKE_PACKET] = "packet",
                [WAKE_SCALED] = "started",
                [WAKE_MANUAL] = "operator",
                [WAKE_DELETED] = "deleted",
        };
        const struct subject *subject;

        metrics_family(writer, "lull_wakes_total");
        for (subject = controller->subjects; subject; subject = subject->hh.next)
                for (int cause = 0; cause < WAKE_CAUSE_MAX; cause++) {
                        const char *labels[] = { "policy", subject->key, "cause", causes[cause], NULL };

                        metrics_sample(writer, labels, (double)subject->wakes[cause]);
                }
        metrics_family(writer, "lull_wake_failures_total");
        for (subject = controller->subjects; subject; subject = subject->hh.next) {
                const char *labels[] = { "policy", subject->key, NULL };

                metrics_sample(writer, labels, (double)subject->wake_failures);
        }
}

static void write_saved(struct metrics_writer *writer, const struct controller *controller)
{
        const struct subject *subject;

        metrics_family(writer, "lull_saved_replica_seconds_total");
        for (subject = controller->subjects; subject; subject = subject->hh.next) {
                const char *labels[] = { "policy", subject->key, NULL };

                metrics_sample(writer, labels, subject_known(subject)->object->status.saved_replica_seconds);
        }
        metrics_family(writer, "lull_gpu_saved_seconds_total");
        for (subject = controller->subjects; subject && controller_leads(controller); subject = subject->hh.next) {
                const struct scale_to_zero_status *status = &subject_known(subject)->object->status;
                const char *labels[] = { "policy", subject->key, NULL };

                if (status->saved_gpu_seconds > 0 || status->gpus_before > 0)
                        metrics_sample(writer, labels, status->saved_gpu_seconds);
        }
}

static void write_watches(struct metrics_writer *writer, const struct controller *controller)
{
        metrics_family(writer, "lull_watch_stale");
        for (enum view view = 0; view < VIEW_MAX; view++) {
                const char *labels[] = { "resource", view_name(view), NULL };

                metrics_sample(writer, labels, kube_reflector_is_stale(controller->views[view]));
        }
}

static void write_daemon(struct metrics_writer *writer, const struct controller *controller)
{
        static const struct {
                enum agent_freshness freshness;
                const char *state;
        } agents[] = { { AGENT_FRESH, "fresh" }, { AGENT_UNPROVEN, "unproven" }, { AGENT_STALE, "silent" } };

        write_daemon_families(writer, controller->events);
        metrics_family(writer, "lull_leader");
        metrics_sample(writer, NULL, controller_leads(controller));
        metrics_family(writer, "lull_agents");
        for (size_t i = 0; i < ELEMENTSOF(agents); i++) {
                const char *labels[] = { "state", agents[i].state, NULL };

                metrics_sample(writer, labels, (double)agents_count(controller->agents, agents[i].freshness, now_monotonic_ns()));
        }
}

int controller_metrics_text(const struct controller *controller, char **ret_text)
{
        _cleanup_(metrics_writer_freep) struct metrics_writer *writer = NULL;
        int r = metrics_writer_new(&writer);

        if (r < 0)
                return r;
        write_daemon(writer, controller);
        write_phases(writer, controller);
        write_conditions(writer, controller);
        write_transitions(writer, controller);
        write_wakes(writer, controller);
        write_saved(writer, controller);
        write_watches(writer, controller);
        write_request_families(writer, controller->client);
        return metrics_writer_finish(writer, ret_text);
}
