/* SPDX-License-Identifier: Apache-2.0 */
/* The controller role: two or more replicas a cluster. Every replica wakes; the leader alone puts to sleep and writes status
 * otherwise.
 */
#pragma once

#include "base/macros.h"
#include "controller/options.h"

struct controller;

/* Returns 0, or -errno after logging which step failed. @options must outlive it. */
int controller_new(const struct controller_options *options, struct controller **ret_controller);
/* Runs until SIGTERM or SIGINT; gives the leadership back. Returns 0 or -errno. */
int controller_run(struct controller *controller);
struct controller *controller_free(struct controller *controller); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct controller, controller_free)
