/* SPDX-License-Identifier: Apache-2.0 */
/* Metric families that several roles have. */
#pragma once

#include <jansson.h>

#include "serve/metrics.h"

struct event_log;
struct hold;
struct kube_client;

void write_daemon_families(struct metrics_writer *writer, const struct event_log *events);
void write_hold_families(struct metrics_writer *writer, const struct hold *hold);
/* @programs as hold_programs() and activity_programs() give them; NULL: none. The activity programs of all workloads have the same
 * names and are added up, so that the label is bounded. */
void write_program_families(struct metrics_writer *writer, const json_t *programs);
void write_request_families(struct metrics_writer *writer, const struct kube_client *client);
