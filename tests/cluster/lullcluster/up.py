# SPDX-License-Identifier: Apache-2.0
"""Brings a cluster up. Everything made is made under the cluster's own names, so that down.py finds it at any moment."""
import concurrent.futures
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time

from . import api, build, certificates, cgroups, configuration, control, down, image, layout, network, servers

TOOLS = ("ip", "nft", "iptables", "conntrack", "nsenter", "unshare", "gcc", "mount")
RESTARTS_MAX = 6
PROXY_MODES = ("nftables", "iptables")


class NotReady(Exception):
    """Something did not become ready; says what, and where its log is."""


def await_true(ready, what, timeout=60):
    """For health endpoints, which can only be asked again."""
    deadline = time.monotonic() + timeout
    while not (result := ready()):
        if time.monotonic() > deadline:
            raise NotReady(f"cluster: {what} was not ready after {timeout} s")
        time.sleep(0.05)
    return result


class Bringing:
    """The steps of bringing one cluster up; each may find its work done."""

    def __init__(self, where, mode):
        self.where, self.mode = where, mode
        self.control = control.Control(where)
        self.started = time.monotonic()

    def say(self, text):
        print(f"cluster: {time.monotonic() - self.started:5.1f} s  {text}", flush=True)

    def await_server(self, name, ready):
        """Waits for a server's health, but not for one that does nothing but end."""
        before = self.control.status()[name]["starts"]

        def ready_or_hopeless():
            if self.control.status()[name]["starts"] > before + RESTARTS_MAX:
                raise NotReady(f"cluster: {name} ends again and again; its log, {self.where.logs}/{name}.log, ends:\n"
                               + "".join((self.where.logs / f"{name}.log").read_text(encoding="utf-8").splitlines(True)[-4:]))
            return ready()
        await_true(ready_or_hopeless, f"{name} (log/{name}.log)")

    def lay_out(self):
        where = self.where
        where.logs.mkdir(parents=True, exist_ok=True)
        for node in where.nodes:
            cgroups.make(where.node_cgroup(node))
        cgroups.make(f"{where.cgroup}/system")
        network.make(where)
        certificates.make_all(where)
        configuration.write_all(where, self.mode)
        self.control.launch()
        self.say("namespaces, cgroups, certificates, supervisor")

    def holder(self, node):
        """The id of the process that keeps a node's mount namespace, once its mounts are made."""
        def ready():
            pid = self.control.status()[f"{node.name}-holder"]["pid"]
            with contextlib.suppress(OSError, TypeError):
                return os.readlink(f"/proc/{pid}/exe").endswith("/sleep") and pid
        return await_true(ready, f"the mount namespace of {node.name}")

    def start_runtimes(self):
        self.control.start("etcd", servers.etcd(self.where))
        for node in self.where.nodes:
            self.control.start(f"{node.name}-holder", servers.node_holder(self.where, node))
        for node in self.where.nodes:
            self.control.start(f"{node.name}-containerd", servers.containerd(self.where, node, self.holder(node)))
        self.await_server("etcd", lambda: api.health(self.where.namespace_path("fab"), "127.0.0.1", 2379, "/health"))
        self.say("etcd, containerd")

    def start_control_plane(self):
        self.control.start("kube-apiserver", servers.apiserver(self.where))
        images = concurrent.futures.ThreadPoolExecutor(1).submit(self.import_images)
        self.await_server("kube-apiserver", api.Api(self.where).healthy)
        self.control.start("kube-controller-manager", servers.controller_manager(self.where))
        self.control.start("kube-scheduler", servers.scheduler(self.where))
        self.control.start("front", servers.front(self.where), {"PYTHONPATH": str(build.MODULES.parent)})
        self.say("API server")
        images.result()

    def import_images(self):
        for node in self.where.nodes:
            for archive in built_in_images():
                import_image(self.where, node, archive)

    def start_nodes(self):
        client = api.Api(self.where)
        for node in self.where.nodes:
            self.control.start(f"{node.name}-kubelet", servers.kubelet(self.where, node, self.holder(node)))
        client.until("/api/v1/nodes", lambda nodes: len(nodes) == len(self.where.nodes))
        for node in self.where.nodes:
            client.patch(f"/api/v1/nodes/{node.name}", {"spec": {"podCIDR": node.pod_ranges[0], "podCIDRs": node.pod_ranges}})
            self.control.start(f"{node.name}-kube-proxy", servers.kube_proxy(self.where, node, self.holder(node)))
        self.say("kubelet, kube-proxy")

    def change_proxy_mode(self):
        """It reads its configuration once. On its next start it removes what it programmed in the other mode."""
        if configuration.kube_proxy_mode(self.where) != self.mode:
            configuration.write_kube_proxy(self.where, self.mode)
            for node in self.where.nodes:
                with contextlib.suppress(RuntimeError):  # not started yet
                    self.control.stop(f"{node.name}-kube-proxy")

    def await_ready(self):
        client = api.Api(self.where)
        client.until("/api/v1/nodes", lambda nodes: all(api.condition(node, "Ready") == "True" for node in nodes.values()))
        for node in self.where.nodes:
            self.await_server(f"{node.name}-kube-proxy", lambda node=node: proxy_healthy(self.where, node))
        client.until("/api/v1/namespaces/default/serviceaccounts", lambda accounts: "default/default" in accounts)
        self.say(f"both nodes Ready, kube-proxy in {self.mode} mode")


def proxy_healthy(where, node):
    """Whether kube-proxy has programmed its rules. It also says that it is healthy before it has ever done so."""
    said = api.health(where.namespace_path(node.name), "127.0.0.1", 10256, "/healthz")
    families = json.loads(said).get("status") if said else None
    return bool(families) and all(family["lastUpdated"] > "2" for family in families.values())


def containerd_socket(where, node):
    return where.node_directory(node) / "containerd.sock"


def import_image(where, node, archive):
    socket = containerd_socket(where, node)
    await_true(lambda: api.listens(socket), f"containerd (log/{node.name}-containerd.log)")
    holder = control.Control(where).status()[f"{node.name}-holder"]["pid"]
    subprocess.run(servers.in_node(where, node, holder, build.program("ctr"), f"--address={socket}", "--namespace=k8s.io",
                                   "images", "import", "--local", archive), check=True, capture_output=True)


def built_in_images():
    """The archives of the images that every cluster has, made once."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(image.SOURCES.iterdir()))).hexdigest()[:16]
    directory = build.cluster_cache() / f"images-{digest}"
    archives = [directory / "pause.tar", directory / "server.tar"]
    if not all(archive.exists() for archive in archives):
        for archive, name in zip(archives, (configuration.PAUSE_IMAGE, configuration.SERVER_IMAGE)):
            root = directory / archive.stem
            image.compile_static(image.SOURCES / f"{archive.stem}.c", root / "bin" / archive.stem)
            image.write(root, name, archive.with_suffix(".new"), [f"/bin/{archive.stem}"])
            archive.with_suffix(".new").rename(archive)
    return archives


def check_machine():
    if os.geteuid() != 0:
        raise SystemExit("cluster: needs root")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise SystemExit(f"cluster: missing {', '.join(missing)}; tools/install-dependencies cluster installs them")


@contextlib.contextmanager
def only_one(where):
    """One up or down at a time."""
    build.cluster_cache().mkdir(parents=True, exist_ok=True)
    with open(build.cluster_cache() / f"{where.name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def up(where=None, mode="nftables"):
    """Brings the cluster up, or what is missing of it. After a crash it starts from nothing."""
    where = where or layout.Layout()
    if mode not in PROXY_MODES:
        raise SystemExit(f'cluster: "{mode}" is no mode of kube-proxy known here; there are {" and ".join(PROXY_MODES)}')
    check_machine()
    build.ensure()
    built_in_images()
    with only_one(where):
        bringing = Bringing(where, mode)
        if not bringing.control.alive():
            down.remove(where)
            bringing.lay_out()
        bringing.change_proxy_mode()
        bringing.start_runtimes()
        bringing.start_control_plane()
        bringing.start_nodes()
        bringing.await_ready()
