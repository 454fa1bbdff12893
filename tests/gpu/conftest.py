# SPDX-License-Identifier: Apache-2.0
"""A machine with GPUs that are not there: other character devices under NVIDIA's major number, and stand-ins for its libraries."""
import os
import pathlib
import stat
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from machine import Node  # noqa: E402  pylint: disable=wrong-import-position
from machine.daemon import build_directory  # noqa: E402  pylint: disable=wrong-import-position
from machine.namespace import MS_BIND, check, libc, private_mounts, unmount  # noqa: E402  pylint: disable=wrong-import-position

MISC = 10  # the major number of devices that every machine has and anybody may open several times
TUN, FUSE, BTRFS, LOOP = 200, 229, 234, 237


class Gpus:
    """/proc/devices says that MISC is NVIDIA's, so that nvidia200 is what TUN opens; NVML says what @say was told."""

    def __init__(self, directory):
        self.directory = directory
        self.library = build_directory() / "tests/gpu/libcuda.so.1"
        self.nvml = directory / "nvml"
        self.devices = directory / "devices"
        self.load("nvidia")
        check(libc.mount(bytes(self.devices), b"/proc/devices", None, MS_BIND, None))
        self.say()

    def load(self, driver):
        """The only one that there is from now on."""
        self.devices.write_text(f"Character devices:\n  1 mem\n {MISC} {driver}\n\nBlock devices:\n  7 loop\n", encoding="ascii")

    def node(self, minor):
        path = self.directory / f"nvidia{minor}"
        if not path.exists():
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(MISC, minor))
        return path

    def say(self, *lines):
        new = self.directory / "nvml.new"
        new.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
        new.rename(self.nvml)

    def close(self):
        unmount(pathlib.Path("/proc/devices"))


def pytest_configure(config):
    private_mounts()


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    made = Gpus(tmp_path)
    monkeypatch.setenv("LULL_NVML_STATE", str(made.nvml))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build_directory() / "tests/gpu"))
    yield made
    made.close()


@pytest.fixture
def node(gpus, tmp_path):  # pylint: disable=unused-argument,redefined-outer-name
    machine = Node(tmp_path / "m")
    yield machine
    logs = "\n".join(daemon.log() for daemon in machine.daemons)
    if complaints := machine.close():
        pytest.fail("; ".join(complaints) + "\n" + logs, pytrace=False)
