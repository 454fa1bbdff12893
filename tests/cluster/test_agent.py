# SPDX-License-Identifier: Apache-2.0
"""lulld agent on a node of a real cluster, and a test that writes what a controller would."""
import json
import signal
import subprocess

import agents
import pytest

from lullcluster import api, objects


@pytest.fixture(name="crds", scope="session")
def fixture_crds(running):
    running.kubectl("apply", "-f", str(agents.CRDS))
    running.kubectl("wait", "--for=condition=Established", "crd/scaletozeros.lull.dev", "crd/nodeactivities.lull.dev")


@pytest.fixture(name="agent")
def fixture_agent(cluster, crds, namespace, tmp_path):
    """Starts agents, and stops what the test has left running."""
    started = []

    def start(node="n1", *options):
        started.append(agents.Agent(cluster, node, namespace, tmp_path, *options))
        return started[-1].start()  # one that fails to start must not live on: it would write the same NodeActivity
    yield start
    statuses = []
    for one in started:
        if one.process and one.process.poll() is None:
            statuses.append(one.stop())
        one.forget()
        cluster.api.delete(f"{agents.API}/nodeactivities/{one.node}")
    assert statuses == [0] * len(statuses)


@pytest.fixture(name="client")
def fixture_client(cluster, namespace):
    """The network of a pod on n1 that is nobody's target."""
    objects.create(cluster.api, namespace, objects.deployment("client", node="n1", ready_path=None))
    return cluster.in_pod(cluster.ready_pods(namespace, 1, "app=client")[0])


@pytest.fixture(name="web")
def fixture_web(cluster, crds, namespace):
    """A Deployment at zero replicas behind a Service, asleep for its policy."""
    _, service = objects.create(cluster.api, namespace, objects.deployment("web", replicas=0), objects.service("web"))
    policy = agents.Policy(cluster, namespace, "web", idle={"after": "2s"})
    policy.serves(service)
    policy.address = service["spec"]["clusterIP"]
    policy.full_name = f"{namespace}/web"
    policy.sleep()
    return policy


def curl(place, address, port=80, seconds=30):
    """Starts a request; no retry, and its connect time is printed after the answer."""
    return place.start("curl", "-sS", "--max-time", seconds, "-w", "\n%{time_connect}", f"http://{address}:{port}/",
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(process):
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return out


def is_held(seen):
    return seen["held"]["holding"]


def wake(cluster, policy):
    """What a controller does for a demand: returns once the endpoints are Ready and written."""
    policy.write(phase="Waking", endpoints=[])
    policy.scale(1)
    pods = policy.pods_with_addresses()
    policy.write(endpoints=policy.endpoints(pods, ready=False))
    pods = cluster.ready_pods(policy.namespace, 1, "app=web")
    policy.write(phase="Awake", holding=False, endpoints=policy.endpoints(pods, ready=True))
    return pods


def awake(cluster, policy):
    """Its pods, Ready."""
    policy.write(phase="Awake", holding=False)
    policy.scale(1)
    return cluster.ready_pods(policy.namespace, 1, "app=web")


def test_first_connection_to_a_deployment_at_zero_is_held_reported_and_answered(cluster, agent, client, web):
    node = agent()
    node.until("web", is_held)

    request = curl(client, web.address)
    seen = agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))
    assert seen["epoch"] == web.status["epoch"]
    assert request.poll() is None
    pods = wake(cluster, web)

    assert pods[0]["metadata"]["name"] in answer(request)
    told = node.policy("web")["last_wake"]["phases"]
    assert all(told[step] is not None for step in ("detected", "reported", "endpoint", "ready", "released", "answered"))
    node.until("web", lambda seen: not is_held(seen))
    agents.until_node(cluster, "n1", lambda status: not agents.demand(status, web.full_name))


def test_lease_says_that_the_agent_lives(cluster, agent, namespace):
    node = agent()

    def renewed(leases):
        return leases.get(f"{namespace}/lull-agent-n1")
    lease = cluster.api.until(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", renewed)
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert f"-{node.control.status()['pid']}_" in lease["spec"]["holderIdentity"]
    agents.until_node(cluster, "n1", lambda status: status.get("instance") == lease["spec"]["holderIdentity"])

    def renewed_again(leases):
        return leases[f"{namespace}/lull-agent-n1"]["spec"]["renewTime"] != lease["spec"]["renewTime"]
    cluster.api.until(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", renewed_again, timeout=15)


def test_an_application_that_answers_late_is_found_out_before_the_kubelet_looks_again(cluster, agent, client, web):
    """It listens after 2 s; the kubelet, which looks every 10 s, would say so after 10."""
    cluster.api.patch(f"/apis/apps/v1/namespaces/{web.namespace}/deployments/web", {"spec": {"template": {"spec": {"containers": [
        {**objects.deployment("web", period_seconds=10, arguments=(8080, 2000))["spec"]["template"]["spec"]["containers"][0]}]}}}})
    node = agent()
    node.until("web", is_held)
    request = curl(client, web.address)
    agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))
    web.write(phase="Waking", endpoints=[])
    web.scale(1)
    pods = web.pods_with_addresses()
    web.write(endpoints=web.endpoints(pods, ready=False))

    assert pods[0]["metadata"]["name"] in answer(request)
    pod = cluster.until_pods(web.namespace, lambda pods: pods, "app=web")[0]
    assert api.condition(pod, "Ready") != "True"
    node.control.until_event("ProbePassed", web.full_name)


def test_without_a_declared_probe_the_word_of_the_kubelet_decides(cluster, agent, client, web):
    node = agent()
    node.until("web", is_held)
    request = curl(client, web.address)
    agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))
    web.write(phase="Waking", endpoints=[])
    web.scale(1)
    pods = web.pods_with_addresses()
    web.write(endpoints=web.endpoints(pods, ready=False, probe=False))
    cluster.ready_pods(web.namespace, 1, "app=web")
    assert node.policy("web")["last_wake"]["phases"]["ready"] is None
    assert request.poll() is None

    web.write(endpoints=web.endpoints(pods, ready=True, probe=False))
    assert pods[0]["metadata"]["name"] in answer(request)


@pytest.mark.parametrize("where", ["a process of the node", "outside, by a node port", "a pod of another node"])
def test_first_connection_is_answered_from(where, cluster, crds, agent, namespace):
    _, service = objects.create(cluster.api, namespace, objects.deployment("web", replicas=0, node="n2"),
                                objects.service("web", node_port=True))
    web = agents.Policy(cluster, namespace, "web")
    web.serves(service)
    web.full_name = f"{namespace}/web"
    web.sleep()
    node = agent("n2" if where == "a pod of another node" else "n1")
    node.until("web", is_held)

    if where == "a process of the node":
        request = curl(cluster.nodes["n1"], service["spec"]["clusterIP"])
    elif where == "outside, by a node port":
        request = curl(cluster.client, "192.168.77.11", service["spec"]["ports"][0]["nodePort"])
    else:
        objects.create(cluster.api, namespace, objects.deployment("client", node="n2", ready_path=None))
        request = curl(cluster.in_pod(cluster.ready_pods(namespace, 1, "app=client")[0]), service["spec"]["clusterIP"])
    agents.until_node(cluster, node.node, lambda status: agents.demand(status, web.full_name))
    pods = wake(cluster, web)

    assert pods[0]["metadata"]["name"] in answer(request)
    node.until("web", lambda seen: not is_held(seen))


def test_demand_of_a_failed_wake_is_told_anew(cluster, agent, client, web):
    node = agent()
    node.until("web", is_held)
    request = curl(client, web.address)
    first = agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))
    web.write(phase="Waking")
    agents.until_node(cluster, "n1", lambda status: not agents.demand(status, web.full_name))

    failed = {"type": "WakeFailed", "status": "True", "reason": "Unschedulable", "message": "no node has room",
              "lastTransitionTime": agents.now(), "observedGeneration": 1}
    web.write(holding=False, conditions=[failed])
    assert request.wait(timeout=20) == 7  # refused
    node.until("web", lambda seen: not is_held(seen))
    web.write(holding=True)
    node.until("web", is_held)
    second = curl(client, web.address)
    again = agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))
    assert again["epoch"] == first["epoch"]
    assert again["firstPacket"] > first["firstPacket"]
    second.kill()


def test_a_node_acknowledges_a_sleep_and_votes_for_it_when_its_pods_are_quiet(cluster, agent, web):
    pods = awake(cluster, web)
    node = agent(pods[0]["spec"]["nodeName"])

    def idle(status):
        entry = agents.workload(status, web.full_name)
        return entry if entry and entry["state"] == "Idle" else None
    assert agents.until_node(cluster, node.node, idle)["pods"] == 1
    sleeping = web.sleep("Sleeping")

    def quiet(status):
        entry = agents.workload(status, web.full_name)
        return entry and entry["quietEpoch"] == web.status["epoch"] and status
    status = agents.until_node(cluster, node.node, quiet)
    assert agents.workload(status, web.full_name)["state"] == "Idle"
    agents.until_node(cluster, node.node,
                      lambda status: status["programmed"] >= int(sleeping["metadata"]["resourceVersion"]))


def test_work_in_sleeping_takes_the_vote_back(cluster, agent, client, web):
    """By the pod's own address, which nobody holds."""
    pods = awake(cluster, web)
    node = agent(pods[0]["spec"]["nodeName"])
    agents.until_node(cluster, node.node, lambda status: (agents.workload(status, web.full_name) or {}).get("state") == "Idle")
    web.sleep("Sleeping")
    agents.until_node(cluster, node.node,
                      lambda status: agents.workload(status, web.full_name)["quietEpoch"] == web.status["epoch"])

    assert pods[0]["metadata"]["name"] in client.get(pods[0]["status"]["podIP"], 8080)
    taken_back = agents.until_node(cluster, node.node, lambda status: agents.workload(status, web.full_name)["quietEpoch"] == -1
                                   and agents.workload(status, web.full_name))
    assert taken_back["state"] == "Active"


def test_demand_in_sleeping_that_nobody_answers_goes_on_to_the_pods(cluster, agent, client, web):
    pods = awake(cluster, web)
    node = agent()
    web.sleep("Sleeping")
    node.until("web", is_held)

    assert pods[0]["metadata"]["name"] in answer(curl(client, web.address))
    node.control.until_event("PassedOn", web.full_name)
    assert agents.demand(agents.node_status(cluster, "n1"), web.full_name)["epoch"] == web.status["epoch"]


def test_an_agent_that_is_restarted_while_it_holds_refuses_nobody(cluster, agent, client, web):
    node = agent()
    node.until("web", is_held)
    request = curl(client, web.address)
    agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))
    assert node.stop() == 0
    node.start()
    node.until("web", is_held)
    assert request.poll() is None
    pods = wake(cluster, web)
    assert pods[0]["metadata"]["name"] in answer(request)


def test_an_agent_that_was_killed_while_it_held_is_followed_by_one_that_holds(cluster, agent, client, web):
    node = agent()
    node.until("web", is_held)
    request = curl(client, web.address)
    agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))
    node.stop(signal.SIGKILL)
    node.start()
    node.until("web", is_held)
    pods = wake(cluster, web)
    request.wait(timeout=60)
    assert pods[0]["metadata"]["name"] in answer(curl(client, web.address))


def test_an_agent_that_is_restarted_while_it_releases_goes_on_until_the_data_plane_is_proven(cluster, agent, client, namespace):
    """Which it never is here: the Service selects nobody, so kube-proxy refuses whom the agent does not help."""
    _, service = objects.create(cluster.api, namespace, objects.deployment("web", replicas=0), objects.service("web", app="nobody"))
    web = agents.Policy(cluster, namespace, "web")
    web.serves(service)
    web.sleep()
    web.scale(1)
    pods = cluster.ready_pods(namespace, 1, "app=web")
    node = agent()
    node.until("web", is_held)
    web.write(phase="Awake", holding=False, endpoints=web.endpoints(pods, ready=True))
    assert pods[0]["metadata"]["name"] in client.get(service["spec"]["clusterIP"], 80)

    assert node.stop() == 0
    node.start()

    assert node.policy("web")["held"]["releasing"]
    assert pods[0]["metadata"]["name"] in client.get(service["spec"]["clusterIP"], 80)
    web.write(endpoints=[])
    node.until("web", lambda seen: not is_held(seen))
    with pytest.raises(ConnectionRefusedError):
        client.get(service["spec"]["clusterIP"], 80)


def test_an_agent_that_starts_without_the_api_goes_on_with_what_the_one_before_held(cluster, agent, client, web):
    node = agent()
    node.until("web", is_held)
    assert node.stop() == 0
    cluster.faults.cut_off("192.168.77.11")
    node.start(wanted=503)
    request = curl(client, web.address, seconds=60)
    with pytest.raises(subprocess.TimeoutExpired):
        request.wait(timeout=5)  # longer than a hook would hold on its own account
    cluster.faults.mend()
    agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name), timeout=60)
    pods = wake(cluster, web)
    assert pods[0]["metadata"]["name"] in answer(request)


def test_a_client_that_dials_a_parking_address_is_answered_by_the_pod(cluster, agent, web):
    """As an ingress controller does, with the address of another node's agent."""
    parking = {"address": "192.168.77.12", "port": 42000, "protocol": "TCP", "origin": "Parking", "backend": "web/http", "node": "n2",
               "local": False, "affinity": False}
    web.write(frontends=web.status["frontends"] + [parking])
    node = agent("n2")
    node.until("web", is_held)
    request = curl(cluster.nodes["n1"], "192.168.77.12", 42000)
    agents.until_node(cluster, "n2", lambda status: agents.demand(status, web.full_name))
    pods = wake(cluster, web)
    assert pods[0]["metadata"]["name"] in answer(request)


def test_a_first_packet_between_two_agents_is_demand_for_the_next(cluster, agent, client, web):
    node = agent()
    node.until("web", is_held)
    assert node.stop() == 0
    request = curl(client, web.address)
    node.start()
    agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))
    pods = wake(cluster, web)
    assert pods[0]["metadata"]["name"] in answer(request)


def test_an_agent_cut_off_from_the_api_goes_on_holding_and_reports_when_it_is_back(cluster, agent, client, web):
    node = agent()
    node.until("web", is_held)
    cluster.faults.cut_off("192.168.77.11")
    request = curl(client, web.address, seconds=60)
    node.control.until_event("Demand", web.full_name)
    assert is_held(node.policy("web"))
    cluster.faults.mend()
    agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name), timeout=60)
    pods = wake(cluster, web)
    assert pods[0]["metadata"]["name"] in answer(request)


def test_frontends_that_change_take_what_waits_with_them(cluster, agent, client, web, namespace):
    node = agent()
    node.until("web", is_held)
    request = curl(client, web.address)
    agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))
    other = objects.create(cluster.api, namespace, objects.service("other", app="web"))[0]
    added = {**web.status["frontends"][0], "address": other["spec"]["clusterIP"], "backend": "web/http"}
    web.write(frontends=web.status["frontends"] + [added])
    node.until("web", lambda seen: f"tcp/{other['spec']['clusterIP']}:80" in seen["listen"])
    assert node.policy("web")["held"]["parked"] == 1
    pods = wake(cluster, web)
    assert pods[0]["metadata"]["name"] in answer(request)


def test_who_is_to_be_ignored_wakes_nothing(cluster, agent, client, web, namespace):
    pod = cluster.ready_pods(namespace, 1, "app=client")[0]
    web.write(ignored=[address["ip"] for address in pod["status"]["podIPs"]])
    node = agent()
    node.until("web", is_held)
    with pytest.raises(ConnectionRefusedError):
        client.get(web.address, 80)
    assert node.policy("web")["last_wake"] is None


def test_what_an_agent_cannot_read_leaves_in_force_what_was_and_is_not_acknowledged(cluster, agent, client, web):
    """An entry of a kind that only a newer controller knows. Today's schema is put away for that."""
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scaletozeros.lull.dev"
    schema = cluster.api.get(definition)["spec"]["versions"][0]["schema"]
    loose = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    node = agent()
    node.until("web", is_held)
    with agents.schema(cluster, definition, loose, schema):
        newer = agents.accepted(lambda: web.write(phase="Dreaming", epoch=web.status["epoch"] + 1))
        told = agents.until_node(cluster, "n1", lambda status: status.get("problem") and status)
        assert web.full_name in told["problem"] and "status.phase" in told["problem"]
        assert is_held(node.policy("web"))
        assert told["programmed"] < int(newer["metadata"]["resourceVersion"])
        web.write(phase="Asleep")
        agents.until_node(cluster, "n1", lambda status: not status.get("problem"))


def test_a_policy_that_is_deleted_holds_nothing_any_more(cluster, agent, client, web):
    node = agent()
    node.until("web", is_held)
    cluster.api.delete(web.path)
    node.control.until(lambda: web.full_name not in node.control.policies(), 20, "knowing nothing of it")
    with pytest.raises(ConnectionRefusedError):
        client.get(web.address, 80)


def test_a_datagram_to_a_workload_at_zero_is_answered(cluster, crds, agent, client, namespace):
    _, service = objects.create(cluster.api, namespace, objects.deployment("web", replicas=0, ready_path=None), {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 53, "targetPort": 5353, "protocol": "UDP"}]}})
    web = agents.Policy(cluster, namespace, "web")
    web.serves(service, target_port=5353)
    web.full_name = f"{namespace}/web"
    web.sleep()
    node = agent()
    node.until("web", is_held)

    request = client.start("/usr/bin/python3", "-c", ASK, service["spec"]["clusterIP"], stdout=subprocess.PIPE, text=True)
    agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))
    web.write(phase="Waking")
    web.scale(1)
    pods = cluster.ready_pods(namespace, 1, "app=web")
    server = cluster.in_pod(pods[0]).start("/usr/bin/python3", "-c", ECHO, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "bound\n"
        web.write(phase="Awake", holding=False, endpoints=web.endpoints(pods, ready=True, probe=False, port=5353, protocol="UDP"))
        assert request.communicate(timeout=30)[0] == "HELLO\n"
    finally:
        server.kill()
        server.wait()


ASK = """
import socket, sys
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.settimeout(30)
asker.connect((sys.argv[1], 53))
asker.send(b"hello")
print(asker.recv(100).decode())
"""
ECHO = """
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", 5353))
print("bound", flush=True)
while True:
    data, client = server.recvfrom(100)
    server.sendto(data.upper(), client)
"""


def lull(node, *words):
    return subprocess.run([agents.BUILD / "lull", "-s", node.run_dir / "control.sock", *words], check=False, capture_output=True, text=True)


def test_lull_on_a_node_tells_what_its_agent_sees(cluster, agent, client, web):
    node = agent()
    node.until("web", is_held)
    request = curl(client, web.address)
    agents.until_node(cluster, "n1", lambda status: agents.demand(status, web.full_name))

    assert web.full_name in lull(node, "policy", "list").stdout
    assert web.full_name in lull(node, "hold", "list").stdout
    assert "is held" in lull(node, "event", "list").stdout
    assert "is Asleep since" in lull(node, "policy", "why", web.full_name).stdout
    assert json.loads(lull(node, "-j", "status", "show").stdout)["node"] == "n1"
    refused = lull(node, "policy", "wake", web.full_name)
    assert refused.returncode != 0 and "annotate" in refused.stderr

    wake(cluster, web)
    answer(request)
    metrics = node.control.metrics()
    assert metrics["lull_node_wake_seconds_count", frozenset({("step", "answered")})] == 1
    assert metrics["lull_demands_total", frozenset({("policy", web.full_name)})] == 1
    assert metrics["lull_node_writes_total", frozenset({("result", "failed")})] == 0
