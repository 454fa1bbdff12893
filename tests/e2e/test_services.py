# SPDX-License-Identifier: Apache-2.0
"""Each kind of Service, and each mode of kube-proxy: the first connection is answered, or the policy says why it cannot be."""
import contextlib
import threading

import pytest

from lullcluster import layout, namespaces

import places as clients
import workloads

OTHER_ADDRESS = "192.0.2.80"  # nobody's: the Service is given it


def change_service(workload, spec):
    path = f"{workloads.SERVICES.format(workload.namespace)}/{workload.name}"
    workload.service = workload.lull.api.patch(path, {"spec": spec})


def until_local(workload):
    workload.lull.until_policy(workload.namespace, lambda policy: any(frontend.get("local") for frontend in policy["status"]["frontends"]))


@contextlib.contextmanager
def routed(cluster, address, node):
    """For the machine outside, an address of the cluster's leads to that node."""
    where = cluster.where
    route = f"{address} via {where.node(node).addresses[0]}"
    namespaces.ip(f"route add {route}", namespace=where.namespace("client"))
    try:
        yield
    finally:
        namespaces.ip(f"route del {route}", namespace=where.namespace("client"))


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_an_external_ip_is_held_on_the_node_where_it_arrives(cluster, sleeping, places, node):
    workload = sleeping(node="n1")
    change_service(workload, {"externalIPs": [OTHER_ADDRESS]})
    workload.lull.until_held(workload.namespace, address=OTHER_ADDRESS)

    with routed(cluster, OTHER_ADDRESS, node):
        met = places.outside.dial(OTHER_ADDRESS)

    assert met.error == ""
    assert met.text.startswith("web-")


def balanced(workload, **spec):
    """Gives it a load balancer's address, as a cloud would."""
    change_service(workload, {"type": "LoadBalancer", **spec})
    path = f"{workloads.SERVICES.format(workload.namespace)}/{workload.name}/status"
    workload.lull.api.patch(path, {"status": {"loadBalancer": {"ingress": [{"ip": OTHER_ADDRESS, "ipMode": "VIP"}]}}})
    workload.lull.until_held(workload.namespace, address=OTHER_ADDRESS)


def test_a_load_balancers_address_is_held_on_the_node_where_it_arrives(cluster, sleeping, places):
    workload = sleeping(node="n2")
    balanced(workload)

    with routed(cluster, OTHER_ADDRESS, "n1"):
        met = places.outside.dial(OTHER_ADDRESS)

    assert met.error == ""
    assert met.text.startswith("web-")


def test_whoever_a_load_balancer_keeps_out_wakes_nothing_either(cluster, sleeping, places):
    workload = sleeping()
    balanced(workload, loadBalancerSourceRanges=["198.51.100.0/24"])

    with routed(cluster, OTHER_ADDRESS, "n1"):
        met = places.outside.dial(OTHER_ADDRESS, timeout=3)

    assert met.error
    assert workload.status()["phase"] == "Asleep"
    assert places.pod("n1").dial(workload.address).error == ""


def test_with_external_traffic_local_a_node_port_is_served_by_its_own_node(sleeping, places, cluster):
    workload = sleeping(node="n1", node_port=True)
    change_service(workload, {"externalTrafficPolicy": "Local"})
    until_local(workload)

    met = places.outside.dial(cluster.where.node("n1").addresses[0], workload.node_port)

    assert met.error == ""
    assert met.text.split()[1] == layout.CLIENT[0], "the client's own address is kept"


def test_with_internal_traffic_local_a_pod_is_served_by_its_own_node(sleeping, places):
    workload = sleeping(node="n1")
    change_service(workload, {"internalTrafficPolicy": "Local"})
    until_local(workload)

    assert places.pod("n1").dial(workload.address).error == ""


def test_with_session_affinity_the_first_connection_waits_for_kube_proxy_and_is_answered(sleeping, places):
    workload = sleeping()
    change_service(workload, {"sessionAffinity": "ClientIP"})
    workload.until_condition("SessionAffinity")

    met = [clients.dialling(places.pod(node), workload.address, count=5).finish() for node in ("n1", "n2")]

    assert [clients.errors(each) for each in met] == [[], []]
    assert len({one.text.split()[0] for one in met[0]}) == 1


def test_a_named_port_is_looked_up_in_the_pods(sleeping, places):
    def named(deployment):
        deployment["spec"]["template"]["spec"]["containers"][0]["ports"][0]["name"] = "http"
    workload = sleeping(change=named)
    change_service(workload, {"ports": [{"name": "web", "port": 80, "targetPort": "http"}]})

    met = places.pod("n2").dial(workload.address)

    assert met.error == ""
    assert met.text.startswith("web-")


def test_a_headless_service_is_said_to_be_impossible(sleeping, namespace):
    workload = sleeping.awake()
    path = workloads.SERVICES.format(namespace)
    workload.lull.api.post(path, {"metadata": {"name": "headless"}, "spec": {
        "clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}})

    assert "headless" in workload.until_condition("ServiceUnsupported", "headless")["message"]


def test_a_service_that_is_pointed_at_another_workload_wakes_that_one(sleeping, places):
    one, other = sleeping("one"), sleeping("other")
    change_service(one, {"selector": {"app": "other"}})
    one.lull.until_policy(one.namespace, lambda policy: any(
        frontend["backend"].startswith("one/") for frontend in policy["status"]["frontends"]), "other")
    one.lull.until_policy(one.namespace, lambda policy: not any(
        frontend["backend"].startswith("one/") for frontend in policy["status"]["frontends"]), "one")

    met = places.pod("n2").dial(one.address)

    assert met.error == ""
    assert met.text.startswith("other-")
    assert one.replicas() == 0


@pytest.fixture(name="iptables", scope="module")
def fixture_iptables(running):
    running.set_proxy_mode("iptables")
    yield
    running.set_proxy_mode("nftables")


@pytest.mark.parametrize("place", ["pod", "node", "outside"])
def test_with_kube_proxy_in_iptables_mode_nobody_is_refused_either(iptables, cluster, sleeping, places, place):
    workload = sleeping(node_port=True, node="n1")
    address, port = workload.address, 80
    if place == "outside":
        where, address, port = places.outside, cluster.where.node("n2").addresses[0], workload.node_port
    else:
        where = getattr(places, place)("n2")

    stream = clients.dialling(where, address, port, count=None, every=0.02)
    workload.until_phase("Awake")
    threading.Event().wait(2)
    met = stream.halt()

    assert clients.errors(met) == []
    assert len(met) > 20


def test_with_kube_proxy_in_iptables_mode_source_ranges_are_honoured(iptables, cluster, sleeping, places):
    workload = sleeping()
    balanced(workload, loadBalancerSourceRanges=[f"{layout.CLIENT[0]}/32"])

    with routed(cluster, OTHER_ADDRESS, "n2"):
        met = places.outside.dial(OTHER_ADDRESS)

    assert met.error == ""
