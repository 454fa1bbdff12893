# SPDX-License-Identifier: Apache-2.0
"""Who may wake a service and keep it awake: ignore and wake.from."""
import errno

import pytest

from machine import policy
from machine.policy import server

SOURCE = {"welcome": {4: "192.0.2.2", 6: "2001:db8:1::2"}, "ignored": {4: "192.0.2.3", 6: "2001:db8:1::3"}}
TWO_PORTS = ["tcp/0.0.0.0:8080", "tcp/0.0.0.0:9090"]
families = pytest.mark.parametrize("family", [4, 6])


def refused_at_once(attempt):
    return attempt.error == errno.ECONNREFUSED and attempt.seconds < 0.5


def chatter_until_asleep(node, chatterer):
    """Requests without a pause, until the service sleeps all the same."""
    def asleep():
        try:
            chatterer.ask()
        except OSError:
            pass  # its server has been stopped
        return node.control.phase() == "Asleep"
    node.control.until(asleep, 10, "sleep in spite of an ignored client")


@families
def test_an_ignored_source_is_refused_and_wakes_nobody(node, family):
    node.start(policy(ignore=[{"cidr": "192.0.2.3/32"}, {"cidr": "2001:db8:1::3/128"}]))

    assert refused_at_once(node.client().connect(8080, family, source=SOURCE["ignored"][family]))
    assert node.control.phase() == "Asleep"
    assert node.control.packets("held") == 0
    assert node.client().connect(8080, family, source=SOURCE["welcome"][family]).connected


@families
def test_an_ignored_source_keeps_nobody_awake(node, family):
    node.start(policy(idle={"after": "1s"}, ignore=[{"cidr": "192.0.2.3/32"}, {"cidr": "2001:db8:1::3/128"}]))
    assert node.client().connect(8080, family, source=SOURCE["welcome"][family]).connected
    node.control.until_phase("Awake")
    chatterer = node.client().connect(8080, family, source=SOURCE["ignored"][family])
    assert b"200 OK" in chatterer.ask()

    chatter_until_asleep(node, chatterer)


def test_an_ignored_port_wakes_nobody(node):
    node.start(policy(listen=TWO_PORTS, ignore=[{"port": 9090}]))

    assert refused_at_once(node.client().connect(9090))
    assert node.control.phase() == "Asleep"
    assert node.client().connect(8080).connected


def test_an_ignored_port_keeps_nobody_awake(node):
    node.start(policy(listen=TWO_PORTS, idle={"after": "1s"}, ignore=[{"port": 9090}]))
    assert node.client().connect(8080).connected
    node.control.until_phase("Awake")
    chatterer = node.client().connect(9090)
    assert b"200 OK" in chatterer.ask()

    chatter_until_asleep(node, chatterer)


@families
def test_only_sources_in_wake_from_wake(node, family):
    node.start(policy(wake={"from": ["192.0.2.2/32", "2001:db8:1::2/128"]}))

    assert refused_at_once(node.client().connect(8080, family, source=SOURCE["ignored"][family]))
    assert refused_at_once(node.client("loopback").connect(8080, family))
    assert node.control.phase() == "Asleep"
    assert node.client().connect(8080, family, source=SOURCE["welcome"][family]).connected


def test_rules_of_one_policy_do_not_touch_another(node):
    node.start(policy("web", ["tcp/0.0.0.0:8080"], wake={"from": ["203.0.113.0/24"]}),
               policy("blog", ["tcp/0.0.0.0:8081"]))

    assert refused_at_once(node.client().connect(8080))
    assert node.client().connect(8081).connected
    assert node.control.phase("web") == "Asleep"


def test_rules_change_with_the_policy(node):
    node.start(policy(wake={"from": ["203.0.113.0/24"]}))
    assert refused_at_once(node.client().connect(8080))

    node.write_policy(policy(wake={"from": ["192.0.2.0/24"]}))
    node.daemon.reload()

    def answered():
        attempt = node.client().connect(8080)
        return attempt.connected and attempt
    assert b"200 OK" in node.control.until(answered, 5, "an answer").ask()


def test_a_service_without_rules_is_woken_by_everybody(node):
    node.start(policy(command=server()))

    assert node.client("bridged").connect(8080).connected
