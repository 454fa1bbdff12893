/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/families.h"

#include "hold/hold.h"
#include "kube/client.h"
#include "serve/event_log.h"

void write_daemon_families(struct metrics_writer *writer, const struct event_log *events)
{
        const char *labels[] = { "version", LULL_VERSION, NULL };

        metrics_family(writer, "lull_build_info");
        metrics_sample(writer, labels, 1);
        metrics_family(writer, "lull_events_lost_total");
        metrics_sample(writer, NULL, (double)event_log_lost(events));
}

void write_hold_families(struct metrics_writer *writer, const struct hold *hold)
{
        struct hold_counter counters[HOLD_COUNTERS_MAX];
        size_t n = hold_counters(hold, counters);

        metrics_family(writer, "lull_hold_attached");
        metrics_sample(writer, NULL, hold_is_attached(hold));

        metrics_family(writer, "lull_hold_packets_total");
        for (size_t i = 0; i < n; i++) {
                const char *labels[] = { "verdict", counters[i].verdict, "reason", counters[i].reason, NULL };

                metrics_sample(writer, labels, (double)counters[i].value);
        }
}

/* The sums of @key by the programs' names. */
static void write_program_family(struct metrics_writer *writer, const json_t *programs, const char *family, const char *key)
{
        json_t *totals = json_object(), *program, *total;
        const char *name;
        size_t i;

        json_array_foreach((json_t *)programs, i, program) {
                name = json_string_value(json_object_get(program, "name"));
                total = name ? json_object_get(totals, name) : NULL;
                if (name)
                        json_object_set_new(totals, name,
                                            json_real(json_number_value(total) + json_number_value(json_object_get(program, key))));
        }

        metrics_family(writer, family);
        json_object_foreach(totals, name, total) {
                const char *labels[] = { "program", name, NULL };

                metrics_sample(writer, labels, json_number_value(total));
        }
        json_decref(totals);
}

void write_program_families(struct metrics_writer *writer, const json_t *programs)
{
        write_program_family(writer, programs, "lull_bpf_program_runs_total", "run_count");
        write_program_family(writer, programs, "lull_bpf_program_run_seconds_total", "run_time_seconds");
}

void write_request_families(struct metrics_writer *writer, const struct kube_client *client)
{
        const struct kube_counters *counters = kube_client_counters(client);

        metrics_family(writer, "lull_api_requests_total");
        for (size_t i = 0; i < counters->n_rows; i++) {
                const struct kube_counter_row *row = &counters->rows[i];
                char code[8];
                const char *labels[] = { "verb", kube_verb_to_string(row->verb), "resource", row->resource, "code", code, NULL };

                snprintf(code, sizeof(code), "%u", row->code);
                metrics_sample(writer, labels, (double)row->requests);
        }
}
