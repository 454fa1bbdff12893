# SPDX-License-Identifier: Apache-2.0
"""A running cluster, as tests see it."""
import contextlib
import http.client
import os
import pathlib
import secrets
import signal
import subprocess

from . import api, build, cgroups, configuration, control, faults, image, layout, namespaces, reset, servers, up


def kubectl_command(where, *words):
    return servers.in_fabric(where, build.program("kubectl"), f"--kubeconfig={where.kubeconfig}", *words)


class Place:
    """A network namespace to run commands and open connections in. The programs are this machine's."""

    def __init__(self, namespace):
        self.namespace = pathlib.Path(namespace)

    def command(self, *words):
        return ["nsenter", f"--net={self.namespace}", "--", *map(str, words)]

    def run(self, *words, **options):
        """Runs to its end and returns its output; a failure raises with what it said."""
        options = {"check": True, "text": True, "capture_output": True, "timeout": 60, **options}
        return subprocess.run(self.command(*words), **options).stdout  # pylint: disable=subprocess-run-check

    def start(self, *words, **options):
        return subprocess.Popen(self.command(*words), start_new_session=True, **options)

    def connect(self, address, port, timeout=5):
        return namespaces.connect(self.namespace, address, port, timeout)

    def get(self, address, port, path="/", timeout=5):
        """An HTTP request on a connection of its own. Returns the body; raises OSError as connect(2) would fail."""
        connection = http.client.HTTPConnection(address, port, timeout=timeout)
        connection.sock = self.connect(address, port, timeout)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().read().decode()


class NodePlace(Place):
    """A node: its network namespace, and by inside() its mounts too, as a pod with hostPath volumes would see them."""

    def __init__(self, cluster, node):
        super().__init__(cluster.where.namespace_path(node.name))
        self.cluster, self.node = cluster, node

    def inside(self, *words):
        return servers.in_node(self.cluster.where, self.node, self.cluster.server_pid(f"{self.node.name}-holder"), *words)

    @property
    def cgroup(self):
        """Of its pods, in the cgroup2 hierarchy: the root that an agent on this node is given."""
        return cgroups.unified() / self.cluster.where.node_cgroup(self.node).lstrip("/")

    def ctr(self, *words):
        where = self.cluster.where
        return subprocess.run(self.inside(build.program("ctr"), f"--address={up.containerd_socket(where, self.node)}",
                                          "--namespace=k8s.io", *words), check=True, text=True, capture_output=True).stdout


class Cluster:
    """Servers, nodes, clients and objects of a cluster that is up."""

    def __init__(self, where=None):
        self.where = where or layout.Layout()
        self.control = control.Control(self.where)
        self.api = api.Api(self.where)
        self.client = Place(self.where.namespace_path("client"))
        self.control_plane = Place(self.where.namespace_path("fab"))
        self.nodes = {node.name: NodePlace(self, node) for node in self.where.nodes}
        self.faults = faults.Faults(self)

    # Servers

    def server_pid(self, name):
        return self.control.status()[name]["pid"]

    def ready(self, name):
        """Whether a server answers its health endpoint, or, without one, runs."""
        role, _, what = name.rpartition("-")
        if name == "kube-apiserver":
            return self.api.healthy()
        if name == "etcd":
            return api.health(self.control_plane.namespace, "127.0.0.1", 2379, "/health")
        if what == "proxy":
            return up.proxy_healthy(self.where, self.where.node(role.partition("-")[0]))
        if what == "kubelet":
            return api.health(self.nodes[role].namespace, "127.0.0.1", 10248, "/healthz")
        if what == "containerd":
            return api.listens(up.containerd_socket(self.where, self.where.node(role)))
        if name == "front":
            return api.listens(self.where.directory / "front.sock")
        return bool(self.server_pid(name))

    def await_server(self, name, timeout=60):
        up.await_true(lambda: self.ready(name), f"{name} (log/{name}.log)", timeout)

    def stop(self, name, number=signal.SIGTERM):
        """Until start(). Returns when it has ended."""
        self.control.stop(name, number)

    def start(self, name):
        self.control.start(name)
        self.await_server(name)

    def restart(self, name):
        self.stop(name)
        self.start(name)

    def kill(self, name, number=signal.SIGKILL):
        """It is dead when this returns, and started again by the supervisor: await_server() waits for that."""
        self.control.kill(name, number)

    @contextlib.contextmanager
    def paused(self, name):
        """As a process that hangs: its sockets stay open and nothing answers."""
        self.control.kill(name, signal.SIGSTOP)
        try:
            yield
        finally:
            self.control.kill(name, signal.SIGCONT)

    def restart_apiserver(self, *flags):
        """With further flags, as "--max-requests-inflight=4"; without any, as it was."""
        self.control.start("kube-apiserver", servers.apiserver(self.where, flags))
        self.await_server("kube-apiserver")

    def set_proxy_mode(self, mode):
        if configuration.kube_proxy_mode(self.where) == mode:
            return
        configuration.write_kube_proxy(self.where, mode)
        for node in self.where.nodes:
            self.restart(f"{node.name}-kube-proxy")

    # Images

    def import_image(self, directory, name, command=(), environment=()):
        """Puts an image of the files below a directory on every node, so that pods may name it (imagePullPolicy: Never)."""
        archive = self.where.directory / f"image-{secrets.token_hex(4)}.tar"
        try:
            image.write(directory, name, archive, command, environment)
            for node in self.where.nodes:
                up.import_image(self.where, node, archive)
        finally:
            archive.unlink(missing_ok=True)

    # Objects

    def kubectl(self, *words, text=None, timeout=60):
        """Returns what it printed; a failure raises with what it said. @text is its standard input."""
        done = subprocess.run(kubectl_command(self.where, *words), input=text, text=True, capture_output=True, timeout=timeout,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def make_namespace(self):
        """One that nobody had before, with its service account, without which no pod is admitted."""
        name = f"test-{secrets.token_hex(4)}"
        self.api.post("/api/v1/namespaces", {"metadata": {"name": name}})
        self.api.until(f"/api/v1/namespaces/{name}/serviceaccounts", lambda accounts: f"{name}/default" in accounts)
        return name

    def remove_namespace(self, name):
        """Returns when its pods are gone; what else is in it follows."""
        reset.empty_namespaces(self.api, [name])

    def reset(self):
        """Back to what "make cluster" made: objects, servers, faults."""
        reset.reset(self)

    def until_pods(self, namespace, satisfied, selector="", timeout=60):
        """Waits until satisfied(list of pods), and returns what that returned."""
        return self.api.until(f"/api/v1/namespaces/{namespace}/pods", lambda pods: satisfied(list(pods.values())), timeout,
                              labelSelector=selector)

    def ready_pods(self, namespace, count, selector="", timeout=60):
        """Waits until exactly so many pods are there and Ready; returns them."""
        def satisfied(pods):
            ready = [pod for pod in pods if api.condition(pod, "Ready") == "True"]
            return ready if len(ready) == len(pods) == count else None
        return self.until_pods(namespace, satisfied, selector, timeout) if count else []

    def token(self, namespace, account="default", seconds=3600):
        """A bearer token of a service account, as a pod would have."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}
        return self.api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", request)["status"]["token"]

    def kubeconfig(self, client="admin", port=layout.API_PORT):
        """A kubeconfig for programs in any of the cluster's namespaces; port=layout.FRONT_PORT leads to the front. Other clients
        than the cluster's own have certificates issued by certificates.Authority."""
        path = self.where.configuration / f"{client}-{port}.kubeconfig"
        configuration.write(path, configuration.kubeconfig(self.where, client, port))
        return path

    # Pods from inside

    def container_cgroup(self, pod, container=None):
        """The cgroup of a container, in the cgroup2 hierarchy."""
        for status in pod["status"]["containerStatuses"]:
            if container in (None, status["name"]):
                identity = status["containerID"].rpartition("/")[2]
                for directory in cgroups.tree(self.nodes[pod["spec"]["nodeName"]].cgroup):
                    if directory.name == identity:
                        return directory
        raise KeyError(f"no container {container or ''} of {pod['metadata']['name']} runs")

    def container_pid(self, pod, container=None):
        """The first process of a container."""
        return int((self.container_cgroup(pod, container) / "cgroup.procs").read_text(encoding="ascii").split()[0])

    def in_pod(self, pod):
        """The network of a pod, for this machine's programs: in_pod(pod).run("curl", …)."""
        return Place(f"/proc/{self.container_pid(pod)}/ns/net")

    # For people and tests that read

    def log(self, server):
        return (self.where.logs / f"{server}.log").read_text(encoding="utf-8", errors="replace")

    def memory(self):
        """Bytes in use by each server, by its proportional share."""
        def share(pid):
            with contextlib.suppress(OSError, StopIteration), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
                return 1024 * int(next(line for line in rollup if line.startswith("Pss:")).split()[1])
            return 0
        return {name: share(state["pid"]) for name, state in self.control.status().items() if state["pid"]}


def running():
    """The cluster that is up, or None."""
    cluster = Cluster() if os.path.exists(layout.Layout().kubeconfig) else None
    return cluster if cluster and cluster.control.alive() else None
