# SPDX-License-Identifier: Apache-2.0
"""The controller against a real API server; in the agents' place the test says what nodes see."""
import signal

import controllers
import pytest


@pytest.fixture(scope="module", name="crds")
def fixture_crds(running):
    controllers.apply_crds(running)


@pytest.fixture(name="start")
def fixture_start(cluster, namespace, policy, tmp_path):
    """Starts a replica; all are ended in good order, before their policies go."""
    started = []

    def start():
        started.append(controllers.Controller(cluster, namespace, tmp_path))
        return started[-1]
    start.all = started
    yield start
    for one in started:
        print(f"--- {one.identity}\n{one.said()}\n{one.story(namespace)}")
    assert [one.end() for one in started] == [0] * len(started)


@pytest.fixture(name="agent")
def fixture_agent(cluster, namespace, crds):
    made = []

    def make(node="n1", **options):
        made.append(controllers.Agent(cluster, namespace, node, **options))
        return made[-1]
    yield make
    for one in made:
        one.remove()


@pytest.fixture(name="policy")
def fixture_policy(cluster, namespace, crds):
    """Makes policies; what is left of them may go without a controller."""
    made = []

    def make(name="web", **spec):
        made.append(controllers.Policy(cluster, namespace, name, **spec))
        return made[-1]
    yield make
    for one in made:
        controllers.release(one)


def test_idle_sleeps_and_a_packet_wakes(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace, replicas=2)
    node, web = agent(), policy()
    start()

    awake = web.until_phase("Awake")
    assert awake["epoch"] == 0
    before = {pod["metadata"]["uid"] for pod in cluster.ready_pods(namespace, 2)}
    asleep = controllers.put_to_sleep(web, node)
    assert web.replicas() == 0
    assert (asleep["epoch"], asleep["replicasBefore"], asleep["holding"]) == (1, 2, True)
    assert asleep["lastSleep"]["reason"] == "Idle"
    assert {front["origin"] for front in asleep["frontends"]} == {"ClusterIP"}

    node.demand(web, 1)
    waking = web.until_phase("Waking", "Awake")
    assert waking["lastWake"]["source"] == "10.77.1.9:40000"
    assert waking["lastWake"]["node"] == "n1"
    web.until_replicas(2)
    awake = web.until_phase("Awake")
    assert awake["holding"] is False
    assert awake["savedReplicaSeconds"] > 0
    assert awake["endpoints"] and not before & {endpoint["podUID"] for endpoint in awake["endpoints"]}
    assert "10.77.1.9" in web.until_event("Woken")
    assert {"Sleeping", "Asleep", "Woken"} <= set(web.events())


@pytest.mark.parametrize("kind", ["StatefulSet", "Job"])
def test_other_kinds_sleep_and_wake_too(cluster, namespace, start, agent, policy, kind):
    controllers.workload(cluster, namespace, kind=kind)
    node, web = agent(), policy(kind=kind)
    start()

    asleep = controllers.put_to_sleep(web, node)
    assert web.replicas() == 0
    cluster.until_pods(namespace, lambda pods: not pods, "app=web")
    node.demand(web, asleep["epoch"])
    web.until_replicas(1)
    web.until_phase("Awake")
    assert len(cluster.ready_pods(namespace, 1)) == 1


def test_a_disruption_budget_is_about_evictions_and_not_about_sleep(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    cluster.api.post(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}})
    node, web = agent(), policy()
    start()

    asleep = controllers.put_to_sleep(web, node)
    cluster.until_pods(namespace, lambda pods: not pods, "app=web")
    node.demand(web, asleep["epoch"])
    web.until_phase("Awake")


def test_pods_that_do_not_run_yet_keep_it_awake(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"minAwake": "0"})
    start()
    web.until_no_condition("AgentsMissing")
    forbid_more_pods(cluster, namespace, 1)
    web.scale(2)
    cluster.api.until(web.targets, lambda items: items[web.key]["status"].get("conditions", ()) and any(
        entry["type"] == "ReplicaFailure" for entry in items[web.key]["status"]["conditions"]))
    node.workload(web, "Idle")
    controllers.pause()
    assert web.status()["phase"] == "Awake"
    web.scale(1)
    web.until_phase("Sleeping")


def test_a_target_that_has_not_been_ready_yet_is_not_idle(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace, arguments=[8080, 600000])
    node, web = agent(), policy()
    start()
    web.until_no_condition("AgentsMissing")
    node.workload(web, "Idle")
    controllers.pause()
    assert web.status()["phase"] == "Awake"


def test_what_an_agent_said_before_it_started_anew_is_no_vote(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"minAwake": "1h"})
    start()
    web.until_no_condition("AgentsMissing")
    node.start_anew()
    web.annotate("sleep")
    node.vote(web, web.until_phase("Sleeping"))
    assert "n1" in web.until_condition("SleepBlocked")["message"]
    assert web.replicas() == 1

    node.said_by = node.instance
    web.annotate("sleep")
    node.vote(web, web.until_phase("Sleeping"))
    web.until_phase("Asleep")


def test_two_replicas_wake_once_and_the_other_goes_on_when_the_leader_is_killed(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy()
    start()
    start()
    controllers.put_to_sleep(web, node)

    leader = controllers.leader(start.all)
    leader.kill()
    node.demand(web, 1)
    web.until_replicas(1, timeout=5)  # no Lease has to end for that
    web.until_phase("Awake")
    node.no_demand(web)
    controllers.put_to_sleep(web, node)


def test_a_leader_that_ends_in_good_order_is_followed_at_once(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy()
    start()
    start()
    web.until_phase("Awake")
    assert controllers.leader(start.all).end() == 0
    controllers.put_to_sleep(web, node, timeout=10)


def test_a_wake_whose_leader_died_between_the_two_writes_is_repaired(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy()
    leader = start()
    controllers.put_to_sleep(web, node)
    leader.kill()
    web.write_status(phase="Waking", since=controllers.now())
    start()
    web.until_replicas(1)
    web.until_phase("Awake")


def test_a_sleep_whose_leader_died_between_the_two_writes_is_finished(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy()
    leader = start()
    node.workload(web, "Idle")
    web.until_phase("Sleeping")
    leader.kill()
    web.scale(0)
    start()
    assert web.until_phase("Asleep")["replicasBefore"] == 1


def test_what_people_scale_is_the_truth(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy()
    start()
    controllers.put_to_sleep(web, node)
    node.workload(web, "Active")

    web.scale(2)
    awake = web.until_phase("Awake")
    assert awake["lastWake"]["cause"] == "Scaled"
    assert web.replicas() == 2

    web.scale(0)
    asleep = web.until_phase("Asleep")
    assert (asleep["replicasBefore"], asleep["lastSleep"]["reason"]) == (2, "Scaled")
    assert asleep["epoch"] == 2
    node.demand(web, 2)
    web.until_replicas(2)


def test_a_rollout_while_asleep_stays_asleep(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy()
    start()
    before = controllers.put_to_sleep(web, node)
    cluster.kubectl("--namespace", namespace, "set", "env", "deployment/web", "A=b")
    controllers.pause()
    assert web.status()["phase"] == "Asleep"
    assert web.status()["since"] == before["since"]
    node.demand(web, 1)
    web.until_phase("Awake")


def test_demand_while_it_goes_to_sleep_keeps_it_awake(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"minAwake": "1h"})
    start()
    web.annotate("sleep")
    status = web.until_phase("Sleeping")
    node.demand(web, status["epoch"])
    assert web.until_phase("Awake")["lastWake"]["cause"] == "Packet"
    assert web.replicas() == 1


def test_a_node_that_does_not_acknowledge_blocks_the_sleep_and_is_named(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    first, second, web = agent("n1"), agent("n2"), policy(idle={"minAwake": "1h"})
    start()
    web.until_phase("Awake")
    second.write()
    web.annotate("sleep")
    first.vote(web, web.until_phase("Sleeping"))
    assert "n2" in web.until_condition("SleepBlocked")["message"]
    assert web.status()["phase"] == "Awake"
    assert web.replicas() == 1


def test_a_node_that_does_not_vote_quiet_blocks_the_sleep(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"minAwake": "1h"})
    start()
    web.until_phase("Awake")
    web.annotate("sleep")
    status = web.until_phase("Sleeping")
    node.programmed = int(web.version)
    node.workload(web, "Idle", status["epoch"] - 1)
    condition = web.until_condition("SleepBlocked")
    assert condition["reason"] == "NotQuiet"
    assert "n1" in condition["message"]


def test_nothing_sleeps_while_an_agent_is_silent(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"after": "1s", "minAwake": "3s"})
    start()
    web.until_no_condition("AgentsMissing")
    node.fall_silent()
    assert "n1" in web.until_condition("AgentsMissing")["message"]
    node.workload(web, "Idle")
    controllers.pause()
    assert web.status()["phase"] == "Awake"


def test_minimum_time_awake_is_kept(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"minAwake": "4s"})
    start()
    first = web.until_phase("Awake")
    web.until_no_condition("AgentsMissing")
    node.workload(web, "Idle")
    second = web.until_phase("Sleeping")
    assert controllers.seconds_between(first["since"], second["since"]) >= 4


def forbid_more_pods(cluster, namespace, pods):
    cluster.api.post(f"/api/v1/namespaces/{namespace}/resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": str(pods)}}})
    cluster.api.until(f"/api/v1/namespaces/{namespace}/resourcequotas", lambda items: items[f"{namespace}/few"].get("status", {}).get("hard"))


BROKEN = {"image": ("ImageUnavailable", "lull.test/missing:1"), "unschedulable": ("Unschedulable", "0/2 nodes"),
          "crash": ("CrashLoop", "last with status"), "command": ("CrashLoop", "/bin/nothing"), "quota": ("QuotaExceeded", "few")}


@pytest.mark.parametrize("what", BROKEN)
def test_a_failed_wake_says_why(cluster, namespace, start, agent, policy, what):
    reason, said = BROKEN[what]
    broken = {"image": {"image": "lull.test/missing:1"}, "unschedulable": {"node": None}, "crash": {"arguments": [10250]}}.get(what, {})
    controllers.workload(cluster, namespace, replicas=0, **broken)
    template = {"unschedulable": {"nodeSelector": {"nowhere": "at-all"}}, "crash": {"hostNetwork": True}}.get(what)  # the kubelet's port is taken
    if template:
        cluster.api.patch(f"{controllers.DEPLOYMENTS.format(namespace)}/web", {"spec": {"template": {"spec": template}}})
    if what == "command":
        cluster.api.patch(f"{controllers.DEPLOYMENTS.format(namespace)}/web", [
            {"op": "add", "path": "/spec/template/spec/containers/0/command", "value": ["/bin/nothing"]}], "json")
    if what == "quota":
        forbid_more_pods(cluster, namespace, 0)
    node, web = agent(), policy(wake={"holdTimeout": "1s"})  # its pods are hardly there by then
    start()
    node.demand(web, web.until_phase("Asleep")["epoch"])
    assert web.until(lambda status: any(entry["type"] == "WakeFailed" for entry in status.get("conditions", ())))["phase"] == "Waking"
    web.until(lambda status: any(entry["reason"] == reason and said in entry["message"] for entry in status["conditions"]))
    assert "the wake has failed" in web.until_event(reason)


def test_after_a_failed_wake_it_is_not_held_for_a_while_and_still_awakes(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace, replicas=0, arguments=[8080, 8000])
    node, web = agent(), policy(wake={"holdTimeout": "1s"})
    start()
    node.demand(web, web.until_phase("Asleep")["epoch"])
    web.until(lambda status: status.get("phase") == "Waking" and not status["holding"])
    web.until(lambda status: status["phase"] == "Waking" and status["holding"])
    awake = web.until_phase("Awake")
    assert not awake.get("conditions")


def test_an_autoscaler_on_the_target_forbids_sleep(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"minAwake": "3s"})
    cluster.api.post(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers", {
        "metadata": {"name": "more"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}})
    start()
    assert "more" in web.until_condition("Autoscaled")["message"]
    node.workload(web, "Idle")
    controllers.pause()
    assert web.status()["phase"] == "Awake"
    cluster.api.delete(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/more")
    web.until_no_condition("Autoscaled")
    web.until_phase("Sleeping")


def test_the_younger_of_two_policies_of_a_target_does_nothing(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, older, younger = agent(), policy(), policy("younger", target="web")
    start()
    assert "web" in younger.until_condition("Conflict")["message"]
    node.workload(younger, "Idle")
    controllers.put_to_sleep(older, node)
    assert younger.status()["phase"] == "Awake"
    older.delete()
    older.until_gone()
    younger.until_no_condition("Conflict")


def test_annotations_wake_and_sleep_and_are_taken_away(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"after": "1h", "minAwake": "1h"})
    start()
    web.until_no_condition("AgentsMissing")
    for _ in range(2):
        web.annotate("sleep")
        status = web.until_phase("Sleeping")
        node.programmed = int(web.version)
        node.workload(web, "Active", status["epoch"])
        assert web.until_phase("Asleep")["lastSleep"]["reason"] == "Manual"
        web.annotate("wake")
        assert web.until_phase("Awake")["lastWake"]["cause"] == "Manual"
    web.until_item(lambda item: "annotations" not in item["metadata"])


def test_who_asks_for_a_wake_and_a_sleep_at_once_gets_one_after_the_other(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    agent()
    web = policy(idle={"after": "1h", "minAwake": "1h"})
    start()
    web.until_phase("Awake")
    web.patch({"metadata": {"annotations": {"lull.dev/wake": "now", "lull.dev/sleep": "now"}}})
    web.until_condition("SleepBlocked")
    web.until_item(lambda item: "annotations" not in item["metadata"])
    assert web.status()["epoch"] == 1


def test_a_dry_run_only_says_what_it_would_do(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(dryRun=True)
    start()
    node.workload(web, "Idle")
    web.until_condition("DryRun")
    controllers.pause()
    assert web.status()["phase"] == "Awake"


def test_an_idle_gpu_is_told_of_and_what_its_sleep_saves_is_counted(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy()
    controller = start()
    gpu = {"state": "Idle", "devices": 2, "since": controllers.now(), "wouldSleep": True}
    web.until_no_condition("AgentsMissing")

    node.workload(web, "Active", gpu=gpu)
    assert "with idle.gpu.onIdle: Sleep it would sleep" in web.until_condition("GpuIdle")["message"]
    web.until_event("GpuIdle")
    node.workload(web, "Active", gpu={**gpu, "wouldSleep": False})
    web.until_no_condition("GpuIdle")

    node.workload(web, "Idle", gpu=gpu)
    node.vote(web, web.until_phase("Sleeping"))
    asleep = web.until_phase("Asleep")
    assert asleep["gpusBefore"] == 2
    node.demand(web, asleep["epoch"])
    saved = web.until_phase("Awake")["savedGpuSeconds"]
    assert saved > 0
    assert f'lull_gpu_saved_seconds_total{{policy="{web.key}"}}' in controller.ask("/metrics")


def test_deleting_the_policy_of_a_sleeping_target_wakes_it_first(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy()
    start()
    controllers.put_to_sleep(web, node)
    web.delete()
    web.until_gone()
    assert web.replicas() == 1
    assert cluster.ready_pods(namespace, 1)


def test_a_target_created_at_zero_sleeps_and_wakes(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace, replicas=0)
    node, web = agent(), policy(wake={"replicas": 2})
    start()
    node.demand(web, web.until_phase("Asleep")["epoch"])
    web.until_replicas(2)
    web.until_phase("Awake")


def test_a_missing_target_is_said_to_be_missing(cluster, namespace, start, policy):
    web = policy()
    start()
    assert "web" in web.until_condition("TargetUnusable")["message"]


def test_endpoints_come_with_the_probe_that_their_pods_declare(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace, replicas=0, arguments=[8080, 3000], period_seconds=10)
    node, web = agent(), policy()
    start()
    node.demand(web, web.until_phase("Asleep")["epoch"])
    waking = web.until(lambda status: status.get("phase") == "Waking" and any("probe" in end for end in status["endpoints"]))
    [endpoint] = waking["endpoints"]
    assert (endpoint["node"], endpoint["ready"], endpoint["probe"]["path"]) == ("n1", False, "/")
    assert endpoint["ports"][0]["port"] == 8080
    awake = web.until_phase("Awake")
    assert awake["endpoints"]
    web.until(lambda status: not status["endpoints"])


def test_a_client_that_wakes_it_after_each_sleep_makes_it_wait_longer(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy()
    start()
    for round_, factor in enumerate((1, 2, 4), 1):
        controllers.put_to_sleep(web, node)
        node.demand(web, round_, source=f"10.77.1.9:{40000 + round_}")
        assert web.until_phase("Awake")["idleFactor"] == factor
        node.no_demand(web)
    assert "10.77.1.9" in web.until_condition("Flapping")["message"]


def test_nothing_sleeps_while_the_api_server_is_away(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"minAwake": "1h"})
    one = start()
    web.until_no_condition("AgentsMissing")
    with cluster.paused("kube-apiserver"):
        controllers.pause()
    web.annotate("sleep")
    node.vote(web, web.until_phase("Sleeping"))
    web.until_phase("Asleep")
    assert one.process.poll() is None


def test_after_an_outage_an_agent_counts_once_it_has_renewed_its_lease(cluster, namespace, start, agent, policy):
    """What it said last is from before the outage; it may have had no way to take it back."""
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"minAwake": "1h"})
    node.workload(web, "Idle")
    one = start()
    web.until_no_condition("AgentsMissing")
    one.until_idle(web, lambda idle: idle["verdict"] == "idle")
    node.fall_silent()
    node.renew_once(seconds=60)
    cluster.stop("kube-apiserver", signal.SIGKILL)
    cluster.start("kube-apiserver")

    web.patch({"spec": {"idle": {"minAwake": "0s"}}})
    one.until_idle(web, lambda idle: idle["reason"] == "node n1: its agent has not been heard of lately")
    assert web.status()["phase"] == "Awake"

    node.revive()
    web.until_phase("Sleeping")


def test_the_command_line_tool_is_answered(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy()
    one = start()
    controllers.put_to_sleep(web, node)
    assert one.ask("/v1/status")["role"] == "controller"
    [listed] = [item for item in one.ask("/v1/policies")["policies"] if item["name"] == web.key]
    assert listed["phase"] == "Asleep"
    assert "It was put to sleep" in one.ask(f"/v1/policies/{namespace}%2Fweb/why")["text"]
    web.until_event("Asleep")
    assert "Asleep" in [event["reason"] for event in one.ask("/v1/events")["events"] if event["policy"] == web.key]
    assert f'lull_policy_phase{{policy="{web.key}",phase="Asleep"}} 1' in one.ask("/metrics")
    assert one.ask("/readyz") == "ok\n"
    one.ask(f"/v1/policies/{namespace}%2Fweb/wake", "POST")
    web.until_phase("Awake")


def test_a_status_is_written_only_when_it_differs(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    node, web = agent(), policy(idle={"minAwake": "1h"})
    start()
    web.until_no_condition("AgentsMissing")
    node.workload(web, "Active")
    controllers.pause()
    before = web.object()["metadata"]["resourceVersion"]
    node.workload(web, "Idle")
    node.workload(web, "Active")
    controllers.pause()
    assert web.object()["metadata"]["resourceVersion"] == before


def parked(cluster, namespace):
    return {name: item for name, item in ((item["metadata"]["name"], item) for item in cluster.api.get(
        f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices")["items"])
        if item["metadata"]["labels"].get("endpointslice.kubernetes.io/managed-by") == "lull.dev"}


def test_a_sleeping_service_has_parking_endpoints_until_it_is_awake(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace)
    nodes, web = [agent("n1"), agent("n2")], policy()
    for name in ("n1", "n2"):
        controllers.agent_pod(cluster, namespace, name)
    cluster.ready_pods(namespace, 3)
    start()
    web.until_no_condition("AgentsMissing")
    for node in nodes:
        node.programmed = 2 ** 62
        node.write()
    asleep = controllers.put_to_sleep(web, nodes[0])
    parking = [front for front in asleep["frontends"] if front["origin"] == "Parking"]
    assert {front["node"] for front in parking} == {"n1", "n2"}
    slices = parked(cluster, namespace)
    assert {(end["addresses"][0], port["port"]) for item in slices.values() for end in item["endpoints"] for port in item["ports"]} == {
        (front["address"], front["port"]) for front in parking}
    nodes[0].demand(web, asleep["epoch"])
    awake = web.until_phase("Awake")
    assert any(front["origin"] == "Parking" for front in awake["frontends"])
    cluster.api.until(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", lambda items: not parked(cluster, namespace))
    web.until(lambda status: not any(front["origin"] == "Parking" for front in status["frontends"]))


@pytest.mark.parametrize("where", ["own", "selected"])
def test_the_pods_that_ignore_selects_are_in_the_status(cluster, namespace, start, policy, where):
    controllers.workload(cluster, namespace)
    controllers.workload(cluster, namespace, "scraper", node="n2")
    entry = {"podSelector": {"matchLabels": {"app": "scraper"}}}
    if where == "selected":
        entry["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    web = policy(ignore=[entry])
    start()
    [pod] = cluster.ready_pods(namespace, 1, selector="app=scraper")
    addresses = {address["ip"] for address in pod["status"]["podIPs"]}
    web.until(lambda status: {text.partition("/")[0] for text in status.get("ignored", ())} == addresses)
    cluster.api.patch(f"{controllers.DEPLOYMENTS.format(namespace)}/scraper/scale", {"spec": {"replicas": 0}})
    web.until(lambda status: not status["ignored"])
    web.patch({"spec": {"ignore": None}})
    web.until_item(lambda item: item["status"]["observedGeneration"] == item["metadata"]["generation"])
