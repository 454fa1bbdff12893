/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/agents.h"

#include <string.h>
#include <uthash.h>

#include "base/text.h"
#include "base/time.h"

struct agent_seen {
        char *node;
        char *renew_time, *holder; /* as last seen, or NULL without a Lease */
        uint64_t seen_ns;          /* when the Lease was last seen to change, or first seen */
        uint64_t duration_ns;
        uint64_t ask_ns; /* not to be asked about before, unless its Lease changes */
        bool proven;     /* it has been seen to change */
        bool told;       /* that it has fallen silent */
        const struct node_activity *activity;
        UT_hash_handle hh;
};

struct agents {
        struct agent_seen *nodes; /* by name */
};

int agents_new(struct agents **ret_agents)
{
        struct agents *agents = calloc(1, sizeof(*agents));

        if (!agents)
                return -ENOMEM;
        *ret_agents = agents;
        return 0;
}

static void agent_free(struct agent_seen *agent)
{
        free(agent->node);
        free(agent->renew_time);
        free(agent->holder);
        free(agent);
}

struct agents *agents_free(struct agents *agents)
{
        struct agent_seen *agent, *next;

        if (!agents)
                return NULL;
        HASH_ITER(hh, agents->nodes, agent, next) {
                HASH_DEL(agents->nodes, agent);
                agent_free(agent);
        }
        free(agents);
        return NULL;
}

static struct agent_seen *agent_find(const struct agents *agents, const char *node)
{
        struct agent_seen *agent;

        HASH_FIND_STR(agents->nodes, node, agent);
        return agent;
}

static int agent_get(struct agents *agents, const char *node, struct agent_seen **ret_agent)
{
        struct agent_seen *agent = agent_find(agents, node);

        if (!agent) {
                if (HASH_COUNT(agents->nodes) >= AGENTS_MAX)
                        return -E2BIG;
                agent = calloc(1, sizeof(*agent));
                if (!agent)
                        return -ENOMEM;
                agent->node = strdup(node);
                if (!agent->node) {
                        agent_free(agent);
                        return -ENOMEM;
                }
                HASH_ADD_KEYPTR(hh, agents->nodes, agent->node, strlen(agent->node), agent);
        }
        *ret_agent = agent;
        return 0;
}

static void agent_forget_if_empty(struct agents *agents, struct agent_seen *agent)
{
        if (agent->renew_time || agent->activity)
                return;
        HASH_DEL(agents->nodes, agent);
        agent_free(agent);
}

static const char *lease_node(const struct kube_lease *lease)
{
        size_t length = strlen(AGENT_LEASE_PREFIX);

        if (strncmp(lease->metadata.name, AGENT_LEASE_PREFIX, length) != 0 || !lease->metadata.name[length])
                return NULL;
        return lease->metadata.name + length;
}

static enum agent_freshness freshness(const struct agent_seen *agent, uint64_t now_ns)
{
        if (!agent || !agent->renew_time || now_ns - agent->seen_ns >= agent->duration_ns)
                return AGENT_STALE;
        return agent->proven ? AGENT_FRESH : AGENT_UNPROVEN;
}

int agents_lease(struct agents *agents, const struct kube_lease *lease, uint64_t now_ns)
{
        const char *node = lease_node(lease);
        enum agent_freshness before;
        struct agent_seen *agent;
        bool changed, other_process;
        int r;

        if (!node)
                return 0;
        r = agent_get(agents, node, &agent);
        if (r < 0)
                return r;
        before = freshness(agent, now_ns);
        other_process = agent->renew_time && strcmp(agent->holder, lease->holder) != 0;
        changed = agent->renew_time && (other_process || strcmp(agent->renew_time, lease->renew_time) != 0);
        if (agent->renew_time && !changed)
                return 0;

        r = text_replace(&agent->holder, lease->holder);
        if (r >= 0)
                r = text_replace(&agent->renew_time, lease->renew_time);
        if (r < 0)
                return r;
        agent->proven = changed;
        agent->told = false;
        agent->seen_ns = now_ns;
        agent->ask_ns = 0;
        agent->duration_ns = MIN(lease->duration_seconds * NSEC_PER_SEC, AGENT_FRESH_MAX_NS);
        if (!*lease->holder)
                agent->duration_ns = 0; /* given back */
        return other_process || before != freshness(agent, now_ns);
}

void agents_doubt(struct agents *agents)
{
        struct agent_seen *agent, *next;

        HASH_ITER(hh, agents->nodes, agent, next)
                agent->proven = false;
}

void agents_lease_gone(struct agents *agents, const struct kube_lease *lease)
{
        const char *node = lease_node(lease);
        struct agent_seen *agent = node ? agent_find(agents, node) : NULL;

        if (!agent)
                return;
        free(agent->renew_time);
        free(agent->holder);
        agent->renew_time = agent->holder = NULL;
        agent_forget_if_empty(agents, agent);
}

int agents_activity(struct agents *agents, const char *node, const struct node_activity *activity)
{
        struct agent_seen *agent = agent_find(agents, node);
        int r;

        if (!agent && !activity)
                return 0;
        r = agent_get(agents, node, &agent);
        if (r < 0)
                return r;
        agent->activity = activity;
        agent_forget_if_empty(agents, agent);
        return 0;
}

static struct agent_view view_of(const struct agent_seen *agent, uint64_t now_ns)
{
        const struct node_activity *activity = agent->activity;

        return (struct agent_view){
                .node = agent->node,
                .freshness = freshness(agent, now_ns),
                .activity = activity,
                .vouched = activity && activity->instance && agent->holder && strcmp(activity->instance, agent->holder) == 0,
        };
}

struct agent_view agents_get(const struct agents *agents, const char *node, uint64_t now_ns)
{
        const struct agent_seen *agent = agent_find(agents, node);

        return agent ? view_of(agent, now_ns) : (struct agent_view){ .node = node };
}

int agents_each(const struct agents *agents, uint64_t now_ns, int (*each)(const struct agent_view *agent, void *userdata),
                void *userdata)
{
        struct agent_seen *agent, *next;
        int r;

        HASH_ITER(hh, agents->nodes, agent, next) {
                const struct agent_view view = view_of(agent, now_ns);

                r = each(&view, userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}

size_t agents_count(const struct agents *agents, enum agent_freshness wanted, uint64_t now_ns)
{
        struct agent_seen *agent, *next;
        size_t n = 0;

        HASH_ITER(hh, agents->nodes, agent, next)
                n += agent->renew_time && freshness(agent, now_ns) == wanted;
        return n;
}

uint64_t agents_deadline(const struct agents *agents, uint64_t now_ns)
{
        struct agent_seen *agent, *next;
        uint64_t first = 0;

        HASH_ITER(hh, agents->nodes, agent, next)
                if (freshness(agent, now_ns) != AGENT_STALE && (first == 0 || agent->seen_ns + agent->duration_ns < first))
                        first = agent->seen_ns + agent->duration_ns;
        return first;
}

const char *agents_silent_longest(const struct agents *agents, uint64_t silence_ns, uint64_t *ret_due_ns)
{
        struct agent_seen *agent, *next;
        const char *node = NULL;

        HASH_ITER(hh, agents->nodes, agent, next) {
                uint64_t due_ns = MAX(agent->seen_ns + silence_ns, agent->ask_ns);

                if (!agent->renew_time || (node && due_ns >= *ret_due_ns))
                        continue;
                node = agent->node;
                *ret_due_ns = due_ns;
        }
        return node;
}

void agents_ask_again(struct agents *agents, const char *node, uint64_t at_ns)
{
        struct agent_seen *agent = agent_find(agents, node);

        if (agent)
                agent->ask_ns = at_ns;
}

bool agents_fell_silent(struct agents *agents, uint64_t now_ns)
{
        struct agent_seen *agent, *next;
        bool fell = false;

        HASH_ITER(hh, agents->nodes, agent, next) {
                if (!agent->renew_time || agent->told || freshness(agent, now_ns) != AGENT_STALE)
                        continue;
                agent->told = true;
                fell = true;
        }
        return fell;
}
