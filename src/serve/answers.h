/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that every role gives, in the shapes of docs/control-api.md. Each makes the one reply to @request. */
#pragma once

#include <stdbool.h>

#include "serve/http.h"

struct event_log;

void answer_events(struct http_request *request, const struct event_log *log);
void answer_event_stream(struct http_request *request, struct event_log *log);
void answer_features(struct http_request *request);
void answer_metrics(struct http_request *request, int r, char *text); /* what metrics_writer_finish() returned */
void answer_ok(struct http_request *request);
/* Programs of two families in one list. Takes both over; either may be NULL (no memory). */
void answer_programs(struct http_request *request, json_t *programs, json_t *others);
/* @problem NULL: it is ready. */
void answer_ready(struct http_request *request, const char *problem);
/* Takes @policy over, which may be NULL (no memory). */
void answer_why(struct http_request *request, json_t *policy);
