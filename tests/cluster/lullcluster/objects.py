# SPDX-License-Identifier: Apache-2.0
"""Kubernetes objects that tests are about, as plain dictionaries."""
from . import configuration


def deployment(name, replicas=1, node=None, image=configuration.SERVER_IMAGE, arguments=(), ready_path="/", period_seconds=1):
    """Pods with an HTTP server on port 8080; ready_path=None leaves the readiness probe out."""
    container = {"name": "server", "image": image, "imagePullPolicy": "Never", "args": [str(word) for word in arguments],
                 "ports": [{"containerPort": 8080}]}
    if ready_path:
        container["readinessProbe"] = {"httpGet": {"path": ready_path, "port": 8080}, "periodSeconds": period_seconds}
    pod = {"containers": [container], "terminationGracePeriodSeconds": 1}
    if node:
        pod["nodeName"] = node
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                 "template": {"metadata": {"labels": {"app": name}}, "spec": pod}},
    }


def service(name, node_port=False, app=None):
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": app or name}, "type": "NodePort" if node_port else "ClusterIP",
                 "ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80, "targetPort": 8080}]},
    }


def create(client, namespace, *objects):
    """Creates objects of the kinds above; returns them as the server made them."""
    paths = {"Deployment": "/apis/apps/v1/namespaces/{}/deployments", "Service": "/api/v1/namespaces/{}/services"}
    return [client.post(paths[item["kind"]].format(namespace), item) for item in objects]
