# SPDX-License-Identifier: Apache-2.0
"""Endpoints that do not answer, go away or come late, and daemons that end: what is held is given to another, and who asked notices nothing."""
import errno
import signal

import pytest

from machine.client import finish
from translated import FAMILIES, NODE_PORT, POD_PORT, PORT, assert_greeted, assert_served, begin_held, node_port, service


def refusing(cluster, endpoint):
    """Nobody listens: resets come back."""


def swallowing(cluster, endpoint):
    endpoint.swallow()


def unreachable(cluster, endpoint):
    """The node itself says so, by ICMP."""
    node = cluster.node if endpoint.here else cluster.node_2
    node.ip(f"route replace unreachable {endpoint.addresses[4]}/32", f"route replace unreachable {endpoint.addresses[6]}/128 metric 1")


@pytest.mark.parametrize("way_to_die", [refusing, swallowing, unreachable])
@pytest.mark.parametrize("client, where", [("client", "here"), ("client", "there"), ("node", "here"), ("node", "there")])
@pytest.mark.parametrize("family", FAMILIES)
def test_flows_to_a_dead_endpoint_go_to_another_unnoticed(cluster, hold, client, where, way_to_die, family):
    holder, dead, alive = hold().sleep(service(family)), cluster.endpoints[where], cluster.endpoints["here2"]
    attempts = begin_held(cluster, holder, 4, client, family=family)
    alive.listen(family)
    way_to_die(cluster, dead)

    holder.do("endpoints", 0, dead.where(family), alive.where(family))

    assert_greeted(attempts)
    assert dead.addresses[family] not in cluster.entries()


@pytest.mark.parametrize("way_to_die", [refusing, swallowing, unreachable])
def test_a_masqueraded_flow_to_a_dead_endpoint_goes_to_another_unnoticed(cluster, hold, way_to_die):
    holder, dead, alive = hold().sleep(node_port("masquerade")), cluster.endpoints["there"], cluster.endpoints["here"]
    attempts = begin_held(cluster, holder, 4, "outside", NODE_PORT)
    alive.listen()
    way_to_die(cluster, dead)

    holder.do("endpoints", 0, dead.where(4), alive.where(4))

    assert_served(attempts)


def test_a_flow_waits_for_its_only_endpoint_to_come_alive(cluster, hold):
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    attempt = cluster.clients["client"].begin(PORT)
    holder.await_parked(1)
    holder.do("endpoints", 0, endpoint.where(4))
    holder.await_state(lambda state: state["counters"]["reinjected/other-endpoint"] >= 3)
    assert attempt.under_way

    endpoint.listen()

    assert_served([attempt])


def test_a_flow_that_no_endpoint_takes_gets_its_refusal_at_the_hold_timeout(cluster, hold):
    holder, endpoint = hold(), cluster.endpoints["here"]
    holder.do("timeout", 500)
    holder.sleep(service(4))
    attempt = cluster.clients["client"].begin(PORT)
    holder.await_parked(1)
    holder.do("endpoints", 0, endpoint.where(4))

    finish([attempt], 5)

    assert attempt.error == errno.ECONNREFUSED
    assert 0.4 < attempt.seconds
    assert endpoint.addresses[4] not in cluster.entries()
    assert holder.state()["list"] == []


def test_an_endpoint_that_cannot_be_reached_keeps_no_flow_from_another(cluster, hold):
    holder, endpoint = hold("masquerade-all").sleep(service(4)), cluster.endpoints["there"]
    cluster.node.ip("route add unreachable 10.244.9.0/24")
    attempts = begin_held(cluster, holder, 4)
    endpoint.listen()

    holder.do("endpoints", 0, f"there 10.244.9.9 {POD_PORT}", endpoint.where(4))

    assert_served(attempts)
    assert holder.counter("delayed/unreachable") >= 1
    assert holder.counter("released/direct") == 4


def test_flows_to_an_endpoint_that_goes_away_are_given_to_the_next(cluster, hold):
    holder, gone, other = hold().sleep(service(4)), cluster.endpoints["here"], cluster.endpoints["there"]
    attempts = begin_held(cluster, holder, 4)
    gone.swallow()
    other.listen()
    holder.do("endpoints", 0, gone.where(4))
    holder.await_state(lambda state: "released" in [flow["state"] for flow in state["list"]])

    holder.do("endpoints", 0, other.where(4))

    assert_served(attempts)
    assert gone.addresses[4] not in cluster.entries()


def test_without_endpoints_again_it_holds_again(cluster, hold):
    holder, gone, other = hold().sleep(service(4)), cluster.endpoints["here"], cluster.endpoints["there"]
    attempt = cluster.clients["client"].begin(PORT)
    holder.await_parked(1)
    holder.do("endpoints", 0, gone.where(4))
    other.listen()

    holder.do("endpoints", 0)
    assert holder.state()["list"][0]["state"] == "parked"
    assert gone.addresses[4] not in cluster.entries()
    holder.do("endpoints", 0, other.where(4))

    assert_served([attempt])


def test_what_a_client_repeats_after_its_endpoint_is_gone_is_held(cluster, hold):
    holder, gone, other = hold().sleep(service(4)), cluster.endpoints["here"], cluster.endpoints["there"]
    attempt = cluster.clients["client"].begin(PORT)
    holder.await_parked(1)
    held = holder.counter("held/published")
    holder.do("endpoints", 0, gone.where(4))  # nobody listens there
    holder.await_state(lambda state: state["counters"]["reinjected/other-endpoint"] > 3)
    holder.do("endpoints", 0)

    holder.await_state(lambda state: state["counters"]["held/published"] > held)
    other.listen()
    holder.do("endpoints", 0, other.where(4))

    finish([attempt], 5)
    assert attempt.error == 0


def refusing_again(cluster, endpoint):
    endpoint.revive()


def gone(cluster, endpoint):
    """Its neighbour tells of it once three requests for its link's address were not answered."""
    endpoint.revive()
    endpoint.namespace.ip("link set eth0 arp off")
    cluster.node.ip("neigh flush dev here")


@pytest.mark.parametrize("refusal, repeated", [(refusing_again, 4), (gone, 5)])
def test_a_daemon_that_is_kept_from_its_work_lets_no_refusal_through(cluster, hold, refusal, repeated):
    """What the client repeats meanwhile, each second, goes the way of the first."""
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["here"]
    [attempt] = begin_held(cluster, holder, 1)
    endpoint.swallow()
    holder.do("endpoints", 0, endpoint.where(4))
    holder.stop_while(lambda: endpoint.addresses[4] in cluster.entries())

    refusal(cluster, endpoint)
    before = attempt.retransmissions
    while attempt.under_way and attempt.retransmissions < before + repeated:
        finish([attempt], 0.05)
    assert attempt.under_way

    endpoint.namespace.ip("link set eth0 arp on")
    endpoint.listen()
    holder.process.send_signal(signal.SIGCONT)
    finish([attempt], 10)
    assert attempt.error == 0


def test_stopping_in_the_middle_of_a_release_hands_everything_on(cluster, hold):
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    attempts = begin_held(cluster, holder, 8)
    endpoint.swallow()
    holder.do("endpoints", 0, endpoint.where(4))

    holder.do("stop")

    finish(attempts, 5)
    state = holder.state()
    assert state["list"] == [] and not state["attached"]
    assert {attempt.error for attempt in attempts if not attempt.under_way} <= {errno.ECONNREFUSED}


def test_the_next_daemon_goes_on_releasing(cluster, hold):
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    attempts = begin_held(cluster, holder, 8)
    endpoint.swallow()
    holder.do("endpoints", 0, endpoint.where(4))
    holder.do("suspend")
    holder.process.wait(timeout=10)

    holder = hold().sleep(service(4))
    endpoint.revive()
    endpoint.listen()
    holder.do("endpoints", 0, endpoint.where(4))

    finish(attempts, 10)  # their retransmissions find it
    assert [attempt.error for attempt in attempts] == [0] * 8
