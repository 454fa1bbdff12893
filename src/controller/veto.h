/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a policy, as conditions of its status, and what of it forbids sleep. A part of decide.h; pure. */
#pragma once

#include "controller/decide.h"

/* Adds what holds now, whatever the phase. Returns whether something forbids sleep. */
bool veto_conditions(const struct decide_input *input, struct conditions *conditions);
/* Adds that a GPU is idle and nothing but onIdle: Report keeps its policy awake. For what nothing forbids to sleep. */
void gpu_condition(const struct decide_input *input, struct decision *decision);
/* Adds what a decision leaves behind, and what earlier ones have left and is still so. */
void lasting_conditions(const struct decide_input *input, struct decision *decision);
