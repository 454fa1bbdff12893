/* SPDX-License-Identifier: Apache-2.0 */
/* What hold shows to people and metrics. */
#include "base/time.h"
#include "hold/state.h"

static const char *describe_state(const struct held_frontend *frontend, const struct parked_flow *flow)
{
        if (flow->pacing.in_flight)
                return "released";
        if (!frontend->translated || frontend->state != FRONTEND_RELEASING || frontend->translated->way == WAY_DIRECT)
                return "parked";
        return translated_way_to_string(frontend->translated->way);
}

static json_t *describe_flow(const struct parked_flow *flow, uint64_t now_ns)
{
        const struct held_frontend *frontend = container_of(flow->queue, struct held_frontend, queue);
        struct flow readable = flow_from_wire(&flow->key);
        char text[FLOW_TEXT_MAX];
        double age = now_ns > flow->first_ns ? (double)(now_ns - flow->first_ns) / (double)NSEC_PER_SEC : 0;

        return json_pack("{s:s, s:s, s:I, s:I, s:f, s:s}", "policy", frontend->holding->name, "flow", flow_format(&readable, text),
                         "packets", (json_int_t)flow->n_packets, "bytes", (json_int_t)flow->bytes, "age_seconds", age, "state",
                         describe_state(frontend, flow));
}

json_t *hold_list(const struct hold *hold)
{
        const struct parked_policy *policy;
        const struct parked_flow *flow;
        json_t *list = json_array();
        uint64_t now_ns = now_monotonic_ns();

        TAILQ_FOREACH(policy, parked_policies(hold->parked), link)
                TAILQ_FOREACH(flow, &policy->by_age, by_age)
                        (void)json_array_append_new(list, describe_flow(flow, now_ns));
        return list;
}

json_t *hold_programs(const struct hold *hold)
{
        return hold_hooks_programs(hold->hooks);
}

json_t *hold_maps(const struct hold *hold)
{
        return hold_hooks_maps(hold->hooks);
}

size_t hold_counters(const struct hold *hold, struct hold_counter counters[static HOLD_COUNTERS_MAX])
{
        size_t n = 0;

        for (unsigned i = 0; i < LULL_COUNTER_MAX; i++) {
                struct counter_name name = counter_name(i);

                counters[n++] = (struct hold_counter){ name.verdict, name.reason, hold_hooks_counter(hold->hooks, i) };
        }
        for (unsigned i = 0; i < DAEMON_COUNTER_MAX; i++) {
                struct counter_name name = daemon_counter_name(i);

                counters[n++] = (struct hold_counter){ name.verdict, name.reason, hold->counters[i] };
        }
        return n;
}

bool hold_is_attached(const struct hold *hold)
{
        return hold_hooks_attached(hold->hooks);
}
