# SPDX-License-Identifier: Apache-2.0
"""A GPU on a node that has none: another character device under NVIDIA's major number, NVML's and CUDA's stand-ins, and a process that a
test puts into a pod's cgroup to use them."""
import os
import pathlib
import stat
import subprocess

from agents import BUILD, ROOT

MISC, TUN = 10, 200  # the major number of devices that every machine has, and one of them that may be opened several times


class Gpu:
    """nvidia200 of one node. Agents find NVML by the environment that this gives them."""

    def __init__(self, cluster, node, directory):
        self.place, self.directory, self.processes = cluster.nodes[node], pathlib.Path(directory), []
        self.device = self.directory / f"nvidia{TUN}"
        os.mknod(self.device, stat.S_IFCHR | 0o600, os.makedev(MISC, TUN))
        devices, nvml = self.directory / "devices", self.directory / "nvml"
        devices.write_text(f"Character devices:\n  1 mem\n {MISC} nvidia\n\nBlock devices:\n  7 loop\n", encoding="ascii")
        nvml.write_text(f"device minor={TUN}\n", encoding="ascii")
        self.environment = {"LULL_NVML_STATE": str(nvml), "LD_LIBRARY_PATH": str(BUILD / "tests/gpu")}
        subprocess.run([str(word) for word in self.place.inside("mount", "--bind", devices, "/proc/devices")], check=True)

    def use(self, pod):
        """Starts a process in a pod's container that has the device open; returns it. A number a line on its stdin is so many launches."""
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["/usr/bin/python3", ROOT / "tests/gpu/workload.py", "0", self.device, BUILD / "tests/gpu/libcuda.so.1"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        assert process.stdout.readline() == "ready\n"
        container = next(path for path in pathlib.Path(self.place.cgroup).rglob("cgroup.procs")
                         if pod["metadata"]["uid"] in str(path).replace("_", "-") and path.read_text(encoding="ascii"))
        container.write_text(str(process.pid), encoding="ascii")
        return process

    def close(self):
        for process in self.processes:
            process.kill()
            process.communicate()
        subprocess.run([str(word) for word in self.place.inside("umount", "/proc/devices")], check=True)


def launch(process, count=1):
    process.stdin.write(f"{count}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"
