# SPDX-License-Identifier: Apache-2.0
"""A machine of its own for lulld: network namespaces, a bpffs, a cgroup2 child and directories, all gone afterwards.

Used by the network tests, the benchmark and the demo. Nothing here touches the network namespace or the root cgroup of
the machine it runs on, and nothing has a name that two runs could fight over.
"""
from machine.client import Client
from machine.control import Control, ControlError
from machine.daemon import Daemon, build_directory
from machine.network import Network
from machine.node import Node
from machine.policy import policy, tool

__all__ = ["Client", "Control", "ControlError", "Daemon", "Network", "Node", "build_directory", "policy", "tool"]
