# SPDX-License-Identifier: Apache-2.0
"""A service that cannot be woken is refused as it would be without lull, once, and everybody can read why."""
import errno
import time

import pytest

from machine import policy, tool
from machine.policy import server
from machine.raw import RawClient

HOLD = {"holdTimeout": "1s"}


def refused_at_hold_timeout(attempt):
    return attempt.error == errno.ECONNREFUSED and 0.9 < attempt.seconds < 1.9


def test_a_server_that_never_listens_is_refused_at_the_hold_timeout(node, place):
    kind, family = place
    node.start(policy(command=server("--wait", "600000"), wake=HOLD))

    attempt = node.client(kind).connect(8080, family)

    assert refused_at_hold_timeout(attempt), attempt
    condition = node.control.until_condition("WakeFailed")
    assert "1s" in condition["message"]
    assert condition["message"] in node.control.why()


def test_a_crashing_server_is_reported_with_its_status(node):
    node.start(policy(command=server("--exit", "3"), wake=HOLD))

    attempt = node.client().connect(8080)

    assert refused_at_hold_timeout(attempt), attempt
    condition = node.control.until_condition("WakeFailed")
    assert "exited with status 3" in condition["message"]
    assert "exited with status 3" in node.control.why()


def test_a_crashing_server_is_started_with_growing_delays(node):
    node.start(policy(command=server("--exit", "3"), wake={"holdTimeout": "3s"}))

    node.client().connect(8080)

    starts = node.server_log("web").count("told to exit")
    assert 3 <= starts <= 8  # 100 ms, 200 ms, 400 ms, …


def test_a_missing_program_is_named(node):
    node.start(policy(command=["/nonexistent/program"], wake=HOLD))

    attempt = node.client().connect(8080)

    assert refused_at_hold_timeout(attempt), attempt
    condition = node.control.until_condition("WakeFailed")
    assert "/nonexistent/program" in condition["message"]
    assert "No such file" in condition["message"]


def test_a_server_that_recovers_serves_again(node, tmp_path):
    marker = tmp_path / "works"
    serve = f"test -e {marker} || exit 3; exec {tool('server')} tcp/0.0.0.0:8080"
    node.start(policy(listen=["tcp/0.0.0.0:8080"], command=["/bin/sh", "-c", serve], wake=HOLD))
    assert not node.client().connect(8080).connected
    node.control.until_condition("WakeFailed")

    marker.touch()

    def answered():
        attempt = node.client().connect(8080)
        return attempt.connected and attempt.ask()
    assert b"200 OK" in node.control.until(answered, 10, "an answer")
    node.control.until_phase("Awake")
    assert node.control.condition("WakeFailed") is None


@pytest.mark.parametrize("kind", ["loopback", "routed"])
def test_a_flow_past_its_hold_timeout_is_refused_and_not_parked_again(node, kind):
    node.start(policy(command=server("--wait", "600000"), wake=HOLD))
    client = RawClient(node.client(kind))
    client.send_syn(8080)
    node.control.until(node.control.held, 5, "a parked packet")
    assert client.await_reset(timeout=3)
    node.control.until(lambda: node.control.status()["hold"]["attached"], 5, "holding after the back-off")

    for _ in range(3):  # what a client does that lost the reset
        client.send_syn(8080)
        assert client.await_reset(timeout=0.5)

    assert node.control.held() == []
    assert node.control.packets("held") == 1


def test_demand_after_a_failed_wake_is_held_again(node):
    node.start(policy(command=server("--wait", "2500"), wake=HOLD))
    assert refused_at_hold_timeout(node.client().connect(8080))

    def held():
        attempt = node.client().begin(8080)
        return attempt if node.control.held() else None
    attempt = node.control.until(held, 5, "a parked packet")

    node.control.until_phase("Awake")
    assert b"200 OK" in attempt.ask()


def test_a_server_that_dies_while_awake_is_asleep_and_woken_again(node):
    node.start(policy())
    first = node.client().connect(8080).ask()
    node.control.until_phase("Awake")
    node.kill_workload("web")
    node.control.until_phase("Asleep")

    attempt = node.client().connect(8080)

    assert attempt.ask() != first
    assert attempt.retransmissions == 0


def wakeups(pid):
    """How often the process gave its CPU up because it had nothing to do."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        [line] = [line for line in status if line.startswith("voluntary_ctxt_switches")]
    return int(line.split()[1])


def test_nothing_is_looked_for_any_more_once_a_wake_has_ended(node):
    node.start(policy(command=server("--exit", "3")))
    node.lull("policy", "wake", "web")
    node.control.until_event("ProcessFailed")
    node.control.until_phase("Asleep")

    before = wakeups(node.daemon.pid)
    time.sleep(2)  # what is proven is that nothing happens meanwhile

    assert wakeups(node.daemon.pid) - before < 20


def test_somebody_elses_server_is_used_and_replaced_once_it_is_gone(node):
    node.start(policy(idle={"after": "1s"}))
    foreign = node.namespace.start(*server())
    node.control.until(lambda: ":8080" in node.namespace.run("ss", "-Hlnt").stdout, 5, "somebody else's server")
    assert b"200 OK" in node.client().connect(8080).ask()
    node.control.until_condition("PortInUse")

    condition = node.control.until_condition("IdleUnknown")  # what it does is not seen
    assert "it stays awake" in condition["message"]

    foreign.kill()
    foreign.wait()
    assert node.control.until_phase("Asleep", timeout=15)["conditions"] == []
    attempt = node.client().connect(8080)
    assert b"200 OK" in attempt.ask()
    assert len(node.pids("web")) == 1


def test_a_frontend_that_became_ready_in_a_back_off_does_not_wait_for_another_that_never_is(node):
    listen = ["tcp/0.0.0.0:8080", "tcp/0.0.0.0:8081"]
    node.start(policy(listen=listen, command=server("--wait", "1500", listen=listen[:1]), wake={"holdTimeout": "1s"}))
    assert refused_at_hold_timeout(node.client().connect(8080))
    node.control.until(lambda: ":8080" in node.namespace.run("ss", "-Hlnt").stdout, 5, "a listener")
    node.control.until(lambda: node.control.policy()["held"]["holding"], 5, "the end of the back-off")

    attempt = node.client().connect(8080)

    assert attempt.connected, attempt
    assert attempt.seconds < 0.7  # and not the hold timeout
