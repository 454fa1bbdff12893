/* SPDX-License-Identifier: Apache-2.0 */
/* "lulld gpu": watches who does what with this machine's GPUs, and touches nothing. No policies, no holding, no cgroups of its own. */
#pragma once

#include "standalone/options.h"

/* Runs until SIGTERM or SIGINT. Returns 0, or -errno after logging which step failed. */
int gpu_only_run(const struct options *options);
