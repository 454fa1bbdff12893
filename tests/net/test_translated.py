# SPDX-License-Identifier: Apache-2.0
"""First connections to Services without endpoints: held on the client's node, and given to an endpoint before the data plane knows it."""
import errno
import socket
import time

import pytest

from machine.client import finish
from machine.namespace import mount_bpffs, unmount
from translated import NODE, NODE_PORT, POD_PORT, PODS, PORT, SERVICE, Cluster, Hold, pod_address

FAMILIES = [4, 6]
GATEWAY = pod_address(1, 1)  # the node's address on its pods' links


@pytest.fixture
def cluster():
    made = Cluster()
    yield made
    made.close()


@pytest.fixture
def hold(cluster, tmp_path):
    """Starts hold on the cluster's node: hold("wait")."""
    started = []
    mount_bpffs(tmp_path / "bpf")

    def start(*options):
        started.append(Hold(cluster, tmp_path / "bpf", *options))
        return started[-1]

    yield start
    for process in started:
        process.close()
    unmount(tmp_path / "bpf")


def service(family, *words, protocol="tcp"):
    address = SERVICE[family] if family == 4 else f"[{SERVICE[family]}]"
    return " ".join([f"{protocol}/{address}:{PORT}", *words])


def node_port(*words):
    return " ".join([f"tcp/0.0.0.0:{NODE_PORT}", *words])


def assert_served(attempts, seconds=5):
    finish(attempts, seconds)
    assert [str(attempt) for attempt in attempts if not attempt.connected or attempt.retransmissions] == []


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("client", ["client", "node"])
@pytest.mark.parametrize("family", FAMILIES)
def test_first_connection_is_answered_before_the_data_plane_knows(cluster, hold, client, where, family):
    holder, endpoint = hold().sleep(service(family)), cluster.endpoints[where]
    attempt = cluster.clients[client].begin(PORT, family)
    assert holder.await_event("demand")["local"] == (client == "node")
    endpoint.listen(family)

    holder.do("endpoints", 0, endpoint.where(family))

    assert_served([attempt])
    assert attempt.receive() == b"hello"
    holder.await_event("released")
    holder.await_event("answered")
    assert endpoint.peers == [attempt.socket.getsockname()[0]]
    assert holder.counter("released/direct") == 1


@pytest.mark.parametrize("where, seen_from", [("here", GATEWAY[4]), ("there", NODE[4])])
def test_a_node_port_is_served_by_way_of_this_node(cluster, hold, where, seen_from):
    holder, endpoint = hold().sleep(node_port("masquerade")), cluster.endpoints[where]
    attempt = cluster.clients["outside"].begin(NODE_PORT)
    holder.await_parked(1)
    endpoint.listen()

    holder.do("endpoints", 0, endpoint.where(4))

    assert_served([attempt])
    assert attempt.receive() == b"hello"
    assert endpoint.peers == [seen_from]


@pytest.mark.parametrize("options", [[], [f"cluster={PODS[4]}"], ["masquerade-all"]])
def test_whom_a_local_node_port_takes_in_is_seen_as_who_asks(cluster, hold, options):
    holder, endpoint = hold(*options).sleep(node_port("local", "as-it-is")), cluster.endpoints["here"]
    attempt = cluster.clients["outside"].begin(NODE_PORT)
    holder.await_parked(1)
    endpoint.listen()

    holder.do("endpoints", 0, endpoint.where(4))

    assert_served([attempt])
    assert attempt.receive() == b"hello"
    assert endpoint.peers == [attempt.socket.getsockname()[0]]


@pytest.mark.parametrize("options, seen_from", [([], NODE[4]), ([f"cluster={PODS[4]}"], GATEWAY[4]), (["masquerade-all"], GATEWAY[4])])
def test_sources_outside_the_cluster_are_masqueraded_where_that_is_asked_for(cluster, hold, options, seen_from):
    holder, endpoint = hold(*options).sleep(service(4)), cluster.endpoints["here"]
    attempt = cluster.clients["node"].begin(PORT)
    holder.await_parked(1)
    endpoint.listen()

    holder.do("endpoints", 0, endpoint.where(4))

    assert_served([attempt])
    assert attempt.receive() == b"hello"
    assert endpoint.peers == [seen_from]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pod_reaches_itself_by_its_service(cluster, hold, family):
    holder, endpoint = hold().sleep(service(family)), cluster.endpoints["here"]
    endpoint.listen(family)
    attempt = cluster.clients["here"].begin(PORT, family)
    holder.await_parked(1)

    holder.do("endpoints", 0, endpoint.where(family))

    assert_served([attempt])
    assert attempt.receive() == b"hello"
    assert endpoint.peers == [GATEWAY[family]]


@pytest.mark.parametrize("where", ["here", "there"])
def test_many_first_connections_to_a_short_backlog_wait_for_no_retransmission(cluster, hold, where):
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints[where]
    attempts = [cluster.clients["client"].begin(PORT) for _ in range(50)]
    holder.await_parked(50)
    endpoint.listen(backlog=5, accept_every=0.001)

    holder.do("endpoints", 0, endpoint.where(4))

    assert_served(attempts)
    assert [attempt.receive() for attempt in attempts] == [b"hello"] * 50


def test_answers_are_noticed_without_events_too(cluster, hold):
    cluster.node.set("netfilter/nf_conntrack_events", 0)
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    attempts = [cluster.clients["client"].begin(PORT) for _ in range(10)]
    holder.await_parked(10)
    endpoint.listen()

    holder.do("endpoints", 0, endpoint.where(4))

    assert_served(attempts)
    for _ in attempts:
        holder.await_event("answered")


def test_first_connections_are_spread_over_all_endpoints(cluster, hold):
    holder = hold().sleep(service(4))
    attempts = [cluster.clients["client"].begin(PORT) for _ in range(30)]
    holder.await_parked(30)
    for endpoint in cluster.endpoints.values():
        endpoint.listen()

    holder.do("endpoints", 0, *(endpoint.where(4) for endpoint in cluster.endpoints.values()))

    assert_served(attempts)
    assert [attempt.receive() for attempt in attempts] == [b"hello"] * 30
    assert all(len(endpoint.peers) >= 5 for endpoint in cluster.endpoints.values())


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
    attempts = [cluster.clients[client].begin(PORT, family) for _ in range(4)]
    holder.await_parked(4)
    alive.listen(family)
    way_to_die(cluster, dead)

    holder.do("endpoints", 0, dead.where(family), alive.where(family))

    assert_served(attempts)
    assert [attempt.receive() for attempt in attempts] == [b"hello"] * 4
    assert dead.addresses[family] not in cluster.entries()


@pytest.mark.parametrize("way_to_die", [refusing, swallowing, unreachable])
def test_a_masqueraded_flow_to_a_dead_endpoint_goes_to_another_unnoticed(cluster, hold, way_to_die):
    holder, dead, alive = hold().sleep(node_port("masquerade")), cluster.endpoints["there"], cluster.endpoints["here"]
    attempts = [cluster.clients["outside"].begin(NODE_PORT) for _ in range(4)]
    holder.await_parked(4)
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


@pytest.mark.parametrize("old", ["dead", "closed"])
def test_a_reused_source_port_is_not_bound_by_the_entry_of_another_time(cluster, hold, old):
    client = cluster.clients["client"]
    address = pod_address(1, 2)[4]
    target = cluster.endpoints["here" if old == "dead" else "there"].addresses[4]
    cluster.node.run("conntrack", "-I", "-p", "tcp", "-s", address, "-d", SERVICE[4], "--sport", 40000, "--dport", PORT,
                     "--dst-nat", f"{target}:{POD_PORT}", "-t", 100, "--state", "SYN_SENT" if old == "dead" else "TIME_WAIT")
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    attempt = client.begin(PORT, source=(address, 40000))
    holder.await_parked(1)
    endpoint.listen()

    holder.do("endpoints", 0, endpoint.where(4))

    assert_served([attempt])
    assert attempt.receive() == b"hello"


def test_a_client_that_has_its_port_in_use_towards_the_pod_itself_is_served_too(cluster, hold):
    """The pod's answers to both would look the same, had the kernel not chosen another port for the second."""
    client, address, endpoint = cluster.clients["client"], pod_address(1, 2)[4], cluster.endpoints["there"]
    shared = {"source": (address, 40001), "options": [(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)]}
    endpoint.listen()
    client.socket(socket.SOCK_STREAM, **shared).connect((endpoint.addresses[4], POD_PORT))
    holder = hold().sleep(service(4))
    attempts = [client.begin(PORT, **shared), *(client.begin(PORT) for _ in range(3))]
    holder.await_parked(4)

    holder.do("endpoints", 0, endpoint.where(4))

    assert_served(attempts)
    assert [attempt.receive() for attempt in attempts] == [b"hello"] * 4


def test_an_endpoint_that_cannot_be_reached_keeps_no_flow_from_another(cluster, hold):
    holder, endpoint = hold("masquerade-all").sleep(service(4)), cluster.endpoints["there"]
    cluster.node.ip("route add unreachable 10.244.9.0/24")
    attempts = [cluster.clients["client"].begin(PORT) for _ in range(4)]
    holder.await_parked(4)
    endpoint.listen()

    holder.do("endpoints", 0, f"there 10.244.9.9 {POD_PORT}", endpoint.where(4))

    assert_served(attempts)
    assert holder.counter("delayed/unreachable") >= 1
    assert holder.counter("released/direct") == 4


def test_flows_to_an_endpoint_that_goes_away_are_given_to_the_next(cluster, hold):
    holder, gone, other = hold().sleep(service(4)), cluster.endpoints["here"], cluster.endpoints["there"]
    attempts = [cluster.clients["client"].begin(PORT) for _ in range(4)]
    holder.await_parked(4)
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


def test_stopping_in_the_middle_of_a_release_hands_everything_on(cluster, hold):
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    attempts = [cluster.clients["client"].begin(PORT) for _ in range(8)]
    holder.await_parked(8)
    endpoint.swallow()
    holder.do("endpoints", 0, endpoint.where(4))

    holder.do("stop")

    finish(attempts, 5)
    state = holder.state()
    assert state["list"] == [] and not state["attached"]
    assert {attempt.error for attempt in attempts if not attempt.under_way} <= {errno.ECONNREFUSED}


def test_the_next_daemon_goes_on_releasing(cluster, hold):
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    attempts = [cluster.clients["client"].begin(PORT) for _ in range(8)]
    holder.await_parked(8)
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


def test_only_endpoints_of_this_node_serve_a_local_service(cluster, hold):
    holder, here, there = hold().sleep(service(4, "local")), cluster.endpoints["here"], cluster.endpoints["there"]
    attempts = [cluster.clients["client"].begin(PORT) for _ in range(8)]
    holder.await_parked(8)
    here.listen()
    there.listen()

    holder.do("endpoints", 0, there.where(4))
    assert {flow["state"] for flow in holder.state()["list"]} == {"parked"}
    holder.do("endpoints", 0, there.where(4), here.where(4))

    assert_served(attempts)
    assert there.peers == []


def test_a_local_service_without_an_endpoint_here_is_left_to_the_cluster(cluster, hold):
    holder, here, there = hold().sleep(service(4, "local")), cluster.endpoints["here"], cluster.endpoints["there"]
    here.swallow()
    holder.do("endpoints", 0, here.where(4))
    holder.do("expect")
    began, busy = time.monotonic(), holder.cpu_seconds()
    holder.do("endpoints", 0, there.where(4))
    attempt = cluster.clients["client"].begin(PORT)
    holder.await_parked(1)

    finish([attempt], 5)

    assert attempt.error == errno.ECONNREFUSED
    assert holder.cpu_seconds() - busy < (time.monotonic() - began) / 20  # it waited, and did not spin
    holder.await_event("drained")


@pytest.mark.parametrize("option, word, state", [("wait", "", "data-plane-configured"), ("", "affinity", "data-plane-affinity")])
@pytest.mark.parametrize("family", FAMILIES)
def test_flows_wait_for_the_data_plane_where_that_must_decide(cluster, hold, option, word, state, family):
    holder, endpoint = hold(option).sleep(service(family, word)), cluster.endpoints["there"]
    attempts = [cluster.clients["client"].begin(PORT, family), cluster.clients["node"].begin(PORT, family)]
    holder.await_parked(2)
    endpoint.listen(family)
    holder.do("endpoints", 0, endpoint.where(family))
    assert [flow["state"] for flow in holder.state()["list"]] == [state] * 2

    cluster.program(endpoint, family)

    assert_served(attempts)
    assert [attempt.receive() for attempt in attempts] == [b"hello"] * 2
    assert len(endpoint.peers) == 2  # the probes were none of its business
    assert holder.counter("released/data-plane") == 2
    assert holder.counter("released/direct") == 0


def test_many_flows_go_on_at_a_bearable_pace_once_the_data_plane_is_proven(cluster, hold):
    holder, endpoint = hold("wait").sleep(service(4)), cluster.endpoints["here"]
    attempts = [cluster.clients["client"].begin(PORT) for _ in range(50)]
    holder.await_parked(50)
    endpoint.listen(backlog=5, accept_every=0.001)
    holder.do("endpoints", 0, endpoint.where(4))

    cluster.program(endpoint)

    assert_served(attempts)


@pytest.mark.parametrize("family", FAMILIES)
def test_flows_wait_where_nothing_translates(hold, cluster, family):
    cluster.stop_proxy()
    holder, endpoint = hold().sleep(service(family)), cluster.endpoints["here"]
    attempt = cluster.clients["client"].begin(PORT, family)
    holder.await_parked(1)
    endpoint.listen(family)
    holder.do("endpoints", 0, endpoint.where(family))
    assert [flow["state"] for flow in holder.state()["list"]] == ["data-plane-no-nat"]

    cluster.start_proxy()

    assert_served([attempt])
    assert holder.counter("released/direct") == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_a_proven_data_plane_ends_the_holding(cluster, hold, family):
    holder, endpoint = hold().sleep(service(family)), cluster.endpoints["there"]
    attempt = cluster.clients["client"].begin(PORT, family)
    holder.await_parked(1)
    endpoint.listen(family)
    holder.do("endpoints", 0, endpoint.where(family))
    assert_served([attempt])
    holder.do("expect")
    assert holder.state()["attached"]

    cluster.program(endpoint, family)

    holder.await_event("drained")
    assert not holder.state()["attached"]
    assert len(endpoint.peers) == 1  # no probe reached the application
    assert_served([cluster.clients["client"].begin(PORT, family)])


def test_a_frontend_known_to_be_served_is_let_go_at_once(cluster, hold):
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    endpoint.listen()
    cluster.program(endpoint)
    attempt = cluster.clients["client"].begin(PORT)
    holder.await_parked(1)

    holder.do("release", 0)

    assert_served([attempt])
    holder.await_event("drained")
    assert holder.counter("released/data-plane") == 1


def test_a_probe_that_another_node_sent_is_no_demand(cluster, hold):
    """As when that node's data plane still leads to this node's parking address: it comes from anywhere, and nobody has announced it."""
    holder = hold().sleep(service(4))

    cluster.clients["client"].namespace.run("python3", "-c", PROBE, pod_address(1, 2)[4], SERVICE[4], str(PORT))
    attempt = cluster.clients["client"].begin(PORT)

    assert holder.await_event("demand")["flow"].startswith(f"tcp {pod_address(1, 2)[4]}:{attempt.socket.getsockname()[1]} ")
    assert holder.counter("passed/exempt-flow") == 1
    assert len(holder.state()["list"]) == 1


PROBE = """
import socket, struct, sys
source, target, port = sys.argv[1:]
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
raw.bind((source, 0))
def segment(checksum):
    return struct.pack("!HHIIBBHHH", 1383, int(port), 0x6c756c6c, 0, 5 << 4, 2, 65535, checksum, 0)
pseudo = socket.inet_aton(source) + socket.inet_aton(target) + struct.pack("!HH", socket.IPPROTO_TCP, 20) + segment(0)
total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
total = (total & 0xffff) + (total >> 16)
raw.sendto(segment(~(total + (total >> 16)) & 0xffff), (target, 0))
"""


def test_a_proven_node_port_ends_the_holding(cluster, hold):
    holder, endpoint = hold().sleep(node_port("masquerade"), service(4)), cluster.endpoints["here"]
    endpoint.listen()
    holder.do("endpoints", 0, endpoint.where(4))
    holder.do("endpoints", 1, endpoint.where(4))
    holder.do("expect")
    assert holder.state()["attached"]

    cluster.program(endpoint)

    holder.await_event("drained")
    assert endpoint.peers == []


def connect_for(client, seconds):
    """A connection every 5 ms, each told when it is made."""
    attempts, until = [], time.monotonic() + seconds
    while (now := time.monotonic()) < until:
        attempts.append(client.begin(PORT))
        finish(attempts, 0.005)
        time.sleep(max(0, now + 0.005 - time.monotonic()))
    return attempts


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("client", ["client", "node"])
def test_no_connection_is_refused_while_the_data_plane_learns(cluster, hold, client, where):
    holder, endpoint, caller = hold().sleep(service(4)), cluster.endpoints[where], cluster.clients[client]
    endpoint.listen()
    attempts = connect_for(caller, 0.1)

    holder.do("endpoints", 0, endpoint.where(4))
    finish(attempts, 5)
    later = finish(connect_for(caller, 0.3), 5)
    holder.do("expect")
    later += finish(connect_for(caller, 0.2), 5)
    cluster.program(endpoint)
    later += finish(connect_for(caller, 0.3), 5)

    assert_served(attempts + later)
    assert [attempt.receive() for attempt in attempts + later] == [b"hello"] * len(attempts + later)
    holder.await_event("drained")
    assert holder.counter("released/direct") < len(attempts + later)  # the last ones met no hook any more
    print(f"{len(attempts)} held, then {len(later)} more, of these {holder.counter('released/direct') - len(attempts)} given an endpoint; "
          f"the slowest took {max(attempt.seconds for attempt in later) * 1000:.1f} ms, "
          f"the median {sorted(attempt.seconds for attempt in later)[len(later) // 2] * 1000:.2f} ms")


def test_only_sources_in_both_lists_may_wake(cluster, hold):
    holder = hold()
    holder.do("from", "10.244.1.0/24")
    holder.sleep(node_port("masquerade", "range=10.244.1.2/32", "range=198.51.100.0/24"), service(4, "range=203.0.113.0/24"))
    node_addresses = {"outside": NODE[4], "client": NODE[4], "here": NODE[4]}
    for name, address in node_addresses.items():
        cluster.clients[name].addresses = {4: address}

    refused = [cluster.clients[name].connect(NODE_PORT, timeout=5) for name in ("outside", "here")]
    held = cluster.clients["client"].begin(NODE_PORT)
    holder.await_parked(1)
    cluster.clients["client"].addresses = SERVICE
    nobody = cluster.clients["client"].connect(PORT, timeout=5)

    assert [attempt.connected or attempt.under_way for attempt in (*refused, nobody)] == [False] * 3
    assert held.under_way
    assert holder.counter("passed/not-allowed") >= 3


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("family", FAMILIES)
def test_first_datagrams_reach_an_endpoint_in_order(cluster, hold, where, family):
    holder, endpoint = hold().sleep(service(family, protocol="udp")), cluster.endpoints[where]
    client = cluster.clients["client"].udp(PORT, family)
    for number in range(5):
        client.send(b"%d" % number)
    holder.await_state(lambda state: sum(flow["packets"] for flow in state["list"]) == 5)
    server = endpoint.udp(family)

    holder.do("endpoints", 0, endpoint.where(family))

    received = [server.recvfrom(100) for _ in range(5)]
    assert [datagram for datagram, _ in received] == [b"%d" % number for number in range(5)]
    server.sendto(b"answer", received[0][1])
    assert client.recv(100) == b"answer"


def test_an_entry_for_datagrams_that_the_data_plane_removes_is_made_again(cluster, hold):
    holder, endpoint = hold().sleep(service(4, protocol="udp")), cluster.endpoints["there"]
    client, server = cluster.clients["client"].udp(PORT), endpoint.udp()
    client.send(b"first")
    holder.await_parked(1)
    holder.do("endpoints", 0, endpoint.where(4))
    assert server.recv(100) == b"first"

    for number in range(3):
        cluster.delete_entries("-p", "udp", "-d", SERVICE[4])
        holder.state()  # it has had its turn
        client.send(b"%d" % number)
        assert server.recv(100) == b"%d" % number


def test_a_datagram_refused_by_its_endpoint_goes_to_another(cluster, hold):
    holder, dead, alive = hold().sleep(service(4, protocol="udp")), cluster.endpoints["here"], cluster.endpoints["here2"]
    clients = [cluster.clients["client"].udp(PORT) for _ in range(4)]
    for client in clients:
        client.send(b"question")
    holder.await_parked(4)
    server = alive.udp()

    holder.do("endpoints", 0, dead.where(4), alive.where(4))

    assert [server.recv(100) for _ in clients] == [b"question"] * 4
    for client in clients:
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0


def test_a_udp_service_is_let_go_with_its_tcp_side(cluster, hold):
    holder, endpoint = hold().sleep(service(4), service(4, protocol="udp")), cluster.endpoints["there"]
    endpoint.listen()
    for index in (0, 1):
        holder.do("endpoints", index, endpoint.where(4))
    holder.do("expect")

    cluster.program(endpoint)

    holder.await_event("drained")


def test_a_service_of_datagrams_alone_is_let_go_after_a_grace(cluster, hold):
    holder, endpoint = hold().sleep(service(4, protocol="udp")), cluster.endpoints["there"]
    holder.do("endpoints", 0, endpoint.where(4))
    began = time.monotonic()
    holder.do("expect")

    holder.await_event("drained")

    assert time.monotonic() - began >= 2


def test_a_datagram_of_the_node_itself_is_left_alone(cluster, hold):
    cluster.stop_proxy()  # whose refusal would be an error to the sender, too
    cluster.node_2.ip(f"route add blackhole {SERVICE[4]}/32")
    holder = hold().sleep(service(4, protocol="udp"))

    cluster.clients["node"].udp(PORT).send(b"question")  # a drop would be EPERM

    assert holder.counter("held/published") == 0
