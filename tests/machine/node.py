# SPDX-License-Identifier: Apache-2.0
"""The machine that lulld runs on."""
import json
import pathlib

from machine.cgroup import Cgroup
from machine.daemon import Daemon, build_directory
from machine.namespace import mount_bpffs, unmount
from machine.network import Network


class Node:
    """Owns everything a daemon is given, and the daemons. Needs private_mounts() first."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.bpffs = self.directory / "bpf"
        self.run_directory = self.directory / "run"
        self.log_directory = self.directory / "log"
        self.policy_directory = self.directory / "policies"
        self.metrics = "127.0.0.1:9474"
        self.daemons = []
        self.cgroup = self.network = None
        for path in (self.run_directory, self.log_directory, self.policy_directory):
            path.mkdir(parents=True)
        mount_bpffs(self.bpffs)
        try:
            self.cgroup = Cgroup("lull-test")
            self.network = Network()
        except BaseException:
            self.close()
            raise

    @property
    def namespace(self):
        return self.network.node

    @property
    def daemon(self):
        return self.daemons[-1]

    @property
    def control(self):
        return self.daemon.control

    def client(self, kind="routed"):
        return self.network.clients[kind]

    def write_policy(self, text, name="web"):
        path = self.policy_directory / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *policies, options=(), wait=True):
        """lulld over all policies written so far and these, one file each."""
        for text in policies:
            self.write_policy(text, name=json.loads(text)["metadata"]["name"])
        return Daemon(self, [self.policy_directory], options).start(wait)

    def lull(self, *words, check=True):
        """The command line client, in this machine."""
        return self.namespace.run(build_directory() / "lull", "-s", self.run_directory / "control.sock", *words, check=check)

    def pids(self, policy):
        """Processes of the policy's workload."""
        return self.cgroup.pids(policy) if (self.cgroup.path / policy).exists() else []

    def kill_workload(self, policy):
        """Behind lulld's back."""
        (self.cgroup.path / policy / "cgroup.kill").write_text("1", encoding="ascii")

    def server_log(self, policy):
        """What the workload printed."""
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in self.log_directory.glob(f"{policy}*"))

    def complaints(self):
        return [complaint for daemon in self.daemons for complaint in daemon.complaints()]

    def close(self):
        """Stops the daemons as planned; returns what was wrong with them."""
        complaints = self.complaints()
        for daemon in self.daemons:
            if daemon.running() and (status := daemon.stop()) != 0:
                complaints.append(f"lulld ended with status {status} after SIGTERM")
        complaints += [complaint for complaint in self.complaints() if complaint not in complaints]
        if self.network:
            for client in self.network.clients.values():
                client.close()
        if self.cgroup:
            self.cgroup.remove()
        if self.network:
            self.network.close()
        unmount(self.bpffs)
        return complaints
