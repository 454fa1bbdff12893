/* SPDX-License-Identifier: Apache-2.0 */
/* The agent role: one on every node. It holds first packets to sleeping Services, says who asks and which workloads are idle, and
 * releases what it holds to the pods once they answer. It reads ScaleToZero objects and its own node's pods, writes its NodeActivity
 * and renews its Lease, and may do nothing else.
 */
#pragma once

#include "agent/options.h"
#include "base/macros.h"

struct agent;

/* Returns 0, or -errno after logging which step failed. @options must outlive it. */
int agent_new(const struct agent_options *options, struct agent **ret_agent);
/* Runs until SIGTERM or SIGINT. Returns 0 or -errno. */
int agent_run(struct agent *agent);
/* A planned stop: first packets are held for the next agent on this node. Accepts NULL, returns NULL. */
struct agent *agent_free(struct agent *agent);
DEFINE_CLEANUP(struct agent, agent_free)
