/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/hold.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "base/time.h"
#include "hold/demand.h"
#include "hold/direct.h"
#include "hold/notices.h"
#include "hold/release.h"
#include "hold/state.h"

enum {
        RING_BATCH = 1024, /* records before the event loop gets its turn */
        BEAT_US = 500 * 1000,
        BEAT_ACCURACY_US = 50 * 1000,
        BEATS_PER_READ = 2, /* demand is read from the map once a second */
        TIMER_ACCURACY_US = 1000,
};

#define PLANNED_STOP_NS (20 * NSEC_PER_SEC)

void hold_consumed(struct hold *hold, uint32_t slot, uint64_t packets)
{
        struct lull_demand *demand = hold_hooks_demand(hold->hooks, slot);
        uint64_t published = __atomic_load_n(&demand->published, __ATOMIC_RELAXED);

        __atomic_store_n(&demand->consumed, MIN(demand->consumed + packets, published), __ATOMIC_RELAXED);
}

static void arm_expiry(struct hold *hold, uint64_t deadline_ns)
{
        if (deadline_ns == 0) {
                hold->expiry_armed_ns = 0;
                (void)sd_event_source_set_enabled(hold->expiry_source, SD_EVENT_OFF);
                return;
        }

        hold->expiry_armed_ns = deadline_ns;
        (void)sd_event_source_set_time(hold->expiry_source, (deadline_ns + NSEC_PER_USEC - 1) / NSEC_PER_USEC);
        (void)sd_event_source_set_enabled(hold->expiry_source, SD_EVENT_ONESHOT);
}

void hold_arm_expiry(struct hold *hold)
{
        arm_expiry(hold, parked_deadline(hold->parked));
}

static void drop(struct hold *hold, uint32_t slot, enum daemon_counter reason)
{
        hold->counters[reason]++;
        hold_consumed(hold, slot, 1);
}

static void park(struct hold *hold, struct held_frontend *frontend, const struct lull_packet *packet)
{
        static const enum daemon_counter reasons[] = {
                [PARKED_REPLACED] = DAEMON_DROPPED_REPEATED,       [PARKED_FLOW_FULL] = DAEMON_DROPPED_FLOW_FULL,
                [PARKED_SOURCE_FULL] = DAEMON_DROPPED_SOURCE_FULL, [PARKED_POLICY_FULL] = DAEMON_DROPPED_POLICY_FULL,
                [PARKED_STORE_FULL] = DAEMON_DROPPED_STORE_FULL,   [PARKED_NO_MEMORY] = DAEMON_DROPPED_NO_MEMORY,
        };
        struct parked_flow *flow;
        enum parked_outcome outcome = parked_add(hold->parked, &frontend->queue, packet, &flow);
        uint64_t deadline_ns;

        demand_note_packet(frontend, packet);
        if (outcome >= PARKED_REPLACED) {
                drop(hold, packet->slot, reasons[outcome]);
                return;
        }

        deadline_ns = flow->first_ns + frontend->holding->parked.timeout_ns;
        if (outcome == PARKED_FIRST && (hold->expiry_armed_ns == 0 || deadline_ns < hold->expiry_armed_ns))
                arm_expiry(hold, deadline_ns);
        if (frontend->state == FRONTEND_RELEASING)
                hold_run_soon(hold);
}

/* A slot may have found a new owner since the packet was published: the flow says whether it is still meant. */
static struct held_frontend *find_frontend(const struct hold *hold, const struct lull_packet *packet)
{
        struct held_frontend *frontend = frontends_owner(hold->frontends, packet->slot);
        struct flow flow = flow_from_wire(&packet->flow);

        if (!frontend || !frontend->holding->started ||
            !frontend_matches(&frontend->frontend, &flow.destination, flow.destination_port, flow.protocol))
                return NULL;
        return frontend;
}

/* A packet nobody holds any more goes on at once: its policy is awake. After a restart, until all policies are known, its
 * retransmission finds the policy that it belongs to; but for no longer than a planned stop may take. */
static int on_packet(void *userdata, void *data, size_t size)
{
        struct hold *hold = userdata;
        const struct lull_packet *packet = data;
        struct held_frontend *frontend;

        if (size < sizeof(*packet) || packet->length > size - sizeof(*packet) || packet->slot >= LULL_FRONTENDS_MAX)
                return 0;
        if (packet->flags & LULL_PACKET_REFUSED) {
                direct_refused(hold, packet);
                return ++hold->consumed_now < RING_BATCH ? 0 : -EAGAIN;
        }

        frontend = find_frontend(hold, packet);
        if (frontend) {
                park(hold, frontend, packet);
        } else if (!hold->settled && now_monotonic_ns() < hold->began_ns + PLANNED_STOP_NS) {
                drop(hold, packet->slot, DAEMON_DROPPED_UNSETTLED);
        } else {
                release_packet(hold, packet, DAEMON_RELEASED_LATE);
                hold_consumed(hold, packet->slot, 1);
        }
        return ++hold->consumed_now < RING_BATCH ? 0 : -EAGAIN; /* a negative value ends ring_buffer__consume() */
}

void hold_consume_ring(struct hold *hold)
{
        hold->consumed_now = 0;
        (void)ring_buffer__consume(hold->ring);
}

static int on_ring(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct hold *hold = userdata;

        hold_consume_ring(hold);
        notices_flush(hold);
        return 0;
}

static void beat(struct hold *hold)
{
        __atomic_store_n(&hold_hooks_control(hold->hooks)->heartbeat_ns, now_monotonic_ns(), __ATOMIC_RELAXED);
}

/* Every packet that is demand ends in one of these verdicts: while their sum stands still, no entry of the map needs to be looked at. */
static uint64_t count_demand(const struct hold *hold)
{
        static const enum lull_counter verdicts[] = {
                LULL_COUNTER_HELD,       LULL_COUNTER_HELD_PLANNED,   LULL_COUNTER_HELD_RING_FULL, LULL_COUNTER_HELD_UNREADABLE,
                LULL_COUNTER_PASS_QUOTA, LULL_COUNTER_PASS_TOO_LARGE,
        };
        uint64_t sum = 0;

        for (size_t i = 0; i < ELEMENTSOF(verdicts); i++)
                sum += hold_hooks_counter(hold->hooks, verdicts[i]);
        return sum;
}

static void read_demand(struct hold *hold)
{
        uint64_t counted = count_demand(hold);

        if (counted == hold->demand_counted)
                return;

        hold->demand_counted = counted;
        demand_read_all(hold);
}

static int on_beat(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct hold *hold = userdata;

        beat(hold);
        if (++hold->beats % BEATS_PER_READ == 0)
                read_demand(hold);
        (void)sd_event_source_set_time_relative(source, BEAT_US);
        notices_flush(hold);
        return 0;
}

static int on_expiry(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct hold *hold = userdata;

        arm_expiry(hold, release_expired(hold, now_monotonic_ns()));
        if (!TAILQ_EMPTY(&hold->releasing))
                hold_run_soon(hold); /* what expired may have been the last */
        notices_flush(hold);
        return 0;
}

static int on_release(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct hold *hold = userdata;

        release_run(hold);
        notices_flush(hold);
        return 0;
}

static int on_urgent(sd_event_source *source, void *userdata)
{
        return on_release(source, 0, userdata);
}

void hold_run_soon(struct hold *hold)
{
        (void)sd_event_source_set_enabled(hold->urgent_source, SD_EVENT_ONESHOT);
}

static void beat_on(struct hold *hold)
{
        beat(hold);
        (void)sd_event_source_set_time_relative(hold->beat_source, BEAT_US);
        (void)sd_event_source_set_enabled(hold->beat_source, SD_EVENT_ON);
}

/* The hook takes a daemon without a heartbeat for dead, so the first beat comes before the first packet. */
int hold_begin(struct hold *hold)
{
        int r;

        if (hold->n_started == 0) {
                beat_on(hold);
                r = hold_hooks_attach(hold->hooks);
                if (r < 0)
                        return r;
        }
        hold->n_started++;
        return 0;
}

static void detach(struct hold *hold)
{
        hold_hooks_detach(hold->hooks);
        (void)sd_event_source_set_enabled(hold->beat_source, SD_EVENT_OFF);
}

void hold_end(struct hold *hold)
{
        if (--hold->n_started == 0 && hold->settled)
                detach(hold);
}

void hold_settle(struct hold *hold)
{
        static const struct frontends_sweep sweep = { .wants_key = holding_wants_key, .wants_rule = holding_wants_rule };

        hold->settled = true;
        frontends_sweep(hold->frontends, &sweep);
        if (hold->n_started == 0)
                detach(hold);
}

static int add_sources(struct hold *hold)
{
        int r;

        r = sd_event_add_io(hold->event, &hold->ring_source, ring_buffer__epoll_fd(hold->ring), EPOLLIN, on_ring, hold);
        if (r >= 0)
                r = sd_event_source_set_priority(hold->ring_source, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = sd_event_add_defer(hold->event, &hold->urgent_source, on_urgent, hold);
        if (r >= 0)
                r = sd_event_source_set_priority(hold->urgent_source, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = sd_event_source_set_enabled(hold->urgent_source, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(hold->event, &hold->beat_source, CLOCK_MONOTONIC, 0, BEAT_ACCURACY_US, on_beat, hold);
        if (r >= 0)
                r = sd_event_source_set_enabled(hold->beat_source, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(hold->event, &hold->expiry_source, CLOCK_MONOTONIC, 0, TIMER_ACCURACY_US, on_expiry, hold);
        if (r >= 0)
                r = sd_event_source_set_enabled(hold->expiry_source, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(hold->event, &hold->release_source, CLOCK_MONOTONIC, 0, 1, on_release, hold);
        if (r >= 0)
                r = sd_event_source_set_enabled(hold->release_source, SD_EVENT_OFF);
        return r;
}

/* Each step logs what failed; the BPF side logs its own. */
static int open_all(struct hold *hold, const struct hold_config *config)
{
        const char *step = NULL;
        int r;

        r = hold_hooks_new(config->bpffs, config->translation, &hold->hooks);
        if (r < 0)
                return r;

        if ((r = frontends_new(hold->hooks, &hold->frontends)) < 0)
                step = "read the frontends of an earlier daemon";
        else if ((r = parked_new(&hold->parked)) < 0)
                step = "allocate the store of parked packets";
        else if ((r = injector_new(hold->hooks, &hold->injector)) < 0)
                step = "open the raw sockets that hand packets on";
        else if ((r = sockets_new(&hold->sockets)) < 0)
                step = "open a socket for sock_diag";
        else if ((r = local_new(hold->event, hold_hooks_map(hold->hooks, HOLD_MAP_LOCAL), &hold->local)) < 0)
                step = "follow the local addresses";
        else if (config->translation && (r = translation_new(hold, config->translation, &hold->translation)) < 0)
                step = "follow connection tracking";
        else if (!(hold->ring = ring_buffer__new(hold_hooks_map(hold->hooks, HOLD_MAP_EVENTS), on_packet, hold, NULL)) &&
                 (r = -errno))
                step = "map the ring buffer";
        else if ((r = add_sources(hold)) < 0)
                step = "add to the event loop";
        if (r < 0)
                log_error("cannot %s: %s", step, strerror(-r));
        return r;
}

static struct hold *hold_destroy(struct hold *hold, bool keep_pins)
{
        struct holding *holding;

        while ((holding = TAILQ_FIRST(&hold->holdings))) {
                notices_drop(holding);
                TAILQ_REMOVE(&hold->holdings, holding, link);
                holding->hold = NULL;
        }
        sd_event_source_disable_unref(hold->ring_source);
        sd_event_source_disable_unref(hold->beat_source);
        sd_event_source_disable_unref(hold->expiry_source);
        sd_event_source_disable_unref(hold->release_source);
        sd_event_source_disable_unref(hold->urgent_source);
        ring_buffer__free(hold->ring);
        translation_free(hold->translation);
        local_free(hold->local);
        sockets_free(hold->sockets);
        injector_free(hold->injector);
        parked_free(hold->parked);
        frontends_free(hold->frontends);
        hold_hooks_free(hold->hooks, keep_pins);
        sd_event_unref(hold->event);
        free(hold);
        return NULL;
}

int hold_new(const struct hold_config *config, const struct hold_callbacks *callbacks, void *userdata, struct hold **ret_hold)
{
        struct hold *hold = calloc(1, sizeof(*hold));
        int r;

        if (!hold) {
                log_error("cannot begin to hold: out of memory");
                return -ENOMEM;
        }

        hold->event = sd_event_ref(config->event);
        hold->callbacks = *callbacks;
        hold->userdata = userdata;
        TAILQ_INIT(&hold->holdings);
        TAILQ_INIT(&hold->releasing);
        TAILQ_INIT(&hold->pending);
        TAILQ_INIT(&hold->notices);
        r = open_all(hold, config);
        if (r < 0) {
                hold_destroy(hold, true); /* what an earlier daemon left stays for the next attempt */
                return r;
        }

        hold->began_ns = now_monotonic_ns();
        hold->left_heartbeat_ns = hold_hooks_control(hold->hooks)->heartbeat_ns;
        beat_on(hold);
        hold_hooks_control(hold->hooks)->hold_until_ns = 0;
        *ret_hold = hold;
        return 0;
}

struct hold *hold_free(struct hold *hold)
{
        struct holding *holding;

        if (!hold)
                return NULL;

        TAILQ_FOREACH(holding, &hold->holdings, link)
                holding_stop(holding);
        hold->settled = true;
        hold_consume_ring(hold);
        return hold_destroy(hold, false);
}

struct hold *hold_suspend(struct hold *hold)
{
        struct holding *holding;

        if (!hold)
                return NULL;

        beat(hold);
        if (hold->settled) /* else nothing here is known to be asleep, and one restart after the other would never fail open */
                __atomic_store_n(&hold_hooks_control(hold->hooks)->hold_until_ns, now_monotonic_ns() + PLANNED_STOP_NS,
                                 __ATOMIC_RELAXED);
        TAILQ_FOREACH(holding, &hold->holdings, link) {
                release_none(holding, DAEMON_DROPPED_RESTART);
                holding->started = false;
        }
        return hold_destroy(hold, true);
}
