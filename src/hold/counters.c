/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/counters.h"

#include <assert.h>

#include "base/macros.h"
#include "hold/hold.h"
#include "lull_wire.h"

static const struct counter_name kernel_names[] = {
        [LULL_COUNTER_HELD] = { "held", "published" },
        [LULL_COUNTER_HELD_PLANNED] = { "held", "planned-restart" },
        [LULL_COUNTER_HELD_RING_FULL] = { "held", "ring-full" },
        [LULL_COUNTER_HELD_UNREADABLE] = { "held", "unreadable" },
        [LULL_COUNTER_HELD_REFUSAL] = { "held", "refusal" },
        [LULL_COUNTER_PASS_FLOW] = { "passed", "exempt-flow" },
        [LULL_COUNTER_PASS_STALE] = { "passed", "no-heartbeat" },
        [LULL_COUNTER_PASS_IGNORED] = { "passed", "ignored" },
        [LULL_COUNTER_PASS_NOT_ALLOWED] = { "passed", "not-allowed" },
        [LULL_COUNTER_PASS_QUOTA] = { "passed", "quota" },
        [LULL_COUNTER_PASS_NOT_LOCAL] = { "passed", "not-local" },
        [LULL_COUNTER_PASS_FRAGMENT] = { "passed", "fragment" },
        [LULL_COUNTER_PASS_MALFORMED] = { "passed", "malformed" },
        [LULL_COUNTER_PASS_TOO_LARGE] = { "passed", "too-large" },
};
static_assert(ELEMENTSOF(kernel_names) == LULL_COUNTER_MAX, "every verdict has a name");

static const struct counter_name daemon_names[] = {
        [DAEMON_DROPPED_REPEATED] = { "dropped", "repeated" },
        [DAEMON_DROPPED_FLOW_FULL] = { "dropped", "flow-full" },
        [DAEMON_DROPPED_SOURCE_FULL] = { "dropped", "source-full" },
        [DAEMON_DROPPED_POLICY_FULL] = { "dropped", "policy-full" },
        [DAEMON_DROPPED_STORE_FULL] = { "dropped", "store-full" },
        [DAEMON_DROPPED_NO_MEMORY] = { "dropped", "no-memory" },
        [DAEMON_DROPPED_UNSETTLED] = { "dropped", "unsettled" },
        [DAEMON_DROPPED_UNSENDABLE] = { "dropped", "unsendable" },
        [DAEMON_DROPPED_RESTART] = { "dropped", "planned-restart" },
        [DAEMON_RELEASED_READY] = { "released", "ready" },
        [DAEMON_RELEASED_DIRECT] = { "released", "direct" },
        [DAEMON_RELEASED_DATA_PLANE] = { "released", "data-plane" },
        [DAEMON_RELEASED_STOPPED] = { "released", "stopped" },
        [DAEMON_RELEASED_LATE] = { "released", "late" },
        [DAEMON_EXPIRED_TIMEOUT] = { "expired", "timeout" },
        [DAEMON_EXPIRED_REFUSED] = { "expired", "refused" },
        [DAEMON_EXPIRED_NO_LISTENER] = { "expired", "no-listener" },
        [DAEMON_REINJECTED_SILENCE] = { "reinjected", "silence" },
        [DAEMON_REINJECTED_GIVEN_UP] = { "reinjected", "given-up" },
        [DAEMON_REINJECTED_HANDED_OVER] = { "reinjected", "handed-over" },
        [DAEMON_REINJECTED_OTHER_ENDPOINT] = { "reinjected", "other-endpoint" },
        [DAEMON_DELAYED_TAKEN] = { "delayed", "answers-taken" },
        [DAEMON_DELAYED_UNREACHABLE] = { "delayed", "unreachable" },
        [DAEMON_DELAYED_KERNEL] = { "delayed", "kernel-busy" },
        [DAEMON_DELAYED_NO_ENTRY] = { "delayed", "no-entry" },
};
static_assert(ELEMENTSOF(daemon_names) == DAEMON_COUNTER_MAX, "every verdict has a name");
static_assert(LULL_COUNTER_MAX + DAEMON_COUNTER_MAX <= HOLD_COUNTERS_MAX, "all fit what hold_counters() fills");

struct counter_name counter_name(unsigned counter)
{
        return kernel_names[counter];
}

struct counter_name daemon_counter_name(enum daemon_counter counter)
{
        return daemon_names[counter];
}
