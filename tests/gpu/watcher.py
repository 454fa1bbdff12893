# SPDX-License-Identifier: Apache-2.0
"""lulld gpu, in a node."""
from machine.daemon import Daemon, build_directory


class Watcher(Daemon):
    def __init__(self, node, *options):
        super().__init__(node, [], options)

    def arguments(self):
        return [build_directory() / "lulld", "gpu", "--run-dir", self.node.run_directory, "--metrics", "none", *self.options]
