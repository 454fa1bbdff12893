# SPDX-License-Identifier: Apache-2.0
"""Pods: workloads in network namespaces of their own, where the daemon never is, probed by a kubelet from the node's."""
import itertools
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

import pytest

from machine import Workload, wait_for

PORT = 8080
AGENTS_CAPABILITIES = "-all,+bpf,+net_admin,+perfmon,+net_raw"
SERVER = pathlib.Path(__file__).parent / "servers/line_server.py"
PROBE = """
import socket, struct, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print(connection.getsockname()[1], flush=True)
if sys.argv[-1] == "reset":
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
elif len(sys.argv) > 3:
    connection.sendall(sys.argv[3].encode() + b"\\n")
    assert connection.recv(3) == b"ok\\n"
    print("answered", flush=True)
sys.stdin.read()
"""
numbers = itertools.count(1)


class Pod(Workload):
    """A workload whose server runs in a network namespace of its own, joined to the machine's by a pair of veths. The watch may do no
    more than an agent may."""

    def __init__(self, machine, watch):
        number = next(numbers)
        super().__init__(machine, f"pod-{number}", watch, [PORT])
        self.stop_watching(keep=False)
        self.watch_command[2] = f"default/web.{number}/0a1b2c3d-4e5f-6071-8293-{number:012x}"
        self.watch_command[0:0] = ["setpriv", f"--bounding-set={AGENTS_CAPABILITIES}", f"--inh-caps={AGENTS_CAPABILITIES}"]
        self.begin_to_watch()
        self.address, self.address6 = f"10.99.{number}.2", f"fd99:{number}::2"
        self.namespace = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        wait_for(lambda: os.readlink(f"/proc/{self.namespace.pid}/ns/net") != os.readlink("/proc/self/ns/net"), "the namespace")
        veth = self.veth = f"pod{number}"
        self.run("ip", "link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", str(self.namespace.pid))
        self.run("ip", "address", "add", f"10.99.{number}.1/24", "dev", veth)
        self.run("ip", "address", "add", f"fd99:{number}::1/64", "dev", veth, "nodad")
        self.run("ip", "link", "set", veth, "up")
        for arguments in (["address", "add", f"{self.address}/24", "dev", "eth0"],
                          ["address", "add", f"{self.address6}/64", "dev", "eth0", "nodad"], ["link", "set", "eth0", "up"],
                          ["link", "set", "lo", "up"]):
            self.run("nsenter", "-t", str(self.namespace.pid), "-n", "ip", *arguments)

    @staticmethod
    def run(*command):
        subprocess.run(command, check=True)

    def serve(self, *arguments):
        enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.cgroup, "nsenter", "-t", str(self.namespace.pid), "-n"]
        server = subprocess.Popen([*enter, "/usr/bin/python3", SERVER, str(PORT), *arguments], stdout=subprocess.PIPE, text=True)
        self.processes.append(server)
        assert server.stdout.readline() == "ready\n"
        return server

    def connect(self, source_port=0):
        return socket.create_connection((self.address, PORT), timeout=20, source_address=("0.0.0.0", source_port))

    def close(self):
        super().close()
        self.namespace.kill()
        self.namespace.wait()


@pytest.fixture
def idle_pod(machine, watch_tool):
    pod = Pod(machine, watch_tool)
    yield pod
    pod.close()


@pytest.fixture
def pod(idle_pod):
    idle_pod.serve()
    return idle_pod


class Kubelet:
    def __init__(self, machine):
        self.cgroup = machine.cgroup_parent / "kubelet"
        self.cgroup.mkdir()
        self.processes = []

    def connect(self, address, *request):
        enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.cgroup, "/usr/bin/python3", "-c", PROBE]
        process = subprocess.Popen([*enter, address, str(PORT), *request], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        process.port = int(process.stdout.readline())
        return process

    def probe(self, address, *request):
        process = self.connect(address, *request)
        if request and request != ("reset",):
            assert process.stdout.readline() == "answered\n"
        process.stdin.close()
        assert process.wait() == 0
        return process.port

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.cgroup.rmdir()


@pytest.fixture
def kubelet(machine):
    kubelet = Kubelet(machine)
    yield kubelet
    kubelet.close()


def ask(connection, line):
    connection.sendall(line + b"\n")


def answer(connection):
    assert connection.recv(3) == b"ok\n"


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def await_connections(pod, count):
    return wait_for(lambda: (snapshot := pod.read())["connections"] == count and snapshot, f"{count} connections")


def test_an_unanswered_request_in_another_network_namespace_is_seen_until_it_is_answered(pod):
    with pod.connect() as client, pod.connect() as other:
        ask(client, b"hold")
        snapshot = wait_for(lambda: (snapshot := pod.read())["open"] == 1 and snapshot, "an open request")
        assert snapshot["oldest"].endswith(f":{client.getsockname()[1]}")
        assert snapshot["connections"] == 2
        ask(other, b"release")
        answer(client)
        pod.await_answered()
    await_connections(pod, 0)


def test_a_silent_connection_is_open_but_neither_busy_nor_active(pod):
    with pod.connect() as client:
        ask(client, b"ping")
        answer(client)
        pod.await_answered()
        before = pod.read()
        time.sleep(0.2)
        after = pod.read()
        assert after["connections"] == 1
        assert after["last"] == before["last"]


def test_a_pod_that_nobody_asks_has_no_activity(pod):
    snapshot = pod.read()

    assert (snapshot["last"], snapshot["connections"], snapshot["accepted"], snapshot["open"]) == (0, 0, 0, 0)


def test_a_request_that_is_not_accepted_yet_is_unanswered(idle_pod):
    idle_pod.serve("listen-only")
    client = idle_pod.connect()
    ask(client, b"ping")
    wait_for(lambda: idle_pod.read()["open"] == 1, "an open request")
    reset(client)
    await_connections(idle_pod, 0)
    assert idle_pod.read()["open"] == 0


def test_connections_end_however_they_end(pod):
    ends = {
        "the client resets it": lambda client: reset(client),
        "the client closes it": lambda client: client.close(),
        "the server closes it": lambda client: ask(client, b"end"),
    }
    for how, end in ends.items():
        client = pod.connect()
        await_connections(pod, 1)
        end(client)
        wait_for(lambda: pod.read()["connections"] == 0, how)
        client.close()


def test_a_server_that_is_killed_leaves_no_connection(idle_pod):
    server = idle_pod.serve()
    with idle_pod.connect() as client:
        ask(client, b"hold")
        wait_for(lambda: idle_pod.read()["open"] == 1, "an open request")
        server.send_signal(signal.SIGKILL)
        server.wait()
        await_connections(idle_pod, 0)
        assert idle_pod.read()["open"] == 0


@pytest.mark.parametrize("end", [reset, lambda client: ask(client, b"end"), lambda client: client.close()],
                         ids=["reset", "server", "client"])
def test_a_connection_from_before_the_watch_is_seen_from_its_first_payload_to_its_end(pod, end):
    pod.stop_watching(keep=False)
    client = pod.connect()
    pod.begin_to_watch()
    ask(client, b"ping")
    answer(client)
    await_connections(pod, 1)
    end(client)
    await_connections(pod, 0)
    client.close()


def test_a_silent_connection_from_before_the_watch_may_have_a_request(pod):
    pod.stop_watching(keep=False)
    with pod.connect() as client, socket.create_connection((pod.address6, PORT)) as other:
        ask(client, b"hold")
        pod.begin_to_watch()
        snapshot = pod.read()
        assert snapshot["connections"] == 2
        assert snapshot["untracked"] > 0

        ask(other, b"release")
        answer(client)
        answer(other)
        assert wait_for(lambda: (snapshot := pod.read())["untracked"] == 0 and snapshot, "payload to tell")["connections"] == 2
    await_connections(pod, 0)


def test_connections_of_a_watched_pod_are_all_known(pod):
    with pod.connect():
        assert await_connections(pod, 1)["untracked"] == 0


def test_a_connection_whose_peer_vanishes_ends_when_the_kernel_gives_up(idle_pod):
    server = idle_pod.serve()
    with idle_pod.connect() as client:
        ask(client, b"late")
        wait_for(lambda: idle_pod.read()["open"] == 1, "the request")
        await_connections(idle_pod, 1)
        idle_pod.run("ip", "link", "set", idle_pod.veth, "down")
        server.send_signal(signal.SIGUSR1)
        await_connections(idle_pod, 0)


def test_a_forged_reset_does_not_hide_a_connection_from_before_the_watch(pod):
    pod.stop_watching(keep=False)
    client = pod.connect()
    pod.begin_to_watch()
    ask(client, b"ping")
    answer(client)
    await_connections(pod, 1)

    header = struct.pack("!HHIIBBHHH", client.getsockname()[1], PORT, 12345, 0, 5 << 4, 4, 0, 0, 0)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as forger:
        forger.bind((client.getsockname()[0], 0))
        pseudo = socket.inet_aton(client.getsockname()[0]) + socket.inet_aton(pod.address) + struct.pack("!HH", 6, len(header))
        total = sum(struct.unpack(f"!{(len(pseudo) + len(header)) // 2}H", pseudo + header))
        total = (total & 0xffff) + (total >> 16)
        checksum = ~((total & 0xffff) + (total >> 16)) & 0xffff
        forger.sendto(header[:16] + struct.pack("!H", checksum) + header[18:], (pod.address, 0))

    ask(client, b"hold")
    wait_for(lambda: pod.read()["open"] == 1, "the request")
    assert pod.read()["connections"] == 1
    client.close()


def test_what_is_open_stays_known_from_one_daemon_to_the_next(pod):
    with pod.connect() as stays, pod.connect() as goes:
        ask(stays, b"hold")
        ask(goes, b"hold")
        wait_for(lambda: pod.read()["open"] == 2, "two open requests")
        pod.stop_watching(keep=True)
        reset(goes)
        pod.begin_to_watch()
        wait_for(lambda: pod.read()["open"] == 1, "one open request")
        assert pod.read()["connections"] == 1
        assert pod.read()["accepted"] == 2


def test_probes_of_the_kubelet_count_for_nothing(pod, kubelet):
    pod.ask(f"prober {kubelet.cgroup}")
    for _ in range(3):
        kubelet.probe(pod.address)
        kubelet.probe(pod.address, "ping")
        kubelet.probe(pod.address6, "ping")
    waits = kubelet.connect(pod.address, "hold")
    snapshot = pod.read()
    assert (snapshot["last"], snapshot["accepted"], snapshot["connections"], snapshot["open"]) == (0, 0, 0, 0)

    with pod.connect() as client:
        ask(client, b"release")
        answer(client)
    assert waits.stdout.readline() == "answered\n"
    snapshot = wait_for(lambda: (snapshot := pod.read())["connections"] == 0 and snapshot, "the client's end")
    assert snapshot["accepted"] == 1
    assert snapshot["received"] == len("release\n")


def test_a_probe_stays_one_from_one_daemon_to_the_next(pod, kubelet):
    pod.ask(f"prober {kubelet.cgroup}")
    waits = kubelet.connect(pod.address, "hold")
    pod.stop_watching(keep=True)
    kubelet.probe(pod.address, "ping")
    pod.begin_to_watch()
    assert pod.read()["open"] == 0
    assert pod.read()["last"] == 0
    waits.kill()


def test_whoever_takes_over_a_probes_port_is_a_client(pod, kubelet):
    pod.ask(f"prober {kubelet.cgroup}")
    port = kubelet.probe(pod.address, "reset")
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        client.bind(("0.0.0.0", port))
        client.connect((pod.address, PORT))
        await_connections(pod, 1)


def test_without_a_known_kubelet_its_probes_are_clients(pod, kubelet):
    kubelet.probe(pod.address, "ping")
    assert pod.read()["accepted"] == 1


def test_a_container_that_checks_its_own_pod_is_no_client(pod):
    enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', pod.cgroup, "nsenter", "-t", str(pod.namespace.pid), "-n"]
    for address in "127.0.0.1", pod.address:
        subprocess.run([*enter, "/usr/bin/python3", "-c", PROBE, address, str(PORT), "ping"], stdin=subprocess.DEVNULL, check=True)
    snapshot = pod.read()
    assert (snapshot["last"], snapshot["accepted"], snapshot["received"]) == (0, 0, 0)


def test_another_process_of_the_node_is_a_client(pod, kubelet):
    pod.ask(f"prober {kubelet.cgroup}")
    with pod.connect() as client:
        ask(client, b"ping")
        answer(client)
        assert await_connections(pod, 1)["last"] > 0
