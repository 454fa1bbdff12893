# SPDX-License-Identifier: Apache-2.0
"""What can be a policy's target, on a real API server: each kind is followed, woken without a guard and put to sleep with one."""
import secrets

import clients
import pytest

LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "pause", "image": "lull.test/pause:1",
                                                                     "imagePullPolicy": "Never"}]}}
SPEC = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
WORKLOADS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "ReplicaSet": "replicasets"}


@pytest.fixture(name="follow")
def fixture_follow(cluster, namespace):
    """Starts the program scale for a target, and ends it in good order."""
    started = []

    def start(api_version, kind, name="web"):
        started.append(clients.Said(cluster.client, clients.TOOLS / "cluster/scale", cluster.kubeconfig(), namespace, api_version, kind,
                                    name))
        return started[-1]
    yield start
    assert [one.end() for one in started] == [0] * len(started)


def until_state(target, **members):
    return target.until_event("state", known=True, stale=False, **members)


def scale(target, words):
    target.process.stdin.write(f"scale {words}\n")
    target.process.stdin.flush()
    return target.until_event("scaled")


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_workload_is_put_to_sleep_and_woken(cluster, namespace, follow, kind):
    path = f"/apis/apps/v1/namespaces/{namespace}/{WORKLOADS[kind]}"
    cluster.api.post(path, {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": SPEC})
    target = follow("apps/v1", kind)
    state = until_state(target, ready=2)
    assert (state["exists"], state["replicas"], state["labels"], state["selector"]) == (True, 2, LABELS, "app=web")

    assert scale(target, "0")["code"] == 200
    until_state(target, replicas=0, ready=0)
    assert cluster.api.get(f"{path}/web")["spec"]["replicas"] == 0
    assert scale(target, "1")["code"] == 200
    until_state(target, replicas=1, ready=1)
    cluster.api.delete(f"{path}/web")
    until_state(target, exists=False)


def test_a_job_is_suspended_and_resumed(cluster, namespace, follow):
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    cluster.api.post(path, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web"}, "spec": {"template": template}})
    target = follow("batch/v1", "Job")
    state = until_state(target, replicas=1, ready=1)
    assert state["labels"]["app"] == "web" and "controller-uid" in state["selector"]

    assert scale(target, "0")["code"] == 200
    until_state(target, replicas=0, ready=0)
    assert cluster.api.get(f"{path}/web")["spec"]["suspend"] is True
    assert scale(target, "5")["code"] == 200
    until_state(target, replicas=1, ready=1)


def test_a_change_to_zero_is_refused_when_somebody_has_changed_it_meanwhile(cluster, namespace, follow):
    cluster.api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {**SPEC, "replicas": 1}})
    target = follow("apps/v1", "Deployment")
    until_state(target, replicas=1, ready=1)
    target.process.stdin.write("scale 0\nscale 0\n")  # both about the same version
    target.process.stdin.flush()
    assert sorted(target.until_event("scaled")["code"] for _ in range(2)) == [200, 409]


def definition(plural, kind, group, subresources):
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"size": {"type": "integer"}, "labels": {"type": "string"}}}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}, **subresources},
                                   "schema": {"openAPIV3Schema": schema}}]}}


@pytest.fixture(name="group")
def fixture_group(cluster):
    """A group of an API of its own with two kinds: a Crew keeps its replicas in spec.size, a Rock cannot be scaled."""
    group = f"{secrets.token_hex(4)}.lull.test"
    subresources = {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
                              "labelSelectorPath": ".status.labels"}}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.api.post(path, definition("crews", "Crew", group, subresources))
    cluster.api.post(path, definition("rocks", "Rock", group, {}))
    for name in ("crews", "rocks"):
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}.{group}")
    yield group
    for name in ("crews", "rocks"):
        cluster.api.delete(f"{path}/{name}.{group}")


def test_a_kind_of_ones_own_is_scaled_wherever_it_keeps_its_replicas(cluster, namespace, follow, group):
    path = f"/apis/{group}/v1/namespaces/{namespace}/crews"
    cluster.api.post(path, {"apiVersion": f"{group}/v1", "kind": "Crew", "metadata": {"name": "web"}, "spec": {"size": 4}})
    target = follow(f"{group}/v1", "Crew")
    until_state(target, replicas=4)
    cluster.api.patch(f"{path}/web/status", {"status": {"size": 4, "labels": "app=web,tier!=x"}})
    state = until_state(target, selector="app=web,tier!=x")
    assert (state["labels"], state["partial"]) == (LABELS, True)

    assert scale(target, "0")["code"] == 200
    until_state(target, replicas=0)
    assert cluster.api.get(f"{path}/web")["spec"]["size"] == 0
    assert scale(target, "4")["code"] == 200
    until_state(target, replicas=4)


def test_a_kind_that_cannot_be_scaled_says_what_would_be_right(follow, group):
    rock = follow(f"{group}/v1", "Rock").until(lambda line: line["problem"])
    assert rock["problem"].startswith(f"a Rock of {group}/v1 has no scale subresource, by which lull sets replicas")
    missing = follow("none.lull.test/v1", "Rock").until(lambda line: line["problem"])
    assert 'the API server has no "none.lull.test/v1"' in missing["problem"]
    other = follow("apps/v1", "Deploymint").until(lambda line: line["problem"])
    assert 'apps/v1 has no kind "Deploymint"' in other["problem"]


def test_a_quota_that_keeps_pods_away_is_told(cluster, namespace, follow):
    cluster.api.post(f"/api/v1/namespaces/{namespace}/resourcequotas", {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    cluster.api.until(f"/api/v1/namespaces/{namespace}/resourcequotas",
                      lambda items: any(item.get("status", {}).get("hard") for item in items.values()))
    cluster.api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": SPEC})
    state = follow("apps/v1", "Deployment").until(lambda line: line["event"] == "state" and line["failure"])
    assert state["failure"].startswith("FailedCreate: ") and "exceeded quota: none" in state["failure"]
