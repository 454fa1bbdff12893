# SPDX-License-Identifier: Apache-2.0
"""The daemon may go: as planned without anybody noticing, and at once without anybody hanging."""
import errno
import json
import pathlib
import subprocess

from machine import policy
from machine.client import finish
from machine.policy import server

ROOT = pathlib.Path(__file__).resolve().parents[2]


def attached_programs(cgroup):
    bpftool = subprocess.run([ROOT / "tools/find-bpftool"], capture_output=True, text=True, check=True).stdout.strip()
    shown = subprocess.run([bpftool, "--json", "cgroup", "show", cgroup], capture_output=True, text=True, check=True).stdout
    return len(json.loads(shown.strip() or "[]"))


def test_a_planned_restart_while_holding_refuses_nobody(node, place):
    kind, family = place
    node.start(policy(command=server("--wait", "1500")))
    before = node.client(kind).begin(8080, family)
    node.control.until(node.control.held, 5, "a parked packet")

    assert node.daemon.stop() == 0
    between = node.client(kind).begin(8080, family)
    node.start()

    for attempt in finish([before, between, node.client(kind).begin(8080, family)], 20):
        assert attempt.connected, attempt
        assert b"200 OK" in attempt.ask()


def test_a_planned_restart_may_take_longer_than_a_daemon_may_be_silent(node):
    node.start(policy())
    assert node.daemon.stop() == 0

    attempt = node.client().begin(8080)  # meets no daemon
    finish([attempt], 4.5)
    assert attempt.under_way, attempt
    node.start()

    finish([attempt], 10)
    assert attempt.connected, attempt


def test_traffic_behaves_as_without_lull_within_three_seconds_of_a_crash(node):
    node.start(policy(command=server("--wait", "600000")))
    held = node.client().begin(8080)
    node.control.until(node.control.held, 5, "a parked packet")

    node.daemon.kill()

    finish([held], 6)
    assert held.error == errno.ECONNREFUSED, held
    assert held.seconds < 4.5  # three seconds without a heartbeat, and the retransmission that follows them
    late = node.client().connect(8080)
    assert late.error == errno.ECONNREFUSED
    assert late.seconds < 0.5


def test_a_daemon_after_a_crash_resumes_holding_and_serves(node):
    node.start(policy(command=server("--wait", "1000")))
    held = node.client().begin(8080)
    node.control.until(node.control.held, 5, "a parked packet")
    node.daemon.kill()

    node.start()
    attempt = node.client().begin(8080)

    for client in finish([held, attempt], 10):
        assert client.connected, client
        assert b"200 OK" in client.ask()


def test_a_daemon_after_a_crash_holds_for_what_sleeps(node):
    node.start(policy())
    node.daemon.kill()

    node.start()
    attempt = node.client().connect(8080)

    assert attempt.connected, attempt
    assert attempt.retransmissions == 0


def test_the_workload_outlives_the_daemon_and_is_adopted(node):
    node.start(policy())
    attempt = node.client().connect(8080)
    pid = attempt.ask()
    node.control.until_phase("Awake")

    assert node.daemon.stop() == 0
    assert attempt.ask() == pid  # nobody there but the service
    node.start()

    assert node.control.phase() == "Awake"
    assert node.control.policy()["target"]["pid"] == int(pid.split()[-1])
    assert attempt.ask() == pid
    assert node.client().connect(8080).ask() == pid


def test_an_adopted_workload_can_be_put_to_sleep(node):
    node.start(policy())
    node.client().connect(8080).ask()
    node.control.until_phase("Awake")
    node.daemon.kill()
    node.start()

    node.control.sleep()

    node.control.until_phase("Asleep")
    node.control.until(lambda: node.pids("web") == [], 5, "the end of the process")
    assert node.client().connect(8080).connected


def test_an_adopted_workload_sleeps_when_idle(node):
    node.start(policy(idle={"after": "1s", "connections": "Hold"}))
    attempt = node.client().connect(8080)
    attempt.ask()
    node.control.until_phase("Awake")
    assert node.daemon.stop() == 0
    node.start()

    def three_seconds_awake():
        assert node.control.phase() == "Awake"  # the open connection is still known
        return node.control.policy()["since_seconds"] > 3
    node.control.until(three_seconds_awake, 10)
    attempt.close()

    node.control.until_phase("Asleep")


def test_what_ran_under_a_policy_that_is_gone_at_the_next_start_is_watched_no_longer(node):
    node.start(policy())
    node.client().connect(8080).ask()
    node.control.until_phase("Awake")
    workload = node.cgroup.path / "web"
    assert attached_programs(workload) > 0

    assert node.daemon.stop() == 0
    assert attached_programs(workload) > 0
    (node.policy_directory / "web.yaml").unlink()
    node.start(policy("other", ["tcp/[::]:8081"]))

    assert attached_programs(workload) == 0
    assert b"200 OK" in node.client().connect(8080).ask()  # it runs on, and is none of lull's business


def test_a_second_daemon_on_the_same_run_directory_says_what_is_wrong(node):
    first = node.start(policy())

    second = node.start(wait=False)

    assert second.wait() != 0
    assert str(node.run_directory) in second.log()
    assert "another lulld" in second.log()
    assert first.control.phase() == "Asleep"
    attempt = node.client().connect(8080)
    assert attempt.connected, attempt
    assert attempt.retransmissions == 0


def test_a_stop_that_a_restart_interrupted_is_finished(node):
    stubborn = " ".join(["trap '' TERM; exec", *server()])
    node.start(policy(command=["/bin/sh", "-c", stubborn]))
    first = node.client().connect(8080).ask()
    node.control.until_phase("Awake")
    node.control.sleep()
    node.control.until_phase("Asleep")

    assert node.daemon.stop() == 0
    assert node.pids("web")
    node.start()

    assert node.control.phase() == "Asleep"
    node.control.until(lambda: node.pids("web") == [], 5, "the end of the process")
    attempt = node.client().connect(8080)
    assert attempt.connected, attempt
    assert attempt.ask() != first


def test_nothing_stays_attached_for_a_policy_that_went_while_no_daemon_ran(node):
    node.start(policy(), policy("blog", ["tcp/0.0.0.0:8081"]))
    assert node.client().connect(8081).connected
    node.control.until_phase("Awake", "blog")
    assert node.daemon.stop() == 0
    assert (node.bpffs / "activity" / "blog").exists()

    (node.policy_directory / "blog.yaml").unlink()
    node.start()

    assert not (node.bpffs / "activity" / "blog").exists()
    assert len(node.pids("blog")) == 1
