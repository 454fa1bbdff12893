# SPDX-License-Identifier: Apache-2.0
"""Back to the state that "make cluster" left, by comparing with it: no test has to say what it made."""
from . import api

SYSTEM_NAMESPACES = {"default", "kube-system", "kube-public", "kube-node-lease"}
BOOTSTRAPPED = "kubernetes.io/bootstrapping"
AUTOMATIC = "kube-aggregator.kubernetes.io/automanaged"

# Cluster-scoped kinds that tests make, and which of their objects are the cluster's own.
KINDS = {
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": lambda item: False,
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": lambda item: False,
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings": lambda item: False,
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies": lambda item: False,
    "/apis/apiregistration.k8s.io/v1/apiservices": lambda item: AUTOMATIC in item["metadata"].get("labels", {}),
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": lambda item: BOOTSTRAPPED in item["metadata"].get("labels", {}),
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": lambda item: BOOTSTRAPPED in item["metadata"].get("labels", {}),
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": lambda item: False,
    "/apis/scheduling.k8s.io/v1/priorityclasses": lambda item: item["metadata"]["name"].startswith("system-"),
    "/apis/resource.k8s.io/v1/resourceslices": lambda item: False,
    "/apis/resource.k8s.io/v1/deviceclasses": lambda item: False,
    "/api/v1/persistentvolumes": lambda item: False,
}

# What tests leave in the system's namespaces, beside what the control plane keeps there.
DEFAULT_KINDS = {
    "/api/v1/namespaces/default/pods": lambda item: False,
    "/api/v1/namespaces/default/services": lambda item: item["metadata"]["name"] == "kubernetes",
    "/apis/apps/v1/namespaces/default/deployments": lambda item: False,
    "/apis/apps/v1/namespaces/default/statefulsets": lambda item: False,
    "/apis/apps/v1/namespaces/default/daemonsets": lambda item: False,
    "/apis/batch/v1/namespaces/default/jobs": lambda item: False,
}


def empty_namespaces(client, names):
    """Begins to remove namespaces, and returns when their pods are gone. The rest goes by itself, 5 s later at the earliest: so
    long does Kubernetes wait. Pods are given a second's grace: longer, and tests wait; none, and their objects go before their
    processes."""
    for name in names:
        client.delete(f"/api/v1/namespaces/{name}")
    for name in names:
        for controllers in ("deployments", "statefulsets", "daemonsets", "replicasets"):
            client.delete(f"/apis/apps/v1/namespaces/{name}/{controllers}")
        client.delete(f"/api/v1/namespaces/{name}/pods", gracePeriodSeconds=1)
    for name in names:
        client.until(f"/api/v1/namespaces/{name}/pods", lambda pods: not pods)


def remove_namespaces(client, names):
    empty_namespaces(client, names)
    client.until("/api/v1/namespaces", lambda there: not {f"/{name}" for name in names} & there.keys())


def remove_objects(client, kinds):
    """Deletes first and waits afterwards: finalizers then run side by side."""
    waiting = {}
    for path, is_own in kinds.items():
        items = client.get(path)["items"]
        doomed = {api.key(item) for item in items if not is_own(item)}
        for item in items:
            if api.key(item) in doomed:
                client.delete(f"{path}/{item['metadata']['name']}", gracePeriodSeconds=0)
        if doomed:
            waiting[path] = doomed
    for path, doomed in waiting.items():
        client.until(path, lambda there, doomed=doomed: not doomed & there.keys())


def reset_servers(cluster):
    """Runs what does not run, and gives the API server its own flags back."""
    for name, state in cluster.control.status().items():
        if not state["wanted"]:
            cluster.control.start(name)
    cluster.restart_apiserver()
    for name in cluster.control.status():
        cluster.await_server(name)


def reset(cluster):
    cluster.faults.mend()
    reset_servers(cluster)
    client = cluster.api
    # Webhooks and aggregated APIs first: with their servers gone they would block what follows.
    remove_objects(client, KINDS)
    names = [item["metadata"]["name"] for item in client.get("/api/v1/namespaces")["items"]]
    remove_namespaces(client, [name for name in names if name not in SYSTEM_NAMESPACES])
    remove_objects(client, DEFAULT_KINDS)
    client.until("/api/v1/nodes", lambda nodes: all(
        api.condition(node, "Ready") == "True" and not node["spec"].get("unschedulable") for node in nodes.values()))
