/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide.h"

static bool is_there(const struct target_state *target)
{
        return target && !target->final && !(target->known && !target->exists);
}

void decide_unreadable(const struct scale_to_zero *object, const struct target_state *target, struct decision *ret_decision)
{
        const struct scale_to_zero_status *status = &object->status;
        struct decision decision = { .from = status->phase, .machine.phase = status->phase };
        bool may_be_asleep = is_there(target) && (status->phase != PHASE_AWAKE || target->in_doubt);

        if (may_be_asleep && target->known && (target->replicas == 0 || target->in_doubt)) {
                decision.scale = SCALE_UP;
                decision.replicas = MAX(status->replicas_before, 1u);
        } else if (!may_be_asleep || target->known) {
                decision.remove_finalizer = object->metadata.deleting && object->has_finalizer;
        }
        *ret_decision = decision;
}
