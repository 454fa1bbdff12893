/* SPDX-License-Identifier: Apache-2.0 */
/* What every role that watches GPUs answers and counts. */
#pragma once

#include "serve/http.h"
#include "serve/metrics.h"

struct gpu_watch;

void answer_gpus(struct http_request *request, struct gpu_watch *watch);
/* Of the device or workload that the path names, 404 when there is none. */
void answer_gpu(struct http_request *request, struct gpu_watch *watch);
void answer_gpu_why(struct http_request *request, struct gpu_watch *watch);

void write_gpu_families(struct metrics_writer *writer, struct gpu_watch *watch);

/* One paragraph about a *workload* or *device* of docs/control-api.md. Pure. Returns 0 or -ENOMEM; the caller owns *ret_text. */
int gpu_why_text(const json_t *object, char **ret_text);
