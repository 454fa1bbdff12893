# SPDX-License-Identifier: Apache-2.0
"""Where clients are, and what they meet there: how long a connection took, and whether it was answered or refused."""
import dataclasses
import errno
import selectors
import shutil
import socket
import tempfile
import threading
import time

from lullcluster import image, namespaces, objects

CLIENT_IMAGE = "lull.test/client:1"
SYNS = 16
REQUEST = b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n"


@dataclasses.dataclass
class Dialled:
    """One connection: when it was begun, how long until it was connected and answered, or which error ended it."""

    began: float
    connected: float = None
    answered: float = None
    text: str = ""
    error: str = ""


class Dialler(threading.Thread):
    """Opens connections from within a place at given times, each asks once. One thread: it must not slow down what it measures."""

    def __init__(self, place, address, port, offsets, timeout=150):
        super().__init__(daemon=True)
        self.place, self.address, self.offsets, self.timeout = place, (address, port), iter(offsets), timeout
        self.done, self.halted = [], threading.Event()
        self.selector, self.problem = selectors.DefaultSelector(), None

    def run(self):
        try:
            with namespaces.entered(self.place.namespace):
                self.dial_all()
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.problem = error

    def dial_all(self):
        began, following = time.monotonic(), next(self.offsets, None)
        while following is not None or self.selector.get_map():
            now = time.monotonic()
            if following is not None and self.halted.is_set():
                following = None
            while following is not None and began + following <= now:
                self.begin()
                following = next(self.offsets, None)
            wait = 0.2 if following is None else max(0, min(0.2, began + following - time.monotonic()))
            for key, events in self.selector.select(wait):
                self.go_on(key.fileobj, key.data, events)
            self.give_up()

    def begin(self):
        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, SYNS)  # @timeout ends it, not the kernel
        dialled = Dialled(time.monotonic())
        self.done.append(dialled)
        code = connection.connect_ex(self.address)
        if code not in (0, errno.EINPROGRESS):
            self.end(connection, dialled, errno.errorcode[code], registered=False)
            return
        self.selector.register(connection, selectors.EVENT_WRITE, dialled)

    def go_on(self, connection, dialled, events):
        if events & selectors.EVENT_WRITE:
            code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self.end(connection, dialled, errno.errorcode[code])
                return
            dialled.connected = time.monotonic() - dialled.began
            connection.send(REQUEST)
            self.selector.modify(connection, selectors.EVENT_READ, dialled)
            return
        try:
            dialled.text = connection.recv(4096).decode(errors="replace").rpartition("\r\n\r\n")[2].strip()
            dialled.answered = time.monotonic() - dialled.began
            self.end(connection, dialled, "" if dialled.text else "closed")
        except OSError as error:
            self.end(connection, dialled, errno.errorcode[error.errno])

    def end(self, connection, dialled, error, registered=True):
        dialled.error = error
        if registered:
            self.selector.unregister(connection)
        connection.close()

    def give_up(self):
        for key in list(self.selector.get_map().values()):
            if time.monotonic() > key.data.began + self.timeout:
                self.end(key.fileobj, key.data, "no answer")

    def finish(self):
        """Waits for every connection; returns them all."""
        self.join()
        if self.problem:
            raise self.problem
        return self.done

    def halt(self):
        """Begins no more; then as finish()."""
        self.halted.set()
        return self.finish()


def dialling(place, address, port=80, count=1, every=0.0, timeout=150):
    """Begins that many connections; finish() or halt() tells of them. count=None goes on until halt()."""
    def offsets():
        number = 0
        while count is None or number < count:
            yield number * every
            number += 1
    dialler = Dialler(place, address, port, offsets(), timeout)
    dialler.start()
    return dialler


def dial(place, address, port=80, timeout=150):
    """One connection, to its answer."""
    [dialled] = dialling(place, address, port, timeout=timeout).finish()
    return dialled


def errors(dialled):
    """What those met that were not answered."""
    return sorted(one.error for one in dialled if one.error)


class Within:
    """A network namespace, with dial() as PodPlace has it."""

    def __init__(self, place):
        self.place, self.namespace = place, place.namespace
        self.connect, self.get = place.connect, place.get

    def dial(self, address, port=80, timeout=150):
        return dial(self.place, address, port, timeout)


class PodPlace:
    """Within a container, its cgroup too: by kubectl exec of the image's curl."""

    def __init__(self, cluster, pod):
        self.cluster, self.pod = cluster, pod

    def dial(self, address, port=80, timeout=150):
        host = f"[{address}]" if ":" in address else address
        began = time.monotonic()
        try:
            said = self.cluster.kubectl(
                "--namespace", self.pod["metadata"]["namespace"], "exec", self.pod["metadata"]["name"], "--", "/bin/curl", "--silent",
                "--show-error", "--max-time", str(timeout), "--write-out", "\\n%{time_connect} %{time_starttransfer}",
                f"http://{host}:{port}/", timeout=timeout + 10)
        except RuntimeError as error:
            return Dialled(began, error=str(error))
        text, _, times = said.rpartition("\n")
        connected, answered = map(float, times.split())
        return Dialled(began, connected, answered, text.strip())


def import_client(cluster):
    directory = tempfile.mkdtemp()
    try:
        image.add_program(directory, shutil.which("curl"), "/bin/curl")
        image.add_program(directory, shutil.which("sleep"), "/bin/sleep")
        cluster.import_image(directory, CLIENT_IMAGE, ["/bin/sleep", "1000000"])
    finally:
        shutil.rmtree(directory)


def start_pods(cluster, namespace):
    """A client's pod on each node, and one in each node's network. Returns them by (node, "pod" or "host")."""
    import_client(cluster)
    wanted = []
    for node in cluster.where.nodes:
        for kind in ("pod", "host"):
            client = objects.deployment(f"{kind}-{node.name}", node=node.name, image=CLIENT_IMAGE, ready_path=None)
            spec = client["spec"]["template"]["spec"]
            spec["containers"][0]["ports"] = []
            spec["hostNetwork"] = kind == "host"
            wanted.append(client)
    objects.create(cluster.api, namespace, *wanted)
    return {(pod["spec"]["nodeName"], pod["metadata"]["labels"]["app"].split("-")[0]): pod
            for pod in cluster.ready_pods(namespace, len(wanted))}


class Places:
    """Clients' places: each has dial(address, port)."""

    def __init__(self, cluster, pods):
        self.cluster, self.pods = cluster, pods
        self.outside = Within(cluster.client)

    def pod(self, node):
        """The network of a pod on that node."""
        return Within(self.cluster.in_pod(self.pods[node, "pod"]))

    def node(self, node):
        """A process of the node itself."""
        return Within(self.cluster.nodes[node])

    def in_container(self, node, kind="pod"):
        """A process in a container; kind "host": in the node's network."""
        return PodPlace(self.cluster, self.pods[node, kind])
