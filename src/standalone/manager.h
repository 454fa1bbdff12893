/* SPDX-License-Identifier: Apache-2.0 */
/* The standalone role: all policies of one machine, the event loop, the control socket and the metrics. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "policy/load.h"
#include "serve/http.h"
#include "standalone/managed.h"
#include "standalone/options.h"

struct manager {
        const struct options *options;
        struct context context;
        struct managed **policies; /* in order of their names */
        size_t n_policies;
        char **configuration_errors;
        size_t n_configuration_errors;

        int lock_fd; /* of RUN_DIR/lulld.lock: one daemon a run directory */
        struct http_server *control, *metrics;
        sd_event_source *reaper; /* frees retired policies, outside their own calls */
        uint64_t started_ns;
        bool ready;
};

/* Reads the policies and takes up what an earlier daemon left. A policy that is wrong is left out and logged; so is one that cannot be
 * set up. Returns 0, or -errno after logging which step failed. @options must outlive it. */
int manager_new(const struct options *options, struct manager **ret_manager);
/* Runs until SIGTERM or SIGINT. Returns 0 or -errno. */
int manager_run(struct manager *manager);
/* A planned stop: workloads stay as they are, first packets are held for the next daemon. Accepts NULL, returns NULL. */
struct manager *manager_free(struct manager *manager);
DEFINE_CLEANUP(struct manager, manager_free)

/* Frees the policies that have retired. Not to be called from within a call into one of them. */
void manager_reap(struct manager *manager);
/* By name, among policies in the order of their names; or NULL. */
struct managed *managed_find(struct managed **policies, size_t n_policies, const char *name);

/* reload.c: makes the policies what the files now say. */
int manager_load(struct manager *manager);
/* Prints what is wrong with the policy files; 0 when nothing is, else -EINVAL or -errno. */
int manager_check(const struct options *options);

/* api.c, exposition.c */
extern const struct http_route manager_control_routes[];
extern const struct http_route manager_metrics_routes[];
int manager_metrics_text(struct manager *manager, char **ret_text);
