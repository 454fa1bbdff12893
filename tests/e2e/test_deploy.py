# SPDX-License-Identifier: Apache-2.0
"""What deploy/ gives lull's pods to be and to do: no more than they need."""
import contextlib
import re

import pytest

from lullcluster import api, objects

import lull as deployed

DRY = {"dryRun": "All"}
# What Kubernetes lets every account do.
EVERYBODY = re.compile(r"selfsubject|clustertrustbundles|^\s")
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{deployed.NAMESPACE}/leases"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"


def may(lull, account):
    """What "kubectl auth can-i --list" says in lull's own namespace: {"resource": {"verb", …}}."""
    said = lull.cluster.kubectl("auth", "can-i", "--list", "--no-headers", "--namespace", deployed.NAMESPACE,
                                f"--as=system:serviceaccount:{deployed.NAMESPACE}:{account}")
    rules = {}
    for line in said.splitlines():
        if not EVERYBODY.search(line):
            rules.setdefault(line.split()[0], set()).update(line[line.rindex("[") + 1:line.rindex("]")].split())
    return rules


READ = {"get", "list", "watch"}


def test_the_agent_may_do_this_and_nothing_else(installed):
    assert may(installed, "lull-agent") == {
        "scaletozeros.lull.dev": READ, "pods": READ, "nodeactivities.lull.dev": {"create"},
        "nodeactivities.lull.dev/status": {"patch"}, "leases.coordination.k8s.io": {"create", "patch"}}


def test_the_controller_may_do_this_and_nothing_else(installed):
    scales = {f"{kind}.apps/scale": {"get", "patch"} for kind in ("deployments", "statefulsets", "replicasets")}
    kinds = {f"{kind}.apps": READ for kind in ("deployments", "statefulsets", "replicasets")}
    assert may(installed, "lull-controller") == {
        "scaletozeros.lull.dev": READ | {"patch"}, "scaletozeros.lull.dev/status": {"patch"},
        "scaletozeros.lull.dev/finalizers": {"update"},
        "nodeactivities.lull.dev": READ | {"delete"}, "nodes": {"get"}, "services": READ, "pods": READ, "namespaces": READ,
        "endpointslices.discovery.k8s.io": READ | {"create", "patch", "update", "delete"}, **kinds, **scales,
        "jobs.batch": READ | {"patch"}, "horizontalpodautoscalers.autoscaling": READ, "events.events.k8s.io": {"create", "patch"},
        "leases.coordination.k8s.io": READ | {"create", "update", "delete"}}


def test_applying_the_manifests_again_changes_nothing(installed):
    def generations():
        return {item["metadata"]["name"]: item["metadata"]["generation"] for kind in ("daemonsets", "deployments")
                for item in installed.api.get(f"/apis/apps/v1/namespaces/{deployed.NAMESPACE}/{kind}")["items"]}
    before = generations()

    installed.apply()

    assert generations() == before


def pod_of(lull, kind, name):
    template = lull.api.get(f"/apis/apps/v1/namespaces/{deployed.NAMESPACE}/{kind}/{name}")["spec"]["template"]
    spec = {key: value for key, value in template["spec"].items() if key not in ("serviceAccountName", "serviceAccount",
                                                                                 "priorityClassName")}
    return {"metadata": {"name": "one", "labels": template["metadata"]["labels"]}, "spec": spec}


def enforce(lull, namespace, level):
    lull.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}})


def test_the_controller_meets_the_restricted_pod_security_level(installed, namespace):
    enforce(installed, namespace, "restricted")

    installed.api.post(f"/api/v1/namespaces/{namespace}/pods", pod_of(installed, "deployments", "lull-controller"), **DRY)


def test_the_agent_leaves_the_baseline_pod_security_level_by_what_it_needs_only(installed, namespace):
    enforce(installed, namespace, "baseline")

    with pytest.raises(api.ApiError) as refusal:
        installed.api.post(f"/api/v1/namespaces/{namespace}/pods", pod_of(installed, "daemonsets", "lull-agent"), **DRY)

    said = refusal.value.body.decode()
    violations = re.findall(r"(host namespaces|hostPath volumes|non-default capabilities|hostPort|privileged|seccompProfile|[a-z]+ \()", said)
    assert {"host namespaces", "hostPath volumes", "non-default capabilities", "hostPort"} >= set(violations) - {"host namespaces ("}, said
    assert all(name in said for name in ("BPF", "NET_ADMIN", "PERFMON"))


@pytest.fixture(name="agent")
def fixture_agent(installed):
    """The API as n1's agent may use it. Its pod need not run: it is on its node."""
    def satisfied(pods):
        return [pod for pod in pods if pod["spec"].get("nodeName") == "n1" and "deletionTimestamp" not in pod["metadata"]]
    [pod] = installed.cluster.until_pods(deployed.NAMESPACE, satisfied, deployed.AGENT)
    return installed.acting_as(pod)


@pytest.fixture(name="controller")
def fixture_controller(installed):
    pod = installed.cluster.until_pods(deployed.NAMESPACE, lambda pods: [pod for pod in pods if "nodeName" in pod["spec"]],
                                       deployed.CONTROLLER)[0]
    return installed.acting_as(pod)


def refused(call, *arguments, **query):
    with pytest.raises(api.ApiError) as refusal:
        call(*arguments, **query)
    assert refusal.value.code == 403
    return refusal.value.body.decode()


def test_the_agent_cannot_scale_read_secrets_or_change_policies(agent, cluster, namespace):
    objects.create(cluster.api, namespace, objects.deployment("web", 0))
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"

    refused(agent.patch, f"{deployments}/scale", {"spec": {"replicas": 1}})
    refused(agent.patch, deployments, {"spec": {"replicas": 1}})
    refused(agent.get, f"/api/v1/namespaces/{namespace}/secrets")
    refused(agent.patch, f"{deployed.STZ.format(namespace)}/web/status", {"status": {"phase": "Waking"}})
    refused(agent.get, "/api/v1/nodes/n1/proxy/pods")


def test_the_agent_writes_its_own_nodes_activity_and_no_other(agent, cluster):
    def activity(node):
        return {"apiVersion": "lull.dev/v1alpha1", "kind": "NodeActivity", "metadata": {"name": node}}
    for node in ("n1", "n2"):
        with contextlib.suppress(api.ApiError):  # its agent has made it
            cluster.api.post(deployed.NODE_ACTIVITIES, activity(node))

    said = refused(agent.patch, f"{deployed.NODE_ACTIVITIES}/n2/status", {"status": {"programmed": 1}}, **DRY)
    assert 'an agent on node \\"n1\\" may write \\"n1\\" only, not \\"n2\\"' in said
    refused(agent.patch, f"{deployed.NODE_ACTIVITIES}/n2", {"metadata": {"labels": {"a": "b"}}}, **DRY)
    refused(agent.post, deployed.NODE_ACTIVITIES, activity("n3"), **DRY)
    refused(agent.delete, f"{deployed.NODE_ACTIVITIES}/n1", **DRY)
    agent.patch(f"{deployed.NODE_ACTIVITIES}/n1/status", {"status": {"programmed": 1}}, **DRY)


def test_the_agent_renews_its_own_nodes_lease_and_no_other(agent):
    def lease(name):
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {}}

    assert 'may write \\"lull-agent-n1\\" only' in refused(agent.post, LEASES, lease("lull-agent-n2"), **DRY)
    refused(agent.post, LEASES, lease("lull-controller"), **DRY)
    refused(agent.post, LEASES, lease("n1"), **DRY)
    refused(agent.post, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease("lull-agent-n1"), **DRY)
    agent.patch(f"{LEASES}/lull-agent-n1", lease("lull-agent-n1"), "apply", fieldManager="test", force="true", **DRY)


def test_a_token_of_the_agents_account_that_is_bound_to_no_node_writes_nothing(installed):
    unbound = api.Api(installed.cluster.where, token=installed.cluster.token(deployed.NAMESPACE, "lull-agent"))

    said = refused(unbound.post, deployed.NODE_ACTIVITIES,
                   {"apiVersion": "lull.dev/v1alpha1", "kind": "NodeActivity", "metadata": {"name": "n1"}}, **DRY)

    assert "the token is bound to no node" in said


def test_the_controller_scales_but_changes_nothing_else_of_a_workload(controller, cluster, namespace):
    objects.create(cluster.api, namespace, objects.deployment("web", 0))
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"

    controller.patch(f"{deployments}/scale", {"spec": {"replicas": 1}}, **DRY)
    refused(controller.patch, deployments, {"spec": {"replicas": 1}}, **DRY)
    refused(controller.get, f"/api/v1/namespaces/{namespace}/secrets")
    refused(controller.patch, f"{deployed.NODE_ACTIVITIES}/n1/status", {"status": {}}, **DRY)


def test_the_controller_writes_endpoint_slices_of_its_own_only(controller, cluster, namespace):
    def endpoint_slice(name, owner):
        return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": [], "ports": [],
                "metadata": {"name": name, "labels": {"endpointslice.kubernetes.io/managed-by": owner}}}
    path = SLICES.format(namespace)
    cluster.api.post(path, endpoint_slice("theirs", "endpointslice-controller.k8s.io"))

    controller.post(path, endpoint_slice("ours", "lull.dev"), **DRY)
    refused(controller.post, path, endpoint_slice("ours", "endpointslice-controller.k8s.io"), **DRY)
    refused(controller.post, path, {**endpoint_slice("ours", ""), "metadata": {"name": "ours"}}, **DRY)
    refused(controller.patch, f"{path}/theirs", {"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": "lull.dev"}}}, **DRY)
    refused(controller.delete, f"{path}/theirs", **DRY)


def test_the_service_monitor_is_an_overlays_component(cluster, tmp_path):
    base = deployed.ROOT / "deploy"
    up_to_root = "../" * (len(tmp_path.parts) - 1)
    (tmp_path / "kustomization.yaml").write_text(
        f"resources: [{up_to_root}{str(base).lstrip('/')}]\ncomponents: [{up_to_root}{str(base).lstrip('/')}/components/service-monitor]\n",
        encoding="ascii")

    assert "kind: ServiceMonitor" in cluster.kubectl("kustomize", tmp_path)
    assert "kind: ServiceMonitor" not in cluster.kubectl("kustomize", base)


def process_status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return dict(re.split(r":\s+", line.strip(), maxsplit=1) for line in status if ":\t" in line)


def root_is_read_only(pid):
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as mounts:
        [options] = [words[5] for words in map(str.split, mounts) if words[4] == "/"]
    return "ro" in options.split(",")


@pytest.mark.parametrize("role,user,capabilities", [("agent", "0", {12, 13, 38, 39}), ("controller", "65532", set())])
def test_a_running_pod_has_its_capabilities_a_seccomp_filter_and_no_way_to_more(lull, role, user, capabilities):
    pid = lull.cluster.container_pid(lull.agent("n1") if role == "agent" else lull.controllers()[0])
    status = process_status(pid)

    for held in ("CapEff", "CapPrm", "CapBnd"):
        assert {bit for bit in range(64) if int(status[held], 16) >> bit & 1} == capabilities
    assert status["Uid"].split() == [user] * 4
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert root_is_read_only(pid)


@pytest.mark.parametrize("capability", ["BPF", "NET_ADMIN", "PERFMON", "NET_RAW"])
def test_without_any_one_of_its_capabilities_the_agent_does_not_start(lull, capability):
    pod = pod_of(lull, "daemonsets", "lull-agent")
    pod["metadata"] = {"name": f"without-{capability.lower().replace('_', '-')}"}
    pod["spec"].update(nodeName="n1", restartPolicy="Never", serviceAccountName="lull-agent")
    container = pod["spec"]["containers"][0]
    # Beside the one that runs there: whatever they would share is given another name.
    container["args"] += ["--bpffs=/sys/fs/bpf/lull-test", "--run-dir=/run/lull/test", "--metrics=none"]
    container["securityContext"]["capabilities"]["add"].remove(capability)
    for key in ("ports", "readinessProbe", "livenessProbe"):
        del container[key]

    lull.api.post(deployed.PODS, pod)
    try:
        name = f"{deployed.NAMESPACE}/{pod['metadata']['name']}"
        lull.api.until(deployed.PODS, lambda pods: pods[name]["status"]["phase"] == "Failed")
        said = lull.api.raw("GET", f"{deployed.PODS}/{pod['metadata']['name']}/log").decode()
    finally:
        lull.api.delete(f"{deployed.PODS}/{pod['metadata']['name']}", gracePeriodSeconds=0)

    assert "Operation not permitted" in said or "Permission denied" in said, said


def test_lull_answers_in_the_pods(lull):
    assert ", agent, " in lull.cli(lull.agent("n1"), "status")
    assert ", controller, " in lull.cli(lull.controllers()[0], "status")


def test_metrics_and_health_are_served_and_the_services_find_them(lull, cluster):
    for name, count in (("lull-agent", 2), ("lull-controller", 2)):
        def satisfied(slices, name=name, count=count):
            addresses = [address for item in slices.values() for endpoint in item.get("endpoints") or ()
                         for address in endpoint["addresses"]
                         if item["metadata"]["labels"]["kubernetes.io/service-name"] == name and endpoint["conditions"]["ready"]]
            return addresses if len(addresses) == count else None
        addresses = lull.api.until(SLICES.format(deployed.NAMESPACE), satisfied)
        for address in addresses:
            assert "lull_build_info" in cluster.client.get(address, 9474, "/metrics")
            assert cluster.client.get(address, 9474, "/healthz") == "ok\n"
