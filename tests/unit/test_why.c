/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "serve/why.h"
#include "unit/quoted_json.h"

#define NAME_AND_LISTEN "'name': 'web', 'listen': ['tcp/0.0.0.0:8080']"
#define WAKE_BY_PACKET                                                                                                             \
        "{'time': '2026-01-31T12:00:03.000Z', 'cause': 'packet', 'source': '192.0.2.7:40000',"                                     \
        " 'flow': 'tcp 192.0.2.7:40000 > 192.0.2.1:8080', 'process': 'curl', 'pid': 4242, 'cgroup': '/user.slice',"                \
        " 'phases': {'detected': 0.0001, 'requested': 0.0002, 'started': 0.0012, 'ready': 0.2101, 'released': 0.2104,"             \
        " 'answered': 0.2110}}"
#define SLEEP_BY_IDLENESS                                                                                                          \
        "{'time': '2026-01-31T11:50:00.250Z', 'cause': 'idle', 'reason': 'no activity for 5m2s', 'stop_seconds': 0.02}"

struct telling {
        const char *policy; /* ' for " */
        const char *text;   /* NULL: refused */
};

static const struct telling tellings[] = {
        /* Awake */
        { "{" NAME_AND_LISTEN ", 'phase': 'Awake', 'since': '2026-01-31T12:00:03.210Z', 'since_seconds': 302,"
          " 'idle': {'verdict': 'busy', 'reason': 'an unanswered request from 192.0.2.9:5555 since 12s',"
          " 'required_seconds': 300, 'factor': 1, 'sleeps_in_seconds': null},"
          " 'last_wake': " WAKE_BY_PACKET ", 'last_sleep': " SLEEP_BY_IDLENESS ", 'conditions': []}",
          "web is Awake since 12:00:03 UTC (5m2s). A packet from 192.0.2.7:40000 (curl, pid 4242, /user.slice) to tcp/192.0.2.1:8080 "
          "woke it: requested after 0.2ms, started 1.2ms, listening 210.1ms, first packet released 210.4ms, answered 211ms. It is "
          "busy: an unanswered request from 192.0.2.9:5555 since 12s; it sleeps after 5m without activity. Before that it slept from "
          "11:50:00 UTC to 12:00:03 UTC (10m2s): no activity for 5m2s." },
        { "{" NAME_AND_LISTEN ", 'phase': 'Awake', 'since': '2026-01-30T12:00:03.210Z', 'since_seconds': 86400,"
          " 'idle': {'verdict': 'idle', 'reason': 'no activity for 3m20s', 'required_seconds': 300, 'factor': 1,"
          " 'sleeps_in_seconds': 100}, 'last_wake': null, 'last_sleep': null, 'conditions': []}",
          "web is Awake since 2026-01-30 12:00:03 UTC (1d). It is idle: no activity for 3m20s; unless something moves it sleeps in "
          "1m40s." },
        { "{" NAME_AND_LISTEN ", 'phase': 'Awake', 'since': '2026-01-31T12:00:00.000Z', 'since_seconds': 60,"
          " 'idle': {'verdict': 'unknown', 'reason': 'its sockets cannot be read: Permission denied', 'required_seconds': 300},"
          " 'last_wake': {'time': '2026-01-31T12:00:00.000Z', 'cause': 'operator', 'phases': {'started': 0.5, 'ready': 12.5}}}",
          "web is Awake since 12:00:00 UTC (1m). An operator woke it: started after 500ms, listening 12.5s. Whether it is idle cannot be "
          "known: its sockets cannot be read: Permission denied, so it stays awake." },
        { "{" NAME_AND_LISTEN ", 'phase': 'Awake', 'since': '2026-01-31T12:00:00.000Z', 'since_seconds': 60,"
          " 'idle': {'verdict': 'busy', 'reason': '0.6 cores used over the last minute', 'required_seconds': 1200, 'factor': 4},"
          " 'last_wake': {'time': '2026-01-31T11:00:00.000Z', 'cause': 'started', 'phases': {'ready': null}},"
          " 'conditions': [{'type': 'Flapping', 'reason': 'ClientReconnects', 'message': '192.0.2.9 reconnects at once',"
          " 'since': '2026-01-31T11:30:00.000Z'}]}",
          "web is Awake since 12:00:00 UTC (1m). Somebody else started it at 11:00:00 UTC. It is busy: 0.6 cores used over the last "
          "minute; it sleeps after 20m without activity (4 times idle.after, because a client that the sleep cut off woke it again at "
          "once). Condition Flapping since 11:30:00 UTC (ClientReconnects): 192.0.2.9 reconnects at once." },
        { "{" NAME_AND_LISTEN ", 'phase': 'Awake', 'since': '2026-01-31T12:00:00.000Z', 'since_seconds': 60, 'dry_run': true,"
          " 'idle': {'verdict': 'idle', 'reason': 'no activity for 6m', 'required_seconds': 300, 'sleeps_in_seconds': null}}",
          "web is Awake since 12:00:00 UTC (1m), in a dry run. It is idle: no activity for 6m; in a dry run it is never put to sleep, "
          "else it would be after 5m without activity." },

        /* Sleeping */
        { "{" NAME_AND_LISTEN ", 'phase': 'Sleeping', 'since': '2026-01-31T12:10:00.000Z', 'since_seconds': 0.05,"
          " 'idle': {'verdict': 'idle', 'reason': 'no activity for 5m2s'}, 'last_wake': " WAKE_BY_PACKET "}",
          "web is Sleeping since 12:10:00 UTC (50ms). It is about to be put to sleep: no activity for 5m2s; a packet or any activity "
          "before it stops keeps it awake. It was last woken at 12:00:03 UTC by a packet from 192.0.2.7:40000 (curl, pid 4242, "
          "/user.slice) to tcp/192.0.2.1:8080, answered after 211ms." },

        /* Asleep */
        { "{" NAME_AND_LISTEN ", 'phase': 'Asleep', 'since': '2026-01-31T11:50:00.270Z', 'since_seconds': 0,"
          " 'last_sleep': " SLEEP_BY_IDLENESS ", 'last_wake': {'time': '2026-01-30T11:00:00.000Z', 'cause': 'operator'}}",
          "web is Asleep since 11:50:00 UTC (0s). It was put to sleep: no activity for 5m2s; stopping it took 20ms. It was last woken at "
          "2026-01-30 11:00:00 UTC by an operator. The next packet to tcp/0.0.0.0:8080 wakes it." },
        { "{'name': 'dns', 'listen': ['tcp/127.0.0.1:53', 'udp/127.0.0.1:53', 'udp/[::1]:53'], 'phase': 'Asleep',"
          " 'since': '2026-01-31T12:00:00.000Z', 'since_seconds': 7.25, 'last_wake': null, 'last_sleep': null}",
          "dns is Asleep since 12:00:00 UTC (7.3s). Nobody has asked for it since lulld started. The next packet to tcp/127.0.0.1:53, "
          "udp/127.0.0.1:53 or udp/[::1]:53 wakes it." },
        { "{" NAME_AND_LISTEN ", 'phase': 'Asleep', 'since': '2026-01-31T12:00:00.000Z', 'since_seconds': 60,"
          " 'last_sleep': {'time': '2026-01-31T12:00:00.000Z', 'cause': 'exited', 'reason': 'killed by SIGSEGV',"
          " 'stop_seconds': null}, 'last_wake': {'time': 'nonsense'},"
          " 'conditions': [{'type': 'WakeFailed', 'reason': 'ProcessExited', 'message': 'exited with status 1'}, {}]}",
          "web is Asleep since 12:00:00 UTC (1m). Its process ended by itself: killed by SIGSEGV. Condition WakeFailed (ProcessExited): "
          "exited with status 1. The next packet to tcp/0.0.0.0:8080 wakes it." },
        { "{" NAME_AND_LISTEN ", 'phase': 'Asleep', 'since': '2026-01-31T12:00:00.000Z', 'since_seconds': 60,"
          " 'last_sleep': {'time': '2026-01-31T12:00:00.000Z', 'cause': 'operator', 'reason': '', 'stop_seconds': 10.04}}",
          "web is Asleep since 12:00:00 UTC (1m). An operator put it to sleep; stopping it took 10s. The next packet to "
          "tcp/0.0.0.0:8080 wakes it." },

        /* Waking */
        { "{" NAME_AND_LISTEN ", 'phase': 'Waking', 'since': '2026-01-31T12:00:03.000Z', 'since_seconds': 1.5,"
          " 'target': {'state': 'running', 'pid': 77}, 'held': {'parked': 3}, 'last_sleep': null,"
          " 'last_wake': {'time': '2026-01-31T12:00:03.000Z', 'cause': 'packet', 'source': '[2001:db8::7]:40000',"
          " 'flow': 'udp [2001:db8::7]:40000 > [2001:db8::1]:53', 'process': null, 'pid': 0, 'cgroup': null,"
          " 'phases': {'requested': 0.0002, 'started': 0.0012, 'ready': null, 'released': null, 'answered': null}}}",
          "web is Waking since 12:00:03 UTC (1.5s). A packet from [2001:db8::7]:40000 to udp/[2001:db8::1]:53 woke it: requested after "
          "0.2ms, started 1.2ms. Its process runs (pid 77). Until something listens on tcp/0.0.0.0:8080, first packets are held: 3 "
          "now." },
        { "{" NAME_AND_LISTEN ", 'phase': 'Waking', 'since': '2026-01-31T12:00:03.000Z', 'since_seconds': 1.5,"
          " 'target': {'state': 'delayed', 'pid': 0}, 'held': {'parked': 1},"
          " 'last_wake': {'time': '2026-01-31T12:00:03.000Z', 'cause': 'packet', 'pid': 9, 'phases': null}}",
          "web is Waking since 12:00:03 UTC (1.5s). A packet (pid 9) woke it. Its process keeps exiting, so the next start is delayed. "
          "Until something listens on tcp/0.0.0.0:8080, first packets are held: 1 now." },

        { "{" NAME_AND_LISTEN ", 'phase': 'Waking', 'since': '2026-01-31T12:00:03.000Z', 'since_seconds': 90,"
          " 'held': {'holding': false, 'parked': 0}, 'last_wake': null,"
          " 'conditions': [{'type': 'WakeFailed', 'reason': 'NotReady', 'message': 'nothing listens after 1m'}]}",
          "web is Waking since 12:00:03 UTC (1m30s). After the failed wake nothing is held for a while: clients are refused until it is "
          "ready. Condition WakeFailed (NotReady): nothing listens after 1m." },

        /* Nothing to tell */
        { "{'name': 'web', 'phase': 'Awake', 'since': '2026-01-31T12:00:00.000Z', 'since_seconds': 1}",
          "web is Awake since 12:00:00 UTC (1s)." },
        { "{'name': 'web', 'phase': 'Awake', 'since': 'yesterday', 'since_seconds': 1}", NULL },
        { "{'name': 'web', 'phase': 'Awake', 'since': '2026-01-31T12:00:00.000Z'}", NULL },
        { "{'phase': 'Awake', 'since': '2026-01-31T12:00:00.000Z', 'since_seconds': 1}", NULL },
        { "{'name': 'web', 'since': '2026-01-31T12:00:00.000Z', 'since_seconds': 1}", NULL },
        { "[]", NULL },
};

static void a_policy_is_told_as_one_paragraph(void **state)
{
        for (size_t i = 0; i < ELEMENTSOF(tellings); i++) {
                _cleanup_(json_decrefp) json_t *policy = json(tellings[i].policy);
                _cleanup_(freep) char *text = NULL;

                assert_int_equal(why_text(policy, &text), tellings[i].text ? 0 : -EINVAL);
                if (tellings[i].text)
                        assert_string_equal(text, tellings[i].text);
                else
                        assert_null(text);
        }
}

/* The daemon must survive whatever it is given: each member in turn is missing, null, or of another type. */
static void a_missing_or_odd_member_is_left_out(void **state)
{
        _cleanup_(json_decrefp) json_t *policy = json(tellings[0].policy);
        const char *name;
        json_t *member;
        void *next;

        json_object_foreach_safe(policy, next, name, member)
        {
                json_t *odd[] = { json_null(), json_integer(7), json_string("odd"), json_pack("[n]"), json_pack("{s:[]}", "time") };

                for (size_t i = 0; i < ELEMENTSOF(odd); i++) {
                        _cleanup_(json_decrefp) json_t *changed = json_copy(policy);
                        _cleanup_(freep) char *text = NULL;

                        assert_int_equal(json_object_set_new(changed, name, odd[i]), 0);
                        if (why_text(changed, &text) == 0)
                                assert_non_null(text);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_policy_is_told_as_one_paragraph),
                cmocka_unit_test(a_missing_or_odd_member_is_left_out),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
