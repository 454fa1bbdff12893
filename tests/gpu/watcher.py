# SPDX-License-Identifier: Apache-2.0
"""lulld gpu, in a node, which looks at one cgroup of the machine and at nothing else."""
from machine.daemon import Daemon, build_directory


class Watcher(Daemon):
    def __init__(self, node, cgroup, *options, without=()):
        """@without: capabilities."""
        super().__init__(node, [], options)
        self.cgroup = cgroup
        self.without = without

    def arguments(self):
        command = [build_directory() / "lulld", "gpu", "--cgroup", self.cgroup, "--run-dir", self.node.run_directory,
                   "--metrics", "none", *self.options]
        if self.without:
            dropped = ",".join(f"-{capability}" for capability in self.without)
            command = ["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}", *command]
        return command
