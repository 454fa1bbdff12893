# SPDX-License-Identifier: Apache-2.0
"""ScaleToZero and NodeActivity on a real API server: what it accepts, fills in, refuses and shows."""
import json
import re
import subprocess

import pytest

from clients import ROOT, TOOLS
from lullcluster import api

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/lull.dev/v1alpha1/namespaces/{}/scaletozeros"
NOWHERE = POLICIES.format("default")  # for what is not kept
ACTIVITIES = "/apis/lull.dev/v1alpha1/nodeactivities"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}

STATUS = {
    "phase": "Waking", "epoch": 4, "holding": True, "since": "2026-01-31T12:00:00.250000Z", "replicasBefore": 3,
    "frontends": [
        {"address": "10.0.0.1", "port": 80, "protocol": "TCP", "origin": "ClusterIP", "backend": "web/http", "local": False,
         "affinity": True, "sourceRanges": ["10.0.0.0/8"]},
        {"address": "::", "port": 30053, "protocol": "UDP", "origin": "NodePort", "backend": "web/dns", "local": True, "affinity": False},
        {"address": "192.0.2.11", "port": 42000, "protocol": "TCP", "origin": "Parking", "backend": "web/http", "node": "n1",
         "local": False, "affinity": False}],
    "endpoints": [
        {"address": "10.77.1.5", "node": "n1", "pod": "web-1", "podUID": "u1", "ready": True, "startedAt": "2026-01-31T12:00:01.000000Z",
         "ports": [{"backend": "web/http", "port": 8080, "protocol": "TCP"}],
         "probe": {"type": "HTTP", "port": 8081, "tls": True, "path": "/ready", "host": "web.example", "headers": ["X-A: b"],
                   "timeoutSeconds": 2, "initialDelaySeconds": 5, "successThreshold": 3}}],
    "selector": "app=web", "ports": [{"backend": "web/http", "port": 8080, "protocol": "TCP"}], "ignored": ["10.77.1.9/32"],
    "lastWake": {"time": "2026-01-31T12:00:00.000001Z", "cause": "Packet", "source": "10.77.1.6:40000", "node": "n2"},
    "lastSleep": {"time": "2026-01-31T11:00:00.000000Z", "reason": "idle for 5m"},
    "savedReplicaSeconds": 1234.5, "gpusBefore": 2, "savedGpuSeconds": 99.5, "idleFactor": 4, "observedGeneration": 1,
    "conditions": [
        {"type": "Autoscaled", "status": "False", "reason": "Fine", "message": "", "lastTransitionTime": "2026-01-31T12:00:00.000000Z",
         "observedGeneration": 1},
        {"type": "WakeFailed", "status": "True", "reason": "Unschedulable", "message": "0/2 nodes are available",
         "lastTransitionTime": "2026-01-31T12:00:00.000000Z", "observedGeneration": 1}]}

ACTIVITY = {
    "programmed": 4711, "instance": "lull-agent-x_5f", "problem": "hooks cannot be attached",
    "demands": [{"policy": "shop/web", "epoch": 4, "firstPacket": "2026-01-31T12:00:00.123456Z", "held": 3, "source": "10.77.1.6:40000"}],
    "workloads": [{"policy": "shop/web", "state": "Idle", "quietEpoch": -1, "since": "2026-01-31T12:00:00.000000Z", "pods": 2,
                   "openRequests": 1, "reason": "silent",
                   "gpu": {"state": "Idle", "devices": 2, "since": "2026-01-31T12:00:00.000000Z", "wouldSleep": True}}]}


def lull(command, *objects):
    """What lull makes of objects (tests/kube/objects.c)."""
    done = subprocess.run([TOOLS / "kube/objects", command], input="".join(json.dumps(item) + "\n" for item in objects), text=True,
                          capture_output=True, check=True, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def spec(**fields):
    return {"target": TARGET, **fields}


def policy(wanted, name="web"):
    return {"apiVersion": "lull.dev/v1alpha1", "kind": "ScaleToZero", "metadata": {"name": name}, "spec": wanted}


@pytest.fixture(name="defined", autouse=True, scope="module")
def fixture_defined(running):
    """Both definitions, served. They stay: who shares the cluster may have objects of them."""
    running.kubectl("apply", "--server-side", "--force-conflicts", "-f", ROOT / "deploy/crds")

    def established(definitions):
        found = [definitions.get(f"/{name}.lull.dev") for name in ("scaletozeros", "nodeactivities")]
        return all(item and api.condition(item, "Established") == "True" for item in found) and found
    return running.api.until(DEFINITIONS, established)


@pytest.fixture(name="namespace")
def fixture_namespace(running):
    """A namespace for one test. Unlike the one of conftest.py it leaves faults and servers alone: nothing here makes any."""
    name = running.make_namespace()
    yield name
    running.remove_namespace(name)


@pytest.fixture(name="policies")
def fixture_policies(namespace):
    return POLICIES.format(namespace)


@pytest.fixture(name="activity")
def fixture_activity(running, namespace):
    """A NodeActivity: its path. Named after the namespace, so that it is nobody else's."""
    running.api.post(ACTIVITIES, {"apiVersion": "lull.dev/v1alpha1", "kind": "NodeActivity", "metadata": {"name": namespace}})
    yield f"{ACTIVITIES}/{namespace}"
    running.api.delete(f"{ACTIVITIES}/{namespace}")


def refusal(running, body):
    with pytest.raises(api.ApiError) as refused:
        running.api.post(NOWHERE, body, dryRun="All", fieldValidation="Strict")
    assert refused.value.code in (400, 422)
    return json.loads(refused.value.body)["message"]


def test_the_definitions_are_accepted_without_reserve(defined):
    for definition in defined:
        assert api.condition(definition, "NamesAccepted") == "True"
        assert api.condition(definition, "NonStructuralSchema") is None
        assert api.condition(definition, "KubernetesAPIApprovalPolicyConformant") is None


def test_what_is_left_out_is_filled_in(running, policies):
    made = running.api.post(policies, policy(spec()))

    assert made["spec"] == {
        "target": TARGET, "scaledBy": "Lull", "dryRun": False,
        "idle": {"after": "5m", "requestTimeout": "30m", "connections": "Ignore", "outbound": "Ignore", "cpu": "250m", "minAwake": "1m",
                 "gpu": {"after": "30m", "onIdle": "Report"}},
        "wake": {"holdTimeout": "60s", "maxHeld": 1024, "parking": True, "readiness": "Probe"}}
    assert lull("read", made["spec"]) == [{"problem": None, "fresh": True}]


@pytest.mark.parametrize("wanted", [
    spec(target=JOB),
    spec(target={"apiVersion": "example.com/v1", "kind": "Job", "name": "chess.eu"}, wake={"replicas": 100000}),
    spec(target={"apiVersion": "example.com/v1beta1", "kind": "DaemonSet", "name": "x"}),
    spec(target={"apiVersion": "v1", "kind": "ReplicationController", "name": "x"}, scaledBy="HorizontalPodAutoscaler"),
    spec(services=["web", "api-2"]),
    spec(idle={"after": "1ms", "requestTimeout": "8760h", "minAwake": "0", "cpu": 2}),
    spec(idle={"after": "1.5h", "requestTimeout": ".5s", "minAwake": "1h30m", "cpu": "0.25"}),
    spec(idle={"after": "5.s", "requestTimeout": "1\u00b5s999us", "minAwake": "0s", "cpu": "999999m"}),
    spec(wake={"holdTimeout": "1s", "maxHeld": 4096, "from": ["10.0.0.0/8", "fd00::/8", "192.0.2.1", "::1", "0.0.0.0/0"]}),
    spec(wake={"holdTimeout": "10m", "maxHeld": 1, "readiness": "Ready", "parking": False}),
    spec(ignore=[{"podSelector": {}}, {"cidr": "10.0.0.1", "port": 65535}, {"namespaceSelector": {"matchLabels": {"a.b/c": ""}}}]),
    spec(ignore=[{"podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", ""]},
                                                       {"key": "b", "operator": "DoesNotExist"}]}}]),
], ids=json.dumps)
def test_what_the_server_accepts_lull_reads(running, wanted):
    made = running.api.post(NOWHERE, policy(wanted), dryRun="All", fieldValidation="Strict")

    assert lull("read", made["spec"])[0]["problem"] is None


SAME = None  # lull's reader says the same of that value
DURATION = 'is not a duration; write it like "5m" or "1m30s"'


@pytest.mark.parametrize("wanted, field, message", [
    ({}, "spec.target", "Required value"),
    (spec(target={"kind": "Deployment", "name": "web"}), "spec.target.apiVersion", "Required value"),
    (spec(target={"apiVersion": "apps/", "kind": "Deployment", "name": "web"}), "spec.target.apiVersion", SAME),
    (spec(target={"apiVersion": "apps", "kind": "StatefulSet", "name": "web"}), "spec.target.apiVersion", SAME),
    (spec(target={"apiVersion": "apps/v1", "kind": "Job", "name": "web"}), "spec.target.apiVersion", SAME),
    (spec(target={"apiVersion": "apps/v1", "kind": "deployment", "name": "web"}), "spec.target.kind", SAME),
    (spec(target={"apiVersion": "apps/v1", "kind": "Deployment", "name": "Web"}), "spec.target.name", SAME),
    (spec(target={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web"}), "spec.target.kind",
     "a DaemonSet cannot be put to sleep: it has a pod on every node"),
    (spec(target={"apiVersion": "batch/v1", "kind": "CronJob", "name": "web"}), "spec.target.kind",
     "a CronJob cannot be put to sleep: its Jobs come and go by the clock"),
    (spec(target={"apiVersion": "v1", "kind": "Pod", "name": "web"}), "spec.target.kind",
     "a Pod cannot be put to sleep: name the Deployment or what else makes it"),
    (spec(target=JOB, wake={"replicas": 2}), "spec.wake.replicas", "cannot be given for a Job, which is resumed as it was; leave it out"),
    (spec(target=JOB, scaledBy="HorizontalPodAutoscaler"), "spec.scaledBy", "does not scale Jobs; leave it out"),
    (spec(services=[]), "spec.services", "at least 1 items"),
    (spec(services=["web"] * 2), "spec.services[1]", 'Duplicate value: "web"'),
    (spec(services=["web.shop"]), "spec.services[0]", SAME),
    (spec(services=[f"web-{n}" for n in range(65)]), "spec.services", "at most 64 items"),
    (spec(idle={"after": "5 minutes"}), "spec.idle.after", f'"5 minutes": {DURATION}'),
    (spec(idle={"after": "-5m"}), "spec.idle.after", SAME),
    (spec(idle={"after": "1d"}), "spec.idle.after", SAME),
    (spec(idle={"after": "0"}), "spec.idle.after", SAME),
    (spec(idle={"after": "8760h1s"}), "spec.idle.after", SAME),
    (spec(idle={"requestTimeout": "999us"}), "spec.idle.requestTimeout", SAME),
    (spec(idle={"minAwake": ""}), "spec.idle.minAwake", DURATION),
    (spec(idle={"minAwake": "9000h"}), "spec.idle.minAwake", SAME),
    (spec(idle={"minAwake": "99999999999h"}), "spec.idle.minAwake", "is out of range; write a duration from 0s to 8760h"),
    (spec(idle={"connections": "hold"}), "spec.idle.connections", 'supported values: "Ignore", "Hold"'),
    (spec(idle={"outbound": 1}), "spec.idle.outbound", "must be of type string"),
    (spec(idle={"cpu": "1e3"}), "spec.idle.cpu", '"1e3": is not an amount of CPU; write it like 250m or "0.25", and 0 for no limit'),
    (spec(idle={"cpu": -1}), "spec.idle.cpu", "-1: is not an amount of CPU"),
    (spec(idle={"gpus": {}}), "spec.idle.gpus", "unknown field"),
    (spec(idle={"gpu": {"after": "999ms"}}), "spec.idle.gpu.after", SAME),
    (spec(idle={"gpu": {"onIdle": "sleep"}}), "spec.idle.gpu.onIdle", 'supported values: "Report", "Sleep"'),
    (spec(wake={"holdTimeout": "999ms"}), "spec.wake.holdTimeout", SAME),
    (spec(wake={"holdTimeout": "601s"}), "spec.wake.holdTimeout", SAME),
    (spec(wake={"maxHeld": 0}), "spec.wake.maxHeld", "0: spec.wake.maxHeld in body should be greater than or equal to 1"),
    (spec(wake={"maxHeld": 4097}), "spec.wake.maxHeld", "4097: spec.wake.maxHeld in body should be less than or equal to 4096"),
    (spec(wake={"replicas": 0}), "spec.wake.replicas", "greater than or equal to 1"),
    (spec(wake={"replicas": 100001}), "spec.wake.replicas", "less than or equal to 100000"),
    (spec(wake={"from": []}), "spec.wake.from", "at least 1 items"),
    (spec(wake={"from": ["10.0.0.0/8", "10.0.0.1/8"]}), "spec.wake.from[1]", SAME),
    (spec(wake={"from": ["localhost"]}), "spec.wake.from[0]",
     '"localhost": is not a network; write it like 10.0.0.0/8 or 2001:db8::/32'),
    (spec(wake={"parking": "no"}), "spec.wake.parking", "must be of type boolean"),
    (spec(wake={"readiness": "Probed"}), "spec.wake.readiness", 'supported values: "Probe", "Ready"'),
    (spec(ignore=[{}]), "spec.ignore[0]", "would ignore everybody; give podSelector, namespaceSelector, cidr or port"),
    (spec(ignore=[{"podSelector": {}, "cidr": "10.0.0.0/8"}]), "spec.ignore[0]", "has selectors beside cidr or port; make two entries of it"),
    (spec(ignore=[{"namespaceSelector": {}, "port": 1}]), "spec.ignore[0]", "has selectors beside cidr or port; make two entries of it"),
    (spec(ignore=[{"cidr": "10.0.0.1/8"}]), "spec.ignore[0].cidr", SAME),
    (spec(ignore=[{"port": 0}]), "spec.ignore[0].port", "greater than or equal to 1"),
    (spec(ignore=[{"port": 65536}]), "spec.ignore[0].port", "less than or equal to 65535"),
    (spec(ignore=[{"podSelector": {"matchLabels": {"a b": "c"}}}]), "spec.ignore[0].podSelector.matchLabels",
     "has a key that is none of a label; write it like app or example.com/app"),
    (spec(ignore=[{"podSelector": {"matchLabels": {"a": "b,c"}}}]), "spec.ignore[0].podSelector.matchLabels[a]",
     '"b,c": is not the value of a label; use letters, digits, "-", "_" and ".", 63 at most'),
    (spec(ignore=[{"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}]),
     "spec.ignore[0].namespaceSelector.matchExpressions[0].operator", 'supported values: "In", "NotIn", "Exists", "DoesNotExist"'),
    (spec(ignore=[{"podSelector": {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}}]),
     "spec.ignore[0].podSelector.matchExpressions[0].key", "should match"),
    (spec(ignore=[{"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]),
     "spec.ignore[0].podSelector.matchExpressions[0]", "has no values; In and NotIn need at least one"),
    (spec(ignore=[{"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}]),
     "spec.ignore[0].podSelector.matchExpressions[0]", "has values; Exists and DoesNotExist take none"),
    (spec(scaledBy="Keda"), "spec.scaledBy", 'supported values: "Lull", "HorizontalPodAutoscaler"'),
    (spec(dryRun="yes"), "spec.dryRun", "must be of type boolean"),
    (spec(listen=["tcp/0.0.0.0:80"]), "spec.listen", "unknown field"),
    (spec(idel={}), "spec.idel", "unknown field"),
], ids=json.dumps)
def test_what_is_wrong_is_refused_with_what_would_be_right(running, wanted, field, message):
    said = refusal(running, policy(wanted))
    problem = lull("read", wanted)[0]["problem"]

    assert problem, "the server refuses what lull would read"
    assert field in said
    if message is SAME:
        place, _, text = problem.partition(": ")
        value, advice = re.fullmatch('"(.*?)" (.*)', text).groups()
        assert place == field
        assert value in said and advice in said
    else:
        assert message in said


def test_names_are_short_enough_for_labels(running):
    assert running.api.post(NOWHERE, policy(spec(), "a" * 63), dryRun="All")
    assert "metadata.name is too long for a policy; use 63 characters at most" in refusal(running, policy(spec(), "a" * 64))


def test_the_target_stays_as_it_is(running, policies):
    running.api.post(policies, policy(spec()))

    running.api.patch(f"{policies}/web", {"spec": {"idle": {"after": "6m"}}})
    with pytest.raises(api.ApiError, match="spec.target: .*cannot be changed; make another policy for the new target and delete this one"):
        running.api.patch(f"{policies}/web", {"spec": {"target": {"name": "api"}}})


def test_the_status_is_a_thing_of_its_own(running, policies):
    running.api.post(policies, {**policy(spec()), "status": STATUS})
    assert "status" not in running.api.get(f"{policies}/web")

    running.api.patch(f"{policies}/web/status", {"spec": {"dryRun": True}, "status": {"phase": "Asleep"}})
    running.api.patch(f"{policies}/web", {"spec": {"dryRun": False}, "status": {"phase": "Awake"}})

    held = running.api.get(f"{policies}/web")
    assert held["status"] == {"phase": "Asleep"}
    assert held["spec"]["dryRun"] is False
    assert held["metadata"]["generation"] == 1


def test_a_status_comes_back_as_lull_wrote_it(running, policies):
    made = running.api.post(policies, policy(spec()))
    written, = lull("status", {**made, "status": STATUS})
    assert written == STATUS

    held = running.api.patch(f"{policies}/web/status", {"status": written}, fieldValidation="Strict")
    assert held["status"] == STATUS
    assert lull("status", held) == [STATUS]


def test_an_empty_status_removes_what_was_there(running, policies):
    empty, = lull("status", running.api.post(policies, policy(spec())))
    running.api.patch(f"{policies}/web/status", {"status": STATUS})

    held = running.api.patch(f"{policies}/web/status", {"status": empty}, fieldValidation="Strict")

    assert held["status"] == {key: value for key, value in empty.items() if value is not None}
    assert {key for key, value in empty.items() if value is None} == {
        "since", "replicasBefore", "gpusBefore", "savedGpuSeconds", "lastWake", "lastSleep"}


@pytest.mark.parametrize("status, field", [
    ({"phase": "Dozing"}, "status.phase"),
    ({"since": "yesterday"}, "status.since"),
    ({"endpoints": [{"address": f"10.0.0.{n}"} for n in range(17)]}, "status.endpoints"),
    ({"conditions": [{"type": "A", "status": "True"}] * 2}, "status.conditions[1]"),
    ({"frontends": [{"address": "::", "port": 80, "origin": "Moon", "backend": "a/b"}]}, "status.frontends[0].origin"),
], ids=json.dumps)
def test_a_wrong_status_is_refused(running, policies, status, field):
    running.api.post(policies, policy(spec()))
    with pytest.raises(api.ApiError) as refused:
        running.api.patch(f"{policies}/web/status", {"status": status})
    assert field in json.loads(refused.value.body)["message"]


def test_kubectl_shows_what_it_does(running, namespace, policies):
    running.api.post(policies, policy(spec()))
    running.api.patch(f"{policies}/web/status", {"status": STATUS})

    header, row = running.kubectl("get", "stz", "-n", namespace).splitlines()
    assert header.split() == "NAME PHASE TARGET REPLICAS BEFORE SINCE LAST WAKE PROBLEM".split()
    cells = row.split()
    assert cells[:4] == ["web", "Waking", "web", "3"]
    assert cells[6] == "WakeFailed"

    header, row = running.kubectl("get", "stz", "-n", namespace, "-o", "wide").splitlines()
    assert header.split()[8:] == "PROBLEM KIND WOKEN BY REASON MESSAGE".split()
    for shown in ("Deployment", "10.77.1.6:40000", "Unschedulable", "0/2 nodes are available"):
        assert shown in row


def test_policies_are_listed_with_all_else(running, namespace, policies):
    running.api.post(policies, policy(spec()))

    for category in ("all", "lull"):
        assert "scaletozero.lull.dev/web" in running.kubectl("get", category, "-n", namespace, "-o", "name")


def test_kubectl_explains_each_field(running):
    assert "It cannot be changed later." in " ".join(running.kubectl("explain", "stz.spec.target").split())
    assert "quietEpoch" in running.kubectl("explain", "nodeactivity.status.workloads")


def test_an_activity_comes_back_as_lull_wrote_it(running, activity):
    made = running.api.get(activity)
    written, = lull("activity", {**made, "status": ACTIVITY})
    assert written == ACTIVITY

    held = running.api.patch(f"{activity}/status", {"status": written}, fieldValidation="Strict")
    assert held["status"] == ACTIVITY

    empty, = lull("activity", made)
    held = running.api.patch(f"{activity}/status", {"status": empty}, fieldValidation="Strict")
    assert held["status"] == {"programmed": 0, "demands": [], "workloads": []}


@pytest.mark.parametrize("status, field", [
    ({"programmed": -1}, "status.programmed"),
    ({"workloads": [{"policy": "a/b", "state": "Busy"}]}, "status.workloads[0].state"),
    ({"workloads": [{"state": "Idle"}]}, "status.workloads[0].policy"),
    ({"demands": [{"policy": "a/b"}] * 2}, "status.demands[1]"),
    ({"demands": [{"policy": f"a/{n}"} for n in range(1025)]}, "status.demands"),
], ids=lambda value: json.dumps(value)[:60])
def test_a_wrong_activity_is_refused(running, activity, status, field):
    with pytest.raises(api.ApiError) as refused:
        running.api.patch(f"{activity}/status", {"status": status})
    assert field in json.loads(refused.value.body)["message"]


def test_kubectl_shows_what_a_node_cannot_do(running, namespace, activity):
    running.api.patch(f"{activity}/status", {"status": ACTIVITY})

    header, row = running.kubectl("get", "nodeact", namespace).splitlines()
    assert header.split() == ["NAME", "PROGRAMMED", "PROBLEM", "AGE"]
    assert row.split()[:2] == [namespace, "4711"] and "hooks cannot be attached" in row
