# SPDX-License-Identifier: Apache-2.0
"""API clients under test (reflect and elect, made of src/kube; modules/reflectors, made of client-go), and what they are tested
with: many objects, an audit log, the bytes they move."""
import base64
import calendar
import contextlib
import http.client
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

from lullcluster import build, configuration

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/kube"))

from watcher import Watcher  # noqa: E402  pylint: disable=wrong-import-position

TOOLS = (ROOT / os.environ.get("BUILD", "build") / "tests").resolve()
OBJECTS_PER_PUT = 100  # etcd takes 128 in a transaction
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


class Etcd:
    """The store behind the API server's back: the quick way to many objects, and to a history that is gone."""

    def __init__(self, cluster):
        self.connection = http.client.HTTPConnection("127.0.0.1", 2379)
        self.connection.sock = cluster.control_plane.connect("127.0.0.1", 2379, timeout=60)

    def call(self, path, **body):
        """By etcd's gateway of HTTP to its API."""
        self.connection.request("POST", f"/v3/{path}", json.dumps(body))
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return json.loads(content)

    def fill(self, namespace, count, value):
        """ConfigMaps "object-00000" and so on; value(number) is their data's "value"."""
        for first in range(0, count, OBJECTS_PER_PUT):
            self.call("kv/txn", success=[{"request_put": {
                "key": encoded(f"/registry/configmaps/{namespace}/object-{number:05}"),
                "value": encoded(json.dumps(self.config_map(namespace, number, value(number))))}}
                for number in range(first, min(count, first + OBJECTS_PER_PUT))])

    @staticmethod
    def config_map(namespace, number, value):
        return {"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value}, "metadata": {
            "name": f"object-{number:05}", "namespace": namespace, "uid": f"00000000-0000-4000-8000-{number:012}",
            "creationTimestamp": "2026-01-01T00:00:00Z"}}

    def empty(self, namespace, count):
        """Bit by bit: a range at once is one event, larger than the API server accepts."""
        for first in range(0, count, 1000):
            self.call("kv/deleterange", key=encoded(f"/registry/configmaps/{namespace}/object-{first:05}"),
                      range_end=encoded(f"/registry/configmaps/{namespace}/object-{first + 999:05}0"))

    def compact(self):
        """Forgets all that is not the newest."""
        revision = self.call("kv/range", key=encoded("/"))["header"]["revision"]
        self.call("kv/compaction", revision=revision, physical=True)


class Said:
    """A process that prints a line for whatever happens to it."""

    def __init__(self, place, *words, parse=json.loads, environment=None):
        self.process = place.start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, **(environment or {})})
        self.parse, self.lines, self.seen = parse, queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(self.parse(line))
        self.lines.put(None)

    def until(self, wanted, seconds=60):
        """The next line that wanted() accepts."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty as error:
                raise TimeoutError(f"not said in {seconds} s; the last was {self.seen[-5:]}") from error
            assert line is not None, f"it has ended; the last it said was {self.seen[-5:]}"
            self.seen.append(line)
            if wanted(line):
                return line

    def until_event(self, event, seconds=60, **members):
        return self.until(lambda line: line["event"] == event and members.items() <= line.items(), seconds)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.until_event(command)

    def memory(self):
        """Bytes resident: now, and at most so far."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        return tuple(1024 * int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM"))

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """A kill where closing its input is not enough; the sanitizers' findings are in its status."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            return self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Reflectors(Said):
    """Reflectors of the ConfigMaps of a namespace, each with a client of its own, in one process on the client machine."""

    def __init__(self, cluster, namespace, clients=1, kind="lull", kubeconfig=None):
        self.clients = clients
        kubeconfig = kubeconfig or cluster.where.kubeconfig
        if kind == "lull":
            words = (TOOLS / "cluster/reflect", kubeconfig, CONFIG_MAPS.format(namespace), clients)
        else:
            words = (build.program("reflectors"), kubeconfig, "configmaps", namespace, clients)
        super().__init__(cluster.client, *words)

    def until_each(self, event, seconds=60, **members):
        """By client, the first such line of each."""
        first = {}

        def complete(line):
            if line["event"] == event and members.items() <= line.items():
                first.setdefault(line["client"], line)
            return len(first) == self.clients
        self.until(complete, seconds)
        return first

    def counters(self):
        """Of our own: a dictionary for each client."""
        return self.ask("counters")["clients"]


def watch(cluster, namespace, kubeconfig=None):
    """The program that tests/kube is about, on the client machine: it tells more than reflect does, and makes requests."""
    return Watcher(TOOLS / "kube/watch", kubeconfig or cluster.where.kubeconfig, CONFIG_MAPS.format(namespace),
                   prefix=cluster.client.command())


def write_sentinel(cluster, namespace, value):
    cluster.api.apply(f"{CONFIG_MAPS.format(namespace)}/sentinel", {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sentinel"}, "data": {"value": value}})


def write_kubeconfig(cluster, path, user, port=6443, **cluster_fields):
    """As the administrator's, with another user."""
    content = configuration.kubeconfig(cluster.where, "test", port)
    content["users"][0]["user"] = {key: str(value) for key, value in user.items()}
    content["clusters"][0]["cluster"].update({key: str(value) for key, value in cluster_fields.items()})
    configuration.write(path, content)
    return path


class Audit:
    """The API server's own record of requests."""

    POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}

    def __init__(self, cluster, directory):
        self.cluster, self.path, self.policy = cluster, directory / "audit.log", directory / "audit-policy.json"
        configuration.write(self.policy, self.POLICY)

    def __enter__(self):
        self.cluster.restart_apiserver(f"--audit-policy-file={self.policy}", f"--audit-log-path={self.path}")
        return self

    def __exit__(self, *_):
        self.cluster.restart_apiserver()

    def requests(self, agent, since):
        """Those received after a moment: (moment, verb, URI, code), in the order they came."""
        found = {}
        with open(self.path, encoding="utf-8") as log:
            for line in log:
                with contextlib.suppress(ValueError):  # a kill cuts off the last line
                    event = json.loads(line)
                    moment = api_time(event["requestReceivedTimestamp"])
                    if event.get("userAgent", "").startswith(agent) and moment >= since:
                        known = found.setdefault(event["auditID"], [moment, event["verb"], event["requestURI"], 0])
                        known[3] = event.get("responseStatus", {}).get("code", known[3])
        return sorted(map(tuple, found.values()))


def api_time(text):
    """Seconds since 1970 of "2026-01-01T00:00:00.123456Z"."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{fraction or 0}")


def bytes_received(cluster):
    """By the client machine, all headers counted."""
    for line in cluster.client.run("cat", "/proc/self/net/dev").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "eth0":
            return int(counts.split()[0])
    raise KeyError("eth0")


def busiest_second(moments):
    """The most of them within any one second."""
    return max((sum(1 for other in moments if moment <= other < moment + 1) for moment in moments), default=0)
