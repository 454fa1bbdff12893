# SPDX-License-Identifier: Apache-2.0
"""What people do and see: the lull command, metrics, health."""
import json
import os
import resource
import urllib.error
import urllib.request

import pytest

from machine import ControlError, policy
from machine.policy import server


@pytest.fixture
def web(node):
    node.start(policy())
    return node


def test_wake_and_sleep_by_hand(web):
    web.lull("policy", "wake", "web")
    assert web.control.until_phase("Awake")["last_wake"]["cause"] == "operator"
    assert b"200 OK" in web.client().connect(8080).ask()

    web.lull("policy", "sleep", "web")
    assert web.control.until_phase("Asleep")["last_sleep"]["cause"] == "operator"
    web.control.until(lambda: web.pids("web") == [], 5, "the end of the process")


def test_a_sleep_by_hand_spares_an_unanswered_request(node):
    node.start(policy(command=server("--answer-after", "2000")))
    attempt = node.client().connect(8080)
    node.control.until_phase("Awake")
    attempt.socket.sendall(b"hello\n")
    node.control.until(lambda: node.control.policy()["activity"]["open_requests"] == 1, 5, "an open request")

    node.lull("policy", "sleep", "web", check=False)

    assert b"200 OK" in attempt.receive()


def test_why_names_the_client_and_the_time_each_phase_took(web):
    attempt = web.client("routed").connect(8080)
    source = "{}:{}".format(*attempt.socket.getsockname())
    attempt.ask()
    web.control.until(lambda: all(web.control.policy()["last_wake"]["phases"].values()), 5, "every phase")

    why = web.lull("policy", "why", "web").stdout

    assert source in why
    assert "ms" in why
    phases = web.control.policy()["last_wake"]["phases"]
    order = ["detected", "requested", "started", "ready", "released", "answered"]
    assert sorted(order, key=phases.get) == order


def test_why_names_the_process_of_a_client_on_this_host(web):
    attempt = web.client("loopback").connect(8080)
    attempt.ask()

    web.control.until(lambda: web.control.policy()["last_wake"]["pid"] == os.getpid(), 5, "the client's process")

    assert f"pid {os.getpid()}" in web.control.why()


def test_why_tells_of_the_sleep(node):
    node.start(policy(idle={"after": "1s"}))
    node.client().connect(8080).close()
    node.control.until_phase("Awake")
    node.control.until_phase("Asleep")

    assert "no activity for 1" in node.control.why()


@pytest.mark.parametrize("words", [
    ["status"], ["policy", "list"], ["policy", "show", "web"], ["policy", "why", "web"], ["hold", "list"], ["event", "list"],
    ["prog", "list"], ["map", "list"], ["feature", "probe"], ["version"],
], ids=" ".join)
def test_commands_answer_people_and_programs(web, words):
    for_people = web.lull(*words)
    assert for_people.stdout.strip()
    assert for_people.stderr == ""

    assert json.loads(web.lull("-j", *words).stdout).keys() == json.loads(web.lull("-p", *words).stdout).keys()


@pytest.mark.parametrize("command", ["show", "why", "wake", "sleep"])
def test_an_unknown_policy_is_an_error_on_stderr(web, command):
    result = web.lull("policy", command, "nobody", check=False)

    assert result.returncode != 0
    assert result.stdout == ""
    assert "nobody" in result.stderr


def test_held_packets_are_listed(node):
    node.start(policy(command=server("--wait", "600000")))
    attempt = node.client().begin(8080)
    node.control.until(node.control.held, 5, "a parked packet")

    [packet] = json.loads(node.lull("-j", "hold", "list").stdout)["packets"]

    assert packet["policy"] == "web"
    assert packet["state"] == "parked"
    assert "{}:{}".format(*attempt.socket.getsockname()) in packet["flow"]
    assert packet["flow"] in node.lull("hold", "list").stdout


def test_without_a_daemon_the_command_says_so(node):
    result = node.lull("status", check=False)

    assert result.returncode != 0
    assert "control.sock" in result.stderr


def test_waking_what_is_awake_is_a_conflict(web):
    web.control.wake()
    web.control.until_phase("Awake")

    with pytest.raises(ControlError) as conflict:
        web.control.wake()

    assert conflict.value.status == 409


def fetch(node, path):
    with node.namespace.entered(), urllib.request.urlopen(f"http://{node.metrics}{path}", timeout=10) as response:
        return response.status, response.headers["Content-Type"], response.read().decode()


def test_metrics_tell_of_a_wake(web):
    web.client().connect(8080).ask()
    web.control.until_phase("Awake")

    status, content_type, text = fetch(web, "/metrics")

    assert status == 200
    assert content_type.startswith("text/plain; version=0.0.4")
    metrics = web.control.metrics()
    assert metrics["lull_policy_phase", frozenset({("policy", "web"), ("phase", "Awake")})] == 1
    assert metrics["lull_wakes_total", frozenset({("policy", "web"), ("cause", "packet")})] == 1
    assert metrics["lull_transitions_total", frozenset({("policy", "web"), ("from", "Asleep"), ("to", "Waking")})] == 1
    assert web.control.packets("held") == 1
    assert metrics["lull_wake_phase_seconds_count", frozenset({("phase", "ready")})] == 1
    assert any(name == "lull_build_info" for name, _ in metrics)
    assert text.endswith("\n")


def test_health_is_answered_on_the_metrics_address(web):
    assert fetch(web, "/healthz")[0] == 200
    assert fetch(web, "/readyz")[0] == 200
    with pytest.raises(urllib.error.HTTPError):
        fetch(web, "/nothing")


def test_the_control_socket_is_for_its_owner_only(web):
    assert (web.run_directory / "control.sock").stat().st_mode & 0o777 == 0o600


def test_a_dry_run_says_what_it_would_have_done_and_does_nothing(node):
    node.start(policy(idle={"after": "1s"}, dryRun=True))
    if node.control.phase() != "Awake":
        node.control.wake()

    condition = node.control.until_condition("DryRun")

    assert "would" in condition["message"]
    assert node.control.phase() == "Awake"
    assert not node.control.status()["hold"]["attached"]


def open_files(pid):
    with open(f"/proc/{pid}/limits", encoding="ascii") as limits:
        [line] = [line for line in limits if line.startswith("Max open files")]
    return line.split()[3:5]


def test_the_daemon_takes_all_the_descriptors_it_may_have_and_its_targets_do_not(node):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft // 2, hard))
    try:
        node.start(policy())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    node.control.wake()
    node.control.until_phase("Awake")

    assert open_files(node.daemon.pid) == [str(hard), str(hard)]
    assert open_files(node.pids("web")[0]) == [str(soft // 2), str(hard)]
