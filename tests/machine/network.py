# SPDX-License-Identifier: Apache-2.0
"""The node's namespace and two other hosts: one on a wire of its own, one plugged into the node's bridge."""
from machine.client import Client
from machine.namespace import Namespace

# From the documentation ranges: RFC 5737 and RFC 3849.
ROUTED = {4: "192.0.2", 6: "2001:db8:1:"}
BRIDGED = {4: "198.51.100", 6: "2001:db8:2:"}


def host(net, number):
    return {4: f"{net[4]}.{number}", 6: f"{net[6]}:{number}"}


def give_addresses(device, net, *numbers):
    for number in numbers:
        yield f"addr add {host(net, number)[4]}/24 dev {device}"
        yield f"addr add {host(net, number)[6]}/64 dev {device} nodad"


class Network:
    """Clients by where they are: loopback, own (this host to its own address), routed, bridged.

    The routed host has two addresses, ending in 2 and 3."""

    def __init__(self):
        self.namespaces = []
        try:
            self.node, self.routed_host, self.bridged_host = (self.add() for _ in range(3))
            self.connect_routed()
            self.connect_bridged()
        except BaseException:
            self.close()
            raise
        self.clients = {
            "loopback": Client(self.node, {4: "127.0.0.1", 6: "::1"}),
            "own": Client(self.node, host(ROUTED, 1)),
            "routed": Client(self.routed_host, host(ROUTED, 1)),
            "bridged": Client(self.bridged_host, host(BRIDGED, 1)),
        }

    def add(self):
        self.namespaces.append(Namespace())
        return self.namespaces[-1]

    def connect_routed(self):
        self.node.ip(f"link add wire type veth peer name wire netns {self.routed_host.path}",
                     "link set wire up", *give_addresses("wire", ROUTED, 1))
        self.routed_host.ip("link set wire up", *give_addresses("wire", ROUTED, 2, 3))

    def connect_bridged(self):
        self.node.ip("link add bridge type bridge forward_delay 0",
                     f"link add port type veth peer name wire netns {self.bridged_host.path}",
                     "link set port master bridge", "link set port up", "link set bridge up",
                     *give_addresses("bridge", BRIDGED, 1))
        self.bridged_host.ip("link set wire up", *give_addresses("wire", BRIDGED, 2))

    def close(self):
        for namespace in self.namespaces:
            namespace.close()
