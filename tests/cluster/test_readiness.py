# SPDX-License-Identifier: Apache-2.0
"""Readiness as the kubelet finds it out, and as our prober does on the same pods: the same verdict, sooner."""
import json
import os
import pathlib
import sys
import time

import pytest
from lullcluster import api, image, objects

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/kube"))

from probed import Prober  # noqa: E402  pylint: disable=wrong-import-position

TOOL = (ROOT / os.environ.get("BUILD", "build") / "tests/kube/probe").resolve()
IMAGE = "lull.test/probed:1"
NODE, PORT = "n1", 8080
LISTEN_AFTER_MS = 2000        # the kubelet's first attempt comes before, its second periodSeconds later
PERIODS = {"HTTP": 10}        # the default

HTTP = {"httpGet": {"path": "/", "port": PORT}}
PASSING = {
    "HTTP": (HTTP, {"type": "http", "path": "/"}),
    "HTTP with a header": ({"httpGet": {"path": "/header", "port": PORT, "httpHeaders": [{"name": "X-Ready", "value": "yes"}]}},
                           {"type": "http", "path": "/header", "headers": ["X-Ready: yes"]}),
    "a redirect": ({"httpGet": {"path": "/redirect", "port": PORT}}, {"type": "http", "path": "/redirect"}),
    "a redirect elsewhere": ({"httpGet": {"path": "/elsewhere", "port": PORT}}, {"type": "http", "path": "/elsewhere"}),
    "TCP": ({"tcpSocket": {"port": PORT}}, {"type": "tcp"}),
}
FAILING = {
    "a path that is not there": ({"httpGet": {"path": "/missing", "port": PORT}}, {"type": "http", "path": "/missing"}),
    "a header that is missing": ({"httpGet": {"path": "/header", "port": PORT}}, {"type": "http", "path": "/header"}),
    "HTTPS asked of HTTP": ({"httpGet": {"path": "/", "port": PORT, "scheme": "HTTPS"}}, {"type": "http", "tls": True}),
    "a port that nobody listens on": ({"tcpSocket": {"port": PORT + 1}}, {"type": "tcp", "port": PORT + 1}),
}


@pytest.fixture(name="probed", scope="session")
def fixture_probed(running, tmp_path_factory):
    """The image of images/probed.c, on every node."""
    directory = tmp_path_factory.mktemp("probed")
    image.compile_static(image.SOURCES / "probed.c", directory / "bin/probed")
    running.import_image(directory, IMAGE, ["/bin/probed"])
    return IMAGE


class App:
    """A pod with that image; the prober begins as soon as the pod has an address."""

    def __init__(self, cluster, namespace, declared, settings, listen_after_ms=LISTEN_AFTER_MS, ready_after_ms=0):
        self.cluster, self.namespace = cluster, namespace
        deployment = objects.deployment("app", node=NODE, image=IMAGE, arguments=[PORT, listen_after_ms, ready_after_ms])
        deployment["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = declared
        objects.create(cluster.api, namespace, deployment)
        pod = cluster.until_pods(namespace, lambda pods: next((pod for pod in pods if pod["status"].get("podIP")), None))
        self.address = pod["status"]["podIP"]
        self.prober = Prober(TOOL, prefix=cluster.nodes[NODE].command(), address=self.address, **{"port": PORT, **settings})

    def met(self):
        return json.loads(self.cluster.nodes[NODE].get(self.address, PORT, "/met"))

    def until_ready(self):
        """When the kubelet's verdict was to be seen in the API: CLOCK_MONOTONIC, in seconds."""
        self.cluster.ready_pods(self.namespace, 1)
        return time.monotonic()

    def until_unhealthy(self, word):
        """Waits until the kubelet has said that the probe failed, with such a word."""
        def said(events):
            return any(word in event.get("note", "") for event in events.values() if event.get("reason") == "Unhealthy")
        self.cluster.api.until(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events", said)


@pytest.fixture(name="start")
def fixture_start(cluster, namespace, probed):  # pylint: disable=unused-argument
    started = []

    def start(declared, settings, **times):
        started.append(App(cluster, namespace, declared, settings, **times))
        return started[-1]
    yield start
    try:
        assert [app.prober.close() for app in started] == [0] * len(started)
    finally:
        for app in started:
            app.prober.kill()


@pytest.mark.parametrize("kind", PASSING)
def test_what_the_kubelet_finds_ready_is_found_ready_before(start, kind):
    declared, settings = PASSING[kind]
    app = start({**declared, "periodSeconds": PERIODS.get(kind, 3)}, settings)

    passed = app.prober.next()
    found = app.prober.began + passed["seconds"]
    ready = app.until_ready()

    listening = app.met()["listening"] / 1e9
    print(f"{kind}: found {(found - listening) * 1000:.1f} ms after it listened; Ready {ready - listening:.3f} s after")
    assert listening < found < ready


@pytest.mark.parametrize("kind", FAILING)
def test_what_the_kubelet_finds_not_ready_is_not_found_ready(start, kind):
    app = start(*FAILING[kind], listen_after_ms=0)

    app.until_unhealthy("Readiness probe failed")
    state = app.prober.until_attempts(20)

    assert state["problem"]
    assert api.condition(app.cluster.api.get(f"/api/v1/namespaces/{app.namespace}/pods")["items"][0], "Ready") == "False"


def test_an_application_that_fails_first_is_found_ready_when_it_no_more_does(start):
    app = start(*PASSING["HTTP"], listen_after_ms=0, ready_after_ms=3000)
    app.prober.until_attempts(2)
    assert app.prober.until_attempts(30)["problem"] == "HTTP status 503"

    passed = app.prober.next()

    met = app.met()
    print(f"found {(app.prober.began + passed['seconds'] - met['ready'] / 1e9) * 1000:.1f} ms after it was ready")
    assert passed["problem"] == "HTTP status 503"
    assert app.prober.began + passed["seconds"] > met["ready"] / 1e9


def test_the_application_sees_the_same_request_from_both(start):
    app = start(*PASSING["HTTP with a header"])
    app.prober.next()
    app.until_ready()

    met = app.met()
    heads = {who: sorted(met[who].split("\r\n")) for who in ("kubelet", "lull")}
    agents = {who: next(line for line in head if line.startswith("User-Agent: ")) for who, head in heads.items()}

    assert agents["lull"].startswith(agents["kubelet"])
    for who, head in heads.items():
        head.remove(agents[who])
    assert heads["lull"] == heads["kubelet"]
