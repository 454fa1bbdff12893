# SPDX-License-Identifier: Apache-2.0
"""The cluster that the other tests stand on."""
import errno
import os
import signal
import subprocess
import time

import pytest

from lullcluster import api, build, image, layout, objects


def names(items):
    return sorted(item["metadata"]["name"] for item in items)


def served_by(place, address, count, port=80):
    """Asks until so many pods have answered: which one answers is chance. A Service's rules follow its endpoints by up to a
    second. Until then a request is refused, or, without any rule for that address, the fabric knows no way."""
    answered, deadline = set(), time.monotonic() + 30
    while len(answered) < count:
        assert time.monotonic() < deadline, f"only {answered} answered on {address}"
        try:
            answered.add(place.get(address, port).split()[0])
        except OSError as error:
            assert error.errno in (errno.ECONNREFUSED, errno.ENETUNREACH)
            time.sleep(0.02)
    return answered


def test_both_nodes_are_ready_and_say_their_version(cluster):
    nodes = cluster.api.get("/api/v1/nodes")["items"]

    assert names(nodes) == ["n1", "n2"]
    for node in nodes:
        assert api.condition(node, "Ready") == "True"
        assert node["status"]["nodeInfo"]["kubeletVersion"] == f"v{build.KUBERNETES_VERSION}"
    assert cluster.api.get("/version")["gitVersion"] == f"v{build.KUBERNETES_VERSION}"


@pytest.mark.parametrize("mode", ["nftables", "iptables"])
def test_a_service_reaches_pods_on_both_nodes_from_everywhere(cluster, namespace, mode):
    cluster.set_proxy_mode(mode)
    try:
        near, far = objects.deployment("near", node="n1"), objects.deployment("far", node="n2")
        for item in (near, far):
            for labels in (item["spec"]["selector"]["matchLabels"], item["spec"]["template"]["metadata"]["labels"]):
                labels["app"] = "web"
            item["spec"]["selector"]["matchLabels"]["part"] = item["metadata"]["name"]
            item["spec"]["template"]["metadata"]["labels"]["part"] = item["metadata"]["name"]
        *_, service = objects.create(cluster.api, namespace, near, far, objects.service("web", node_port=True))
        pods = cluster.ready_pods(namespace, 2)

        for address in service["spec"]["clusterIPs"]:
            for place in (cluster.nodes["n1"], cluster.nodes["n2"], *map(cluster.in_pod, pods)):
                assert served_by(place, address, 2) == set(names(pods))
        node_port = service["spec"]["ports"][0]["nodePort"]
        for node in cluster.where.nodes:
            assert served_by(cluster.client, node.addresses[0], 2, node_port) == set(names(pods))
    finally:
        cluster.set_proxy_mode("nftables")


def test_in_each_mode_kube_proxy_programs_that_kind_of_rules_only(cluster):
    def programmed():
        node = cluster.nodes["n1"]
        return ("table ip kube-proxy" in node.run("nft", "list", "tables"), "KUBE-SERVICES" in node.run("iptables-save"))

    assert programmed() == (True, False)
    cluster.set_proxy_mode("iptables")
    try:
        assert programmed() == (False, True)
    finally:
        cluster.set_proxy_mode("nftables")
    assert programmed() == (True, False)


@pytest.mark.parametrize("server", ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "n1-containerd",
                                    "n1-kubelet", "n2-kube-proxy"])
def test_a_killed_server_is_started_again(cluster, server):
    before = cluster.control.status()[server]

    cluster.kill(server)
    cluster.await_server(server)

    after = cluster.control.status()[server]
    assert after["pid"] != before["pid"]
    assert after["starts"] > before["starts"]
    assert after["last_exit"] == -signal.SIGKILL


def test_a_stopped_server_stays_stopped_until_it_is_started(cluster, namespace):
    cluster.stop("kube-scheduler")
    objects.create(cluster.api, namespace, objects.deployment("web"))
    cluster.until_pods(namespace, lambda pods: len(pods) == 1 and "nodeName" not in pods[0]["spec"])
    assert cluster.control.status()["kube-scheduler"]["pid"] is None

    cluster.start("kube-scheduler")

    cluster.ready_pods(namespace, 1)


def test_objects_outlive_the_api_server_and_etcd(cluster, namespace):
    objects.create(cluster.api, namespace, objects.service("web"))

    for server in ("etcd", "kube-apiserver"):
        cluster.kill(server)
    for server in ("etcd", "kube-apiserver"):
        cluster.await_server(server)

    assert names(cluster.api.get(f"/api/v1/namespaces/{namespace}/services")["items"]) == ["web"]


def test_pods_outlive_their_containerd(cluster, namespace):
    objects.create(cluster.api, namespace, objects.deployment("web", node="n1"))
    [pod] = cluster.ready_pods(namespace, 1)
    pid = cluster.container_pid(pod)

    cluster.kill("n1-containerd")
    cluster.await_server("n1-containerd")

    assert cluster.container_pid(pod) == pid
    assert cluster.in_pod(pod).get("127.0.0.1", 8080).startswith(pod["metadata"]["name"])


def test_an_image_of_a_directory_runs_with_its_files(cluster, namespace, tmp_path):
    where = cluster.nodes["n1"]
    tree = tmp_path / "tree"
    (tree / "bin").mkdir(parents=True)
    built_in = next(build.cluster_cache().glob("images-*/server/bin/server"))
    (tree / "bin/other").write_bytes(built_in.read_bytes())
    (tree / "bin/other").chmod(0o755)
    (tree / "greeting").write_text("hello\n", encoding="ascii")
    cluster.import_image(tree, "lull.test/other:7", ["/bin/other", "8080"])

    objects.create(cluster.api, namespace, objects.deployment("web", node="n1", image="lull.test/other:7"))
    [pod] = cluster.ready_pods(namespace, 1)

    with open(f"/proc/{cluster.container_pid(pod)}/root/greeting", encoding="ascii") as file:
        assert file.read() == "hello\n"
    assert "lull.test/other:7" in where.ctr("images", "list", "--quiet")


def test_a_program_of_this_machine_runs_in_an_image_with_its_libraries(cluster, namespace, tmp_path):
    image.add_program(tmp_path, "/usr/bin/sleep", "/bin/rest")
    cluster.import_image(tmp_path, "lull.test/rest:1", ["/bin/rest"])

    objects.create(cluster.api, namespace, objects.deployment("web", image="lull.test/rest:1", arguments=["1000"], ready_path=None))

    [pod] = cluster.ready_pods(namespace, 1)
    assert os.readlink(f"/proc/{cluster.container_pid(pod)}/exe") == "/bin/rest"


def test_exec_and_logs_pass_the_kubelet(cluster, namespace):
    objects.create(cluster.api, namespace, objects.deployment("web", node="n2"))
    [pod] = cluster.ready_pods(namespace, 1)
    name = pod["metadata"]["name"]

    assert cluster.kubectl("--namespace", namespace, "logs", name) == ""
    with pytest.raises(RuntimeError, match="no such file"):
        cluster.kubectl("--namespace", namespace, "exec", name, "--", "/bin/nothing")


def test_a_pod_is_known_by_its_cgroup_below_its_node(cluster, namespace):
    objects.create(cluster.api, namespace, objects.deployment("web", node="n2"))
    [pod] = cluster.ready_pods(namespace, 1)

    relative = cluster.container_cgroup(pod).relative_to(cluster.nodes["n2"].cgroup)

    assert relative.parts[:-1] == ("kubepods", "besteffort", f"pod{pod['metadata']['uid']}")


def test_an_agents_pod_sees_its_nodes_network_bpffs_and_cgroups(cluster, namespace):
    agent = objects.deployment("agent", node="n2", arguments=[8099], ready_path=None)
    spec = agent["spec"]["template"]["spec"]
    spec.update(hostNetwork=True, hostPID=True, volumes=[
        {"name": "bpf", "hostPath": {"path": "/sys/fs/bpf", "type": "Directory"}},
        {"name": "cgroup", "hostPath": {"path": "/sys/fs/cgroup", "type": "Directory"}}])
    spec["containers"][0]["volumeMounts"] = [{"name": "bpf", "mountPath": "/sys/fs/bpf"},
                                             {"name": "cgroup", "mountPath": "/sys/fs/cgroup", "readOnly": True}]
    spec["containers"][0]["ports"] = []
    spec["containers"][0]["securityContext"] = {"capabilities": {"drop": ["ALL"], "add": ["BPF", "NET_ADMIN", "PERFMON"]}}

    objects.create(cluster.api, namespace, agent)
    [pod] = cluster.ready_pods(namespace, 1)

    pid, node = cluster.container_pid(pod), cluster.nodes["n2"]
    assert os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat(node.namespace).st_ino
    kinds = {words[4]: words[words.index("-") + 1] for words in map(str.split, open(f"/proc/{pid}/mountinfo", encoding="ascii"))}
    assert kinds["/sys/fs/bpf"] == "bpf"
    assert os.path.exists(f"/proc/{pid}/root{node.cgroup}/kubepods")
    pins = os.stat(f"/proc/{pid}/root/sys/fs/bpf").st_dev
    assert pins == os.stat(f"/proc/{cluster.server_pid('n2-holder')}/root/sys/fs/bpf").st_dev
    assert pins != os.stat(f"/proc/{cluster.server_pid('n1-holder')}/root/sys/fs/bpf").st_dev


def test_a_pod_reaches_the_api_server_with_its_own_credentials(cluster, namespace):
    objects.create(cluster.api, namespace, objects.deployment("web", node="n1"))
    [pod] = cluster.ready_pods(namespace, 1)
    credentials = f"/proc/{cluster.container_pid(pod)}/root/var/run/secrets/kubernetes.io/serviceaccount"
    with open(f"{credentials}/token", encoding="ascii") as token:
        bearer = token.read()

    said = cluster.in_pod(pod).run("curl", "--silent", "--show-error", "--max-time", 10, "--cacert", f"{credentials}/ca.crt",
                                   "--header", f"Authorization: Bearer {bearer}", f"https://{layout.API_SERVICE}/api/v1/namespaces")

    assert f"system:serviceaccount:{namespace}:default" in said


def test_reset_leaves_what_a_new_cluster_has(cluster):
    namespace = cluster.make_namespace()
    objects.create(cluster.api, namespace, objects.deployment("web", 2), objects.service("web"))
    objects.create(cluster.api, "default", objects.service("stray"))
    cluster.api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "stray"}, "rules": []})
    cluster.stop("kube-scheduler")
    cluster.faults.cut_off(*cluster.where.nodes[0].addresses)

    cluster.reset()

    assert names(cluster.api.get("/api/v1/namespaces")["items"]) == [
        "default", "kube-node-lease", "kube-public", "kube-system"]
    assert cluster.api.get("/api/v1/pods")["items"] == []
    assert names(cluster.api.get("/api/v1/services")["items"]) == ["kubernetes"]
    assert "stray" not in names(cluster.api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles")["items"])
    assert all(state["pid"] for state in cluster.control.status().values())
    assert "lull_faults" not in cluster.control_plane.run("nft", "list", "tables")


@pytest.mark.usefixtures("cluster")
def test_nothing_of_it_is_in_the_root_network_namespace():
    devices = subprocess.run(["ip", "-brief", "link"], check=True, capture_output=True, text=True).stdout
    assert not {line.split("@")[0].split()[0] for line in devices.splitlines()} & {"br0", "n1", "n2", "client"}
    listeners = subprocess.run(["ss", "-Hltn"], check=True, capture_output=True, text=True).stdout
    assert f":{layout.API_PORT} " not in listeners
    routes = subprocess.run(["ip", "route", "show", "table", "all"], check=True, capture_output=True, text=True).stdout
    assert "192.168.77." not in routes and "10.77." not in routes
