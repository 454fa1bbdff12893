/* SPDX-License-Identifier: Apache-2.0 */
/* Three candidates and a store with true time of their own, under everything that may go wrong between them. */
#include "unit/election_rules.h"

#define STEP_NS (20 * NSEC_PER_MSEC)
#define FOREVER UINT64_MAX

enum { CANDIDATES = 3, MESSAGES_MAX = 64, WORLDS = 150 };

struct store {
        bool exists;
        struct election_record record;
        uint64_t version;
};

/* A request on its way to the store, and then its answer on the way back; either may arrive long after anybody waits for it. */
struct message {
        bool used, answered;
        int to;
        unsigned life;    /* of the candidate that sent it */
        uint64_t request; /* which of its requests */
        enum election_action action;
        struct election_record record;
        uint64_t guard, version;
        enum election_event result;
        uint64_t arrives_ns, returns_ns; /* true time; FOREVER: lost */
};

struct candidate {
        struct election_policy policy;
        unsigned life;
        uint64_t born_ns;  /* true time */
        uint64_t ahead_ns; /* what its clock showed then */
        double rate;       /* of its clock */
        uint64_t dead_until, paused_until;
        uint64_t request, gives_up_ns; /* of the request in flight, by its clock */
        uint64_t version;              /* of what it read or wrote last */
};

struct world {
        uint64_t random;
        uint64_t now_ns; /* true time */
        bool calm;
        double harshness; /* 0 to 1 */
        struct store store;
        struct message messages[MESSAGES_MAX];
        struct candidate candidates[CANDIDATES];
        unsigned takeovers, conflicts;
        uint64_t led_ns;
};

static double chance(struct world *world)
{
        world->random ^= world->random << 13;
        world->random ^= world->random >> 7;
        world->random ^= world->random << 17;
        return (double)(world->random >> 11) / (double)(UINT64_C(1) << 53);
}

static uint64_t between(struct world *world, uint64_t least, uint64_t most)
{
        return least + (uint64_t)(chance(world) * (double)(most - least));
}

static uint64_t clock_of(const struct world *world, const struct candidate *candidate)
{
        return candidate->ahead_ns + (uint64_t)((double)(world->now_ns - candidate->born_ns) * candidate->rate);
}

static struct election_moment moment_of(struct world *world, const struct candidate *candidate)
{
        return (struct election_moment){
                .now_ns = clock_of(world, candidate),
                .realtime_us = between(world, 1, UINT64_C(4000000000000000)), /* wall clocks are worth nothing */
                .chance = chance(world),
        };
}

static void be_born(struct world *world, int index)
{
        struct candidate *candidate = &world->candidates[index];
        char identity[32];

        snprintf(identity, sizeof(identity), "%c-%u", 'a' + index, candidate->life + 1);
        *candidate = (struct candidate){
                .policy = policy_of(identity),
                .life = candidate->life + 1,
                .born_ns = world->now_ns,
                .ahead_ns = between(world, 1, 1000000 * NSEC_PER_SEC),
                .rate = 0.9 + 0.2 * chance(world),
        };
}

static uint64_t journey(struct world *world)
{
        double fate = chance(world);

        if (world->calm || fate < 1 - 0.3 * world->harshness)
                return between(world, NSEC_PER_MSEC, 200 * NSEC_PER_MSEC);
        if (fate < 1 - 0.1 * world->harshness)
                return between(world, 0, 20 * NSEC_PER_SEC);
        return FOREVER / 4;
}

static void carry_out(struct world *world, int index, enum election_action action)
{
        struct candidate *candidate = &world->candidates[index];
        struct message *message = world->messages;

        if (action == ELECTION_WAIT || action == ELECTION_DONE)
                return;

        candidate->request++;
        candidate->gives_up_ns = clock_of(world, candidate) + election_policy_patience_ns(&candidate->policy);
        while (message < world->messages + MESSAGES_MAX && message->used)
                message++;
        assert_true(message < world->messages + MESSAGES_MAX);
        *message = (struct message){
                .used = true,
                .to = index,
                .life = candidate->life,
                .request = candidate->request,
                .action = action,
                .record = candidate->policy.writing,
                .guard = candidate->version,
                .arrives_ns = world->now_ns + journey(world),
        };
}

static bool is_current(const struct world *world, const struct message *message)
{
        const struct candidate *candidate = &world->candidates[message->to];

        return message->life == candidate->life && message->request == candidate->request;
}

static void store_write(struct world *world, struct message *message)
{
        struct store *store = &world->store;
        bool matches = message->action == ELECTION_CREATE ? !store->exists : message->guard == store->version;

        if (message->action == ELECTION_UPDATE && !store->exists) {
                message->result = ELECTION_ABSENT;
                return;
        }
        if (!matches) {
                message->result = ELECTION_CONFLICT;
                world->conflicts++;
                return;
        }
        if (store->exists && strcmp(store->record.holder, message->record.holder) != 0) {
                world->takeovers++;
                if (message->record.holder[0] != '\0')
                        assert_int_equal(message->record.transitions, store->record.transitions + 1);
        }
        store->exists = true;
        store->record = message->record;
        store->version++;
        message->result = ELECTION_WRITTEN;
}

static void answer(struct world *world, struct message *message)
{
        message->answered = true;
        message->returns_ns = world->now_ns + journey(world);
        if (message->action == ELECTION_READ) {
                message->result = world->store.exists ? ELECTION_RECORD : ELECTION_ABSENT;
                message->record = world->store.record;
        } else {
                store_write(world, message);
        }
        message->version = world->store.version;
}

static void deliver(struct world *world, struct message *message)
{
        struct candidate *candidate = &world->candidates[message->to];
        struct election_moment moment = moment_of(world, candidate);

        if (message->result == ELECTION_RECORD || message->result == ELECTION_WRITTEN)
                candidate->version = message->version;
        candidate->request++;
        carry_out(world, message->to,
                  election_policy_step(&candidate->policy, message->result,
                                       message->result == ELECTION_RECORD ? &message->record : NULL, &moment));
}

static bool is_awake(const struct world *world, const struct candidate *candidate)
{
        return world->now_ns >= candidate->dead_until && world->now_ns >= candidate->paused_until;
}

static void move_messages(struct world *world)
{
        for (struct message *message = world->messages; message < world->messages + MESSAGES_MAX; message++) {
                if (message->used && !message->answered && world->now_ns >= message->arrives_ns)
                        answer(world, message);
                if (!message->used || (!is_current(world, message) && message->answered)) {
                        message->used = false;
                } else if (message->answered && world->now_ns >= message->returns_ns &&
                           is_awake(world, &world->candidates[message->to])) {
                        message->used = false;
                        deliver(world, message);
                } else if (message->arrives_ns >= FOREVER / 4 && !is_current(world, message)) {
                        message->used = false;
                }
        }
}

/* What had waited in the sockets of a paused process is handled first, then its timers. */
static void move_candidate(struct world *world, int index)
{
        struct candidate *candidate = &world->candidates[index];
        struct election_moment moment = moment_of(world, candidate);
        bool in_flight = candidate->policy.in_flight != ELECTION_WAIT;

        if (!is_awake(world, candidate))
                return;
        if (in_flight && moment.now_ns >= candidate->gives_up_ns) {
                candidate->request++;
                carry_out(world, index, election_policy_step(&candidate->policy, ELECTION_FAILED, NULL, &moment));
        } else if (moment.now_ns >= election_policy_due_ns(&candidate->policy, moment.now_ns)) {
                carry_out(world, index, election_policy_step(&candidate->policy, ELECTION_TIMER, NULL, &moment));
        }
}

static void let_something_happen(struct world *world)
{
        int index = (int)(chance(world) * CANDIDATES);
        struct candidate *candidate = &world->candidates[index];
        double what = chance(world) / world->harshness;

        if (what < 0.0004) {
                be_born(world, index);
                candidate->dead_until = world->now_ns + between(world, 0, 10 * NSEC_PER_SEC);
        } else if (what < 0.003) {
                candidate->paused_until = world->now_ns + between(world, 0, 25 * NSEC_PER_SEC);
        } else if (what < 0.0033 && is_awake(world, candidate)) {
                struct election_moment moment = moment_of(world, candidate);

                candidate->request++;
                carry_out(world, index, election_policy_release(&candidate->policy, &moment));
        } else if (what < 0.004 && candidate->policy.release_tries > 0 && candidate->policy.in_flight == ELECTION_WAIT) {
                be_born(world, index);
        }
}

/* A dead one does not act, a paused one may at any moment. */
static int the_leader(struct world *world)
{
        int leader = -1;

        for (int index = 0; index < CANDIDATES; index++) {
                const struct candidate *candidate = &world->candidates[index];

                if (world->now_ns < candidate->dead_until ||
                    !election_policy_may_act(&candidate->policy, clock_of(world, candidate)))
                        continue;
                assert_int_equal(leader, -1); /* the fencing rule */
                leader = index;
        }
        return leader;
}

static int advance(struct world *world)
{
        int leader;

        world->now_ns += STEP_NS;
        if (!world->calm)
                let_something_happen(world);
        move_messages(world);
        for (int index = 0; index < CANDIDATES; index++)
                move_candidate(world, index);

        leader = the_leader(world);
        if (leader >= 0)
                world->led_ns += STEP_NS;
        return leader;
}

static int run_for(struct world *world, uint64_t duration_ns)
{
        uint64_t end_ns = world->now_ns + duration_ns;
        int leader = -1;

        while (world->now_ns < end_ns)
                leader = advance(world);
        return leader;
}

/* The store can be reached again, nobody is paused, and nothing from before arrives any more. */
static void calm_down(struct world *world)
{
        world->calm = true;
        for (struct message *message = world->messages; message < world->messages + MESSAGES_MAX; message++)
                message->used = false;
        for (int index = 0; index < CANDIDATES; index++) {
                struct candidate *candidate = &world->candidates[index];

                candidate->dead_until = candidate->paused_until = 0;
                if (candidate->policy.release_tries > 0)
                        be_born(world, index);
        }
}

static uint64_t await_leader(struct world *world)
{
        uint64_t began_ns = world->now_ns;

        while (advance(world) < 0)
                assert_true(world->now_ns - began_ns < 2 * LEASE_NS);
        return world->now_ns - began_ns;
}

static void world_init(struct world *world, uint64_t seed)
{
        *world = (struct world){ .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .store.version = 1, .now_ns = NSEC_PER_SEC };
        world->harshness = 0.1 + 0.9 * chance(world);
        for (int index = 0; index < CANDIDATES; index++)
                be_born(world, index);
}

static void no_two_may_act_at_once_whatever_is_killed_paused_late_or_lost(void **state)
{
        unsigned takeovers = 0, conflicts = 0;
        uint64_t led_ns = 0;

        for (uint64_t seed = 1; seed <= WORLDS; seed++) {
                struct world world;

                world_init(&world, seed);
                run_for(&world, 1200 * NSEC_PER_SEC);
                takeovers += world.takeovers;
                conflicts += world.conflicts;
                led_ns += world.led_ns;
        }
        /* It was worth something: the Lease went from hand to hand, and somebody led for a good part of the time. */
        assert_true(takeovers > 10 * WORLDS);
        assert_true(conflicts > WORLDS);
        assert_true(led_ns > WORLDS * 300 * NSEC_PER_SEC);
}

static void someone_leads_within_two_lease_durations_of_the_stores_return_and_stays(void **state)
{
        for (uint64_t seed = 1; seed <= WORLDS; seed++) {
                struct world world;

                world_init(&world, seed);
                for (int round = 0; round < 4; round++) {
                        int leader;

                        world.calm = false;
                        run_for(&world, 60 * NSEC_PER_SEC);
                        calm_down(&world);
                        await_leader(&world);
                        leader = run_for(&world, 2 * LEASE_NS);
                        for (int step = 0; step < 3000; step++)
                                assert_int_equal(advance(&world), leader);
                }
        }
}

static void a_lease_given_back_is_taken_without_waiting_for_its_end(void **state)
{
        for (uint64_t seed = 1; seed <= WORLDS; seed++) {
                struct election_moment moment;
                struct world world;
                int leader;

                world_init(&world, seed);
                calm_down(&world);
                await_leader(&world);
                leader = run_for(&world, 20 * NSEC_PER_SEC);
                moment = moment_of(&world, &world.candidates[leader]);
                world.candidates[leader].request++;
                carry_out(&world, leader, election_policy_release(&world.candidates[leader].policy, &moment));
                assert_int_equal(the_leader(&world), -1);
                /* retryPeriod with all of its jitter, by the slowest clock, and the requests' way */
                assert_true(await_leader(&world) < (uint64_t)(2.2 / 0.9 * (double)RETRY_NS) + 2 * NSEC_PER_SEC);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_two_may_act_at_once_whatever_is_killed_paused_late_or_lost),
                cmocka_unit_test(someone_leads_within_two_lease_durations_of_the_stores_return_and_stays),
                cmocka_unit_test(a_lease_given_back_is_taken_without_waiting_for_its_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
