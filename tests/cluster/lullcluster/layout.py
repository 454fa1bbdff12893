# SPDX-License-Identifier: Apache-2.0
"""Where everything of a cluster is: names, addresses, directories.

All of it follows from the cluster's name alone, so that what a crash left behind can be found and removed without a record.
Addresses are the same in every cluster: each has its own fabric namespace, and nothing leaves it.
"""
import dataclasses
import os
import pathlib
import re

CONTROL_PLANE = ("192.168.77.1", "fd77::1")  # the bridge of the fabric namespace
POD_RANGE = ("10.77.0.0/16", "fd77:1::/48")
SERVICE_RANGE = ("10.78.0.0/16", "fd78::/112")
API_SERVICE = "10.78.0.1"
API_PORT = 6443
FRONT_PORT = 6444
DEFAULT_NAME = "lull"


@dataclasses.dataclass(frozen=True)
class Node:
    """A node of the cluster: a network namespace, a mount namespace, a cgroup."""

    number: int

    @property
    def name(self):
        return f"n{self.number}"

    @property
    def addresses(self):
        return (f"192.168.77.{10 + self.number}", f"fd77::{10 + self.number}")

    @property
    def pod_ranges(self):
        return (f"10.77.{self.number}.0/24", f"fd77:1:0:{self.number}::/64")


CLIENT = ("192.168.77.100", "fd77::100")  # a machine beside the nodes that runs nothing of Kubernetes


@dataclasses.dataclass(frozen=True)
class Layout:
    """The names and paths of one cluster."""

    name: str = dataclasses.field(default_factory=lambda: os.environ.get("LULL_CLUSTER", DEFAULT_NAME))
    nodes: tuple = (Node(1), Node(2))

    def __post_init__(self):
        if not re.fullmatch(r"[a-z][a-z0-9]{0,15}", self.name):
            raise ValueError(f'"{self.name}" cannot name a cluster; use a to z and 0 to 9, at most 16 of them')

    @property
    def directory(self):
        """Short, since Unix sockets live below it; on a disk, since overlayfs and etcd do too."""
        return pathlib.Path(os.environ.get("LULL_CLUSTER_DIR", "/var/lib/lull-cluster")) / self.name

    @property
    def logs(self):
        return self.directory / "log"

    @property
    def certificates(self):
        return self.directory / "pki"

    @property
    def configuration(self):
        return self.directory / "config"

    @property
    def supervisor_socket(self):
        return self.directory / "supervisor.sock"

    @property
    def kubeconfig(self):
        return self.configuration / "admin.kubeconfig"

    def node_directory(self, node):
        return self.directory / node.name

    def node(self, name):
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def namespace(self, role):
        """The name of a network namespace: "fab", "client" or a node's name."""
        return f"{self.name}-{role}"

    def namespace_path(self, role):
        return pathlib.Path("/run/netns") / self.namespace(role)

    @property
    def namespaces(self):
        return ("fab", "client", *(node.name for node in self.nodes))

    @property
    def cgroup(self):
        """Relative to the root of every hierarchy. Below it: "system" for the servers, and one for each node's pods."""
        return f"/{self.name}-cluster"

    def node_cgroup(self, node):
        return f"{self.cgroup}/{node.name}"
