# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes node in miniature, and hold on it: pods on veth pairs, another node behind a wire, an outside client, and nftables rules
like kube-proxy's, which know no endpoint until they are told one."""
import collections
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time

from machine.client import Client, finish
from machine.daemon import build_directory
from machine.namespace import Namespace

SERVICE = {4: "10.96.0.10", 6: "fd96::10"}
SERVICES = {4: "10.96.0.0/16", 6: "fd96::/16"}
PODS = {4: "10.244.0.0/16", 6: "fd44::/16"}
NODE = {4: "192.0.2.11", 6: "2001:db8::11"}
NODE_2 = {4: "192.0.2.12", 6: "2001:db8::12"}
OUTSIDE = {4: "198.51.100.2", 6: "2001:db8:2::2"}
PORT, NODE_PORT, POD_PORT, PARKING_PORT = 80, 30080, 8080, 42521
LISTEN = {4: "0.0.0.0", 6: "::"}
FAMILIES = [4, 6]


def pod_address(node, pod):
    return {4: f"10.244.{node}.{pod}", 6: f"fd44:{node}::{pod}"}


GATEWAY = pod_address(1, 1)  # the node's address on its pods' links


def text(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def service(family, *words, protocol="tcp"):
    return " ".join([f"{protocol}/{text(SERVICE[family], PORT)}", *words])


def node_port(*words):
    return " ".join([f"tcp/0.0.0.0:{NODE_PORT}", *words])


def parking(family, protocol="tcp"):
    return f"{protocol}/{text(NODE[family], PARKING_PORT)} parking masquerade"


def begin_held(cluster, holder, count, client="client", port=PORT, family=4):
    attempts = [cluster.clients[client].begin(port, family) for _ in range(count)]
    holder.await_parked(count)
    return attempts


def assert_served(attempts, seconds=5):
    finish(attempts, seconds)
    assert [str(attempt) for attempt in attempts if not attempt.connected or attempt.retransmissions] == []


def assert_greeted(attempts):
    assert_served(attempts)
    assert [attempt.receive() for attempt in attempts] == [b"hello"] * len(attempts)


class Endpoint:
    """A pod that serves, or not."""

    def __init__(self, namespace, addresses, here):
        self.namespace, self.addresses, self.here = namespace, addresses, here
        self.opened = contextlib.ExitStack()
        self.peers = []

    def where(self, family, port=POD_PORT):
        return f"{'here' if self.here else 'there'} {self.addresses[family]} {port}"

    def socket(self, kind, family, port):
        sock = self.namespace.socket(socket.AF_INET if family == 4 else socket.AF_INET6, kind)
        self.opened.callback(sock.close)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((LISTEN[family], port))
        return sock

    def listen(self, family=4, port=POD_PORT, backlog=128, accept_every=0.0):
        """Accepts connections, says hello on each, and notes whom they come from."""
        sock = self.socket(socket.SOCK_STREAM, family, port)
        sock.listen(backlog)
        threading.Thread(target=self.accept, args=(sock, accept_every), daemon=True).start()
        return sock

    def accept(self, sock, accept_every):
        with contextlib.suppress(OSError):
            while True:
                connection, peer = sock.accept()
                self.opened.callback(connection.close)
                self.peers.append(peer[0])
                with contextlib.suppress(OSError):
                    connection.sendall(b"hello")
                time.sleep(accept_every)

    def udp(self, family=4, port=POD_PORT):
        sock = self.socket(socket.SOCK_DGRAM, family, port)
        sock.settimeout(10)
        return sock

    def swallow(self):
        """Nothing that arrives is answered, as by a pod that is gone."""
        self.namespace.run("nft", "table inet grave { chain input { type filter hook input priority 0; drop; }; }")

    def revive(self):
        self.namespace.run("nft", "delete table inet grave")

    def close(self):
        self.opened.close()


class Cluster:
    def __init__(self):
        self.namespaces, self.endpoints, self.clients = [], {}, {}
        self.node, self.node_2, outside = (self.add() for _ in range(3))
        for namespace in (self.node, self.node_2):
            namespace.set("ipv4/ip_forward", 1)
            namespace.set("ipv6/conf/all/forwarding", 1)
        self.wire()
        self.wire_outside(outside)
        self.add_pod("client", self.node, 1, 2)
        for name, node, number, pod in (("here", self.node, 1, 3), ("here2", self.node, 1, 4), ("there", self.node_2, 2, 3)):
            namespace = self.add_pod(name, node, number, pod)
            self.endpoints[name] = Endpoint(namespace, pod_address(number, pod), node is self.node)
        self.clients["node"] = Client(self.node, SERVICE)
        self.clients["outside"] = Client(outside, NODE)
        self.start_proxy()

    def add(self):
        self.namespaces.append(Namespace())
        return self.namespaces[-1]

    def wire(self):
        self.node.ip(f"link add uplink type veth peer name uplink netns {self.node_2.path}", "link set uplink up",
                     f"addr add {NODE[4]}/24 dev uplink", f"addr add {NODE[6]}/64 dev uplink nodad")
        self.node_2.ip("link set uplink up", f"addr add {NODE_2[4]}/24 dev uplink", f"addr add {NODE_2[6]}/64 dev uplink nodad",
                       f"route add 10.244.1.0/24 via {NODE[4]}", f"route add fd44:1::/64 via {NODE[6]}",
                       f"route add default via {NODE[4]}", f"route add default via {NODE[6]}")
        self.node.ip(f"route add 10.244.2.0/24 via {NODE_2[4]}", f"route add fd44:2::/64 via {NODE_2[6]}",
                     f"route add default via {NODE_2[4]}", f"route add default via {NODE_2[6]}")

    def wire_outside(self, outside):
        self.node.ip(f"link add out type veth peer name out netns {outside.path}", "link set out up",
                     "addr add 198.51.100.1/24 dev out", "addr add 2001:db8:2::1/64 dev out nodad")
        outside.ip("link set out up", f"addr add {OUTSIDE[4]}/24 dev out", f"addr add {OUTSIDE[6]}/64 dev out nodad",
                   "route add default via 198.51.100.1", "route add default via 2001:db8:2::1")

    def add_pod(self, name, node, number, pod):
        """As the CNI plugin ptp does it."""
        namespace, addresses, gateway = self.add(), pod_address(number, pod), pod_address(number, 1)
        node.ip(f"link add {name} type veth peer name eth0 netns {namespace.path}", f"link set {name} up",
                f"addr add {gateway[4]}/32 dev {name}", f"addr add {gateway[6]}/128 dev {name} nodad",
                f"route add {addresses[4]}/32 dev {name}", f"route add {addresses[6]}/128 dev {name}")
        namespace.ip("link set eth0 up", f"addr add {addresses[4]}/32 dev eth0", f"addr add {addresses[6]}/128 dev eth0 nodad",
                     f"route add {gateway[4]} dev eth0", f"route add default via {gateway[4]}",
                     f"route add {gateway[6]} dev eth0", f"route add default via {gateway[6]}")
        self.clients[name] = Client(namespace, SERVICE)
        return namespace

    def start_proxy(self):
        """kube-proxy without any endpoint: what was not translated on its way is refused."""
        for family, table in ((4, "ip"), (6, "ip6")):
            self.node.run("nft", "-f", "-", input=f"""table {table} proxy {{
                chain services {{
                }}
                chain prerouting {{
                    type nat hook prerouting priority -100
                    jump services
                }}
                chain output {{
                    type nat hook output priority -100
                    jump services
                }}
                chain postrouting {{
                    type nat hook postrouting priority 100
                    meta mark & 0x4000 == 0x4000 masquerade
                }}
                chain check {{
                    {table} daddr {SERVICES[family]} reject
                    fib daddr type local tcp dport {NODE_PORT} reject
                }}
                chain input {{
                    type filter hook input priority 0
                    ct state new jump check
                }}
                chain forward {{
                    type filter hook forward priority 0
                    ct state new jump check
                }}
                chain filter_output {{
                    type filter hook output priority 0
                    ct state new jump check
                }}
            }}
            """)

    def stop_proxy(self):
        self.node.run("nft", "flush ruleset")

    def program(self, endpoint, family=4, protocol="tcp", parked=0):
        """What kube-proxy does at its next sync. @parked: beside so many endpoints that are this node's parking port."""
        table, to = "ip" if family == 4 else "ip6", text(endpoint.addresses[family], POD_PORT)
        if parked:
            places = [f"{endpoint.addresses[family]} . {POD_PORT}"] + [f"{NODE[family]} . {PARKING_PORT}"] * parked
            to = f"numgen random mod {1 + parked} map {{ {', '.join(f'{number} : {place}' for number, place in enumerate(places))} }}"
            to = f"{table} to {to}"
        else:
            to = f"to {to}"
        rules = [f"flush chain {table} proxy services",
                 f"add rule {table} proxy services {table} daddr {SERVICE[family]} {protocol} dport {PORT} dnat {to}",
                 f"add rule {table} proxy services fib daddr type local {protocol} dport {NODE_PORT} meta mark set 0x4000 dnat {to}"]
        self.node.run("nft", "-f", "-", input="\n".join(rules) + "\n")

    def entries(self):
        """The node's connection tracking, as text."""
        return self.node.run("conntrack", "-L").stdout + self.node.run("conntrack", "-L", "-f", "ipv6").stdout

    def delete_entries(self, *words):
        self.node.run("conntrack", "-D", *words, check=False)

    def close(self):
        for client in self.clients.values():
            client.close()
        for endpoint in self.endpoints.values():
            endpoint.close()
        for namespace in self.namespaces:
            namespace.close()


class Hold:
    """build/tests/net/translate on the node; see there for the commands."""

    def __init__(self, cluster, bpffs, *options):
        # Unbuffered, so that select() tells the truth about what there is to read.
        self.process = cluster.node.start(build_directory() / "tests/net/translate", bpffs / "lull", *options, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, bufsize=0)
        self.events = collections.deque()

    def read(self, timeout=10):
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            return None
        return json.loads(self.process.stdout.readline() or '{"event": "end", "did": "end"}')

    def do(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        while (answer := self.read()) and "did" not in answer:
            self.events.append(answer)
        assert answer and answer["did"] == words[0], answer
        return answer

    def sleep(self, *frontends):
        for frontend in frontends or [f"tcp/{SERVICE[4]}:{PORT}"]:
            self.do("frontend", frontend)
        self.do("start")
        return self

    def await_event(self, kind, timeout=10):
        """The next of this kind; others that came before it are forgotten."""
        deadline = time.monotonic() + timeout
        while True:
            event = self.events.popleft() if self.events else self.read(max(0, deadline - time.monotonic()))
            assert event, f"no {kind} came: {self.state()}"
            if event["event"] == kind:
                return event

    def await_state(self, condition, timeout=10):
        deadline = time.monotonic() + timeout
        while not condition(state := self.state()):
            assert time.monotonic() < deadline, f"in vain: {state}"
            time.sleep(0.005)
        return state

    def await_parked(self, count):
        return self.await_state(lambda state: len(state["list"]) == count)

    def state(self):
        return self.do("state")

    def counter(self, name):
        return self.state()["counters"][name]

    def stop_while(self, condition):
        """Stops the process at a moment at which the condition holds."""
        deadline = time.monotonic() + 10
        while True:
            self.process.send_signal(signal.SIGSTOP)
            if condition():
                return
            self.process.send_signal(signal.SIGCONT)
            assert time.monotonic() < deadline, "in vain"
            time.sleep(0.005)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.stdin.close()
        status = self.process.wait(timeout=10)
        self.process.stdout.close()
        assert status == 0

