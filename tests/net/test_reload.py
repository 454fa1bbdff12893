# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: what changed takes effect, what did not is not disturbed, and a mistake stays its own."""
import subprocess

import pytest

from machine import build_directory, policy
from machine.client import finish
from machine.policy import server

BROKEN = """\
apiVersion: lull.dev/v1alpha1
kind: ScaleToZero
metadata: {name: broken}
spec:
  listen: [tcp/0.0.0.0:8099]
  target: {kind: Process, command: [sleep, infinity]}
  idle:
    after: 5 minutes
"""


def on(port, name, **spec):
    listen = [f"tcp/0.0.0.0:{port}"]
    return policy(name, listen, server(listen=listen), **spec)


def wake(node, port, name):
    attempt = node.client().connect(port)
    answer = attempt.ask()
    node.control.until_phase("Awake", name)
    return answer


def reload(node, holds, what):
    node.daemon.reload()
    return node.control.until(holds, 5, what)


def test_an_unchanged_policy_is_not_disturbed(node):
    node.start(on(8080, "web"), on(8081, "blog"))
    wake(node, 8080, "web")
    before = node.control.policy("web")

    node.write_policy(on(8082, "blog"), "blog")
    reload(node, lambda: node.control.policy("blog")["listen"] == ["tcp/0.0.0.0:8082"], "the changed policy")

    after = node.control.policy("web")
    assert {key: after[key] for key in ("phase", "since", "target")} == {key: before[key] for key in ("phase", "since", "target")}
    assert not node.client().connect(8081).connected
    assert node.client().connect(8082).connected


def test_an_added_policy_is_held_for(node):
    node.start(on(8080, "web"))

    node.write_policy(on(8081, "blog"), "blog")
    reload(node, lambda: "blog" in node.control.policies(), "the added policy")

    attempt = node.client().connect(8081)
    assert b"200 OK" in attempt.ask()
    assert attempt.retransmissions == 0


def test_a_removed_policy_that_sleeps_is_woken_first(node):
    node.start(on(8080, "web"), on(8081, "blog"))

    (node.policy_directory / "blog.yaml").unlink()
    reload(node, lambda: "blog" not in node.control.policies(), "the removal")

    assert len(node.pids("blog")) == 1
    attempt = node.client().connect(8081)
    assert b"200 OK" in attempt.ask()
    assert attempt.retransmissions == 0
    assert node.control.phase("web") == "Asleep"


def test_a_removed_policy_leaves_its_running_workload_alone(node):
    node.start(on(8080, "web"), on(8081, "blog", idle={"after": "1s"}))
    pid = wake(node, 8081, "blog")

    (node.policy_directory / "blog.yaml").unlink()
    reload(node, lambda: "blog" not in node.control.policies(), "the removal")

    assert node.client().connect(8081).ask() == pid


def test_changed_times_take_effect_without_a_restart_of_the_workload(node):
    node.start(on(8080, "web"))
    pid = wake(node, 8080, "web")

    node.write_policy(on(8080, "web", idle={"after": "2s"}), "web")
    reload(node, lambda: node.control.policy()["idle"]["required_seconds"] == 2, "the new time")

    assert node.client().connect(8080).ask() == pid
    node.control.until_phase("Asleep")


def test_a_policy_that_became_invalid_is_reported_and_harms_no_other(node):
    node.start(on(8080, "web"), on(8081, "blog"))

    node.write_policy(BROKEN, "broken")
    node.write_policy(on(8082, "blog"), "blog")
    reload(node, lambda: node.control.policy("blog")["listen"] == ["tcp/0.0.0.0:8082"], "the good part of the reload")

    [error] = node.control.status()["configuration_errors"]
    assert "broken.yaml:8: spec.idle.after:" in error
    assert '"5 minutes"' in error
    assert wake(node, 8080, "web")
    assert wake(node, 8082, "blog")


def test_good_policies_start_beside_a_bad_one(node):
    node.write_policy(BROKEN, "broken")

    node.start(on(8080, "web"))

    assert "broken.yaml:8: spec.idle.after:" in node.daemon.log()
    assert list(node.control.policies()) == ["web"]
    assert wake(node, 8080, "web")


def test_overlapping_frontends_name_both_policies(node):
    node.start(on(8080, "blog"), on(8080, "web"))

    [error] = node.control.status()["configuration_errors"]
    assert "blog" in error
    assert "tcp/0.0.0.0:8080" in error
    assert len(node.control.policies()) == 1


def test_an_address_that_is_not_local_is_an_error(node):
    node.start(on(8080, "web"), policy("far", ["tcp/203.0.113.9:8080"]))

    [error] = node.control.status()["configuration_errors"]
    assert "far.yaml" in error
    assert "203.0.113.9" in error
    assert list(node.control.policies()) == ["web"]


def check(*paths):
    return subprocess.run([build_directory() / "lulld", "--check", *paths], capture_output=True, text=True, timeout=20, check=False)


def test_check_accepts_what_is_right(tmp_path):
    path = tmp_path / "web.yaml"
    path.write_text(on(8080, "web"), encoding="utf-8")

    assert check(path).returncode == 0


def test_check_names_what_is_wrong(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN, encoding="utf-8")

    result = check(path)

    assert result.returncode != 0
    assert "broken.yaml:8: spec.idle.after:" in result.stderr


def gone(node, name):
    return lambda: name not in node.control.policies()


def test_a_removed_policy_that_cannot_be_woken_is_forgotten(node):
    node.start(on(8080, "web"), policy("blog", ["tcp/0.0.0.0:8081"], ["/nonexistent/program"]))

    (node.policy_directory / "blog.yaml").unlink()
    reload(node, gone(node, "blog"), "the removal")

    assert not node.client().connect(8081).connected


def test_a_removed_policy_that_never_listens_is_forgotten_at_its_hold_timeout(node):
    silent = server("--wait", "600000", listen=["tcp/0.0.0.0:8081"])
    node.start(on(8080, "web"), policy("blog", ["tcp/0.0.0.0:8081"], silent, wake={"holdTimeout": "1s"}))

    (node.policy_directory / "blog.yaml").unlink()
    reload(node, gone(node, "blog"), "the removal")

    assert len(node.pids("blog")) == 1


@pytest.mark.parametrize("change", [
    {"wake": {"holdTimeout": "30s"}},
    {"listen": ["tcp/0.0.0.0:8080", "tcp/0.0.0.0:8089"]},
])
def test_a_change_while_it_wakes_refuses_nobody(node, change):
    slow = server("--wait", "1500", listen=["tcp/0.0.0.0:8080"])
    node.start(policy("web", ["tcp/0.0.0.0:8080"], slow))
    attempt = node.client().begin(8080)
    node.control.until(node.control.held, 5, "a parked packet")

    node.write_policy(policy("web", **{"listen": ["tcp/0.0.0.0:8080"], "command": slow, **change}))
    reload(node, lambda: any(event["reason"] == "PolicyChanged" for event in node.control.events()), "the change")

    assert len(node.control.held()) == 1
    assert finish([attempt], 10)[0].connected
    assert b"200 OK" in attempt.ask()


def test_a_policy_whose_file_became_wrong_goes_on_as_before(node):
    node.start(on(8080, "web"), on(8081, "blog"))

    node.write_policy(BROKEN, "blog")
    reload(node, lambda: node.control.status()["configuration_errors"], "the error")

    assert node.control.phase("blog") == "Asleep"
    assert wake(node, 8081, "blog")
