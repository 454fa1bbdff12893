# SPDX-License-Identifier: Apache-2.0
"""The cluster's network: a fabric namespace with a bridge, to which nodes and a client are wired.

    fab      the bridge; the control plane lives here; routes to each node's pods
    n1, n2   eth0 into the bridge; forwards for its pods
    client   eth0 into the bridge; a machine outside the cluster
"""
from . import layout, namespaces

BRIDGE = "br0"


def addresses(device, pair):
    return [f"address add {pair[0]}/24 dev {device}", f"address add {pair[1]}/64 dev {device} nodad"]


def routes(ranges, via):
    return [f"route add {ranges[0]} via {via[0]}", f"route add {ranges[1]} via {via[1]}"]


def defaults():
    return routes(("0.0.0.0/0", "::/0"), layout.CONTROL_PLANE)


def forward(path):
    with namespaces.entered(path):
        namespaces.set_sysctl("ipv4/ip_forward", 1)
        namespaces.set_sysctl("ipv6/conf/all/forwarding", 1)


def wire(where, role, pair):
    """Gives a namespace its eth0, with the other end in the fabric's bridge."""
    fabric, member = where.namespace("fab"), where.namespace(role)
    namespaces.ip(f"link add {role} type veth peer name eth0 netns {member}", f"link set {role} master {BRIDGE} up",
                  namespace=fabric)
    namespaces.ip("link set eth0 up", *addresses("eth0", pair), *defaults(), namespace=member)


def make(where):
    for role in where.namespaces:
        namespaces.add(where.namespace(role))
    fabric = where.namespace("fab")
    # Set by hand: a bridge without ports has no carrier, and its address changes with its first port's.
    namespaces.ip(f"link add {BRIDGE} address 02:77:00:00:00:01 type bridge", f"link set {BRIDGE} up",
                  *addresses(BRIDGE, layout.CONTROL_PLANE), namespace=fabric)
    wire(where, "client", layout.CLIENT)
    for node in where.nodes:
        wire(where, node.name, node.addresses)
        forward(where.namespace_path(node.name))
    # Every machine reaches any node's pods directly, as in a routed cluster.
    for role in where.namespaces:
        for node in where.nodes:
            if node.name != role:
                namespaces.ip(*routes(node.pod_ranges, node.addresses), namespace=where.namespace(role))
    forward(where.namespace_path("fab"))


def remove(where):
    for role in where.namespaces:
        namespaces.remove(where.namespace(role))
