# SPDX-License-Identifier: Apache-2.0
"""Sleep comes after idleness, never by mistake, and ends with the next packet."""
import errno
import json

from machine import policy
from machine.namespace import set_writable
from machine.policy import server

SHORT = {"after": "1s"}


def awake_for(node, seconds, name="web"):
    """Waits until the policy has been awake for so long, and returns it as it then is, whatever phase that is."""
    def long_enough():
        seen = node.control.policy(name)
        return seen if seen["phase"] != "Awake" or seen["since_seconds"] > seconds else None
    return node.control.until(long_enough, seconds + 10, f"{seconds} s awake")


def wake(node, **client):
    attempt = node.client().connect(8080, **client)
    assert attempt.connected, attempt
    node.control.until_phase("Awake")
    return attempt


def test_an_idle_service_is_stopped_and_woken_again(node, place):
    kind, family = place
    node.start(policy(idle=SHORT))
    first = node.client(kind).connect(8080, family)
    first_pid = first.ask()
    first.close()
    node.control.until_phase("Asleep")
    node.control.until(lambda: node.pids("web") == [], 5, "the end of the process")
    assert node.control.policy()["last_sleep"]["cause"] == "idle"

    second = node.client(kind).connect(8080, family)

    assert second.ask() != first_pid
    assert second.retransmissions == 0


def attached_hooks(node):
    """The kernel's links to the holding programs."""
    programs = {program["id"] for program in node.control.get("/v1/programs")["programs"] if program["type"] == "netfilter"}
    links = json.loads(node.namespace.run("bpftool", "--json", "link", "show").stdout)
    return sum(link["prog_id"] in programs for link in links)


def test_hooks_are_attached_only_while_something_sleeps(node):
    node.start(policy(idle=SHORT))
    assert attached_hooks(node) == 2  # IPv4 and IPv6
    wake(node).close()
    node.control.until(lambda: attached_hooks(node) == 0, 5, "the hooks' detachment")

    node.control.until_phase("Asleep")

    assert attached_hooks(node) == 2


def test_an_answer_that_takes_20_seconds_is_not_slept_through(node):
    node.start(policy(idle={"after": "2s"}, command=server("--answer-after", "20000")))
    attempt = wake(node)

    answer = attempt.ask(timeout=30)

    assert b"200 OK" in answer
    assert "Sleeping" not in [event["reason"] for event in node.control.events()]  # it was not even tried
    attempt.close()
    node.control.until_phase("Asleep")


def test_a_request_past_its_timeout_no_longer_keeps_awake(node):
    node.start(policy(idle={"after": "1s", "requestTimeout": "2s"}, command=server("--answer-after", "600000")))
    attempt = wake(node)
    attempt.socket.sendall(b"hello\n")

    node.control.until(lambda: node.control.policy()["idle"]["verdict"] == "busy", 5, "a busy verdict")
    node.control.until_phase("Asleep")


def test_a_silent_connection_does_not_keep_awake(node):
    node.start(policy(idle=SHORT))
    attempt = wake(node)
    attempt.ask()

    node.control.until_phase("Asleep")

    assert attempt.socket.recv(100) == b""  # its server is gone


def test_a_silent_connection_keeps_awake_where_the_policy_says_so(node):
    node.start(policy(idle={"after": "1s", "connections": "Hold"}))
    attempt = wake(node)
    attempt.ask()

    assert awake_for(node, 3)["phase"] == "Awake"
    attempt.close()

    node.control.until_phase("Asleep")


def test_requests_keep_awake(node):
    node.start(policy(idle=SHORT))
    attempt = wake(node)

    def asked_for_three_seconds():
        assert b"200 OK" in attempt.ask()
        return node.control.policy()["since_seconds"] > 3
    node.control.until(asked_for_three_seconds, 10)

    assert node.control.phase() == "Awake"


def test_a_busy_cpu_keeps_awake(node):
    node.start(policy(idle={"after": "1s", "cpu": "20m"}, command=server("--burn")))
    wake(node).close()

    seen = awake_for(node, 3)

    assert seen["phase"] == "Awake"
    assert seen["idle"]["verdict"] == "busy"
    assert "CPU" in seen["idle"]["reason"]


def test_a_busy_cpu_does_not_matter_where_the_policy_says_so(node):
    node.start(policy(idle={"after": "1s", "cpu": "0"}, command=server("--burn")))
    wake(node).close()

    node.control.until_phase("Asleep")


def test_a_service_stays_awake_for_its_minimum(node):
    node.start(policy(idle={"after": "500ms", "minAwake": "3s"}))
    wake(node).close()

    seen = awake_for(node, 2.5)

    assert seen["phase"] == "Awake"
    node.control.until_phase("Asleep")


def test_a_process_that_ignores_its_stop_signal_is_killed(node):
    node.start(policy(idle=SHORT, target={"stopTimeout": "1s"}, command=server("--ignore-term")))
    wake(node).close()

    slept = node.control.until_phase("Asleep")

    node.control.until(lambda: node.pids("web") == [], 5, "the end of the process")
    assert node.control.policy()["last_sleep"]["stop_seconds"] >= 1
    assert slept["last_sleep"]["cause"] == "idle"


def test_a_connection_while_the_process_stops_is_answered_by_the_next_one(node):
    node.start(policy(idle=SHORT, target={"stopTimeout": "2s"}, command=server("--ignore-term")))
    first = wake(node)
    first_pid = first.ask()
    first.close()
    node.control.until_phase("Asleep")  # asked to stop, and busy dying for another 2 s

    attempt = node.client().connect(8080)

    assert attempt.error != errno.ECONNREFUSED, attempt
    assert attempt.ask() != first_pid


def test_a_client_that_reconnects_at_once_doubles_the_idle_time(node):
    node.start(policy(idle=SHORT))
    attempt = wake(node)
    attempt.ask()
    node.control.until_phase("Asleep")
    assert attempt.socket.recv(100) == b""

    again = node.client().connect(8080)  # a pool that replaces what was cut

    assert again.connected
    node.control.until_phase("Awake")
    condition = node.control.until_condition("Flapping")
    assert "192.0.2.2" in condition["message"]
    assert node.control.policy()["idle"]["factor"] == 2
    assert "192.0.2.2" in node.control.why()
    assert awake_for(node, 1.5)["phase"] == "Awake"


def test_what_cannot_be_held_is_not_put_to_sleep(node):
    node.start(policy(idle=SHORT))
    pid = node.client().connect(8080).ask()
    node.control.until(lambda: not node.control.status()["hold"]["attached"], 5, "the end of holding")

    set_writable(node.bpffs, False)
    condition = node.control.until_condition("HoldFailed")
    assert "Read-only" in condition["message"]
    assert node.control.until_event("SleepAborted")
    assert node.client().connect(8080).ask() == pid

    set_writable(node.bpffs, True)
    node.control.until_phase("Asleep")
    assert node.control.condition("HoldFailed") is None
