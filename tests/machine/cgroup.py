# SPDX-License-Identifier: Apache-2.0
"""A child of the cgroup2 hierarchy, wherever that is mounted."""
import itertools
import os
import pathlib
import signal
import time

counter = itertools.count()


def cgroup2_mount():
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, after = line.split(" - ")
        if after.split()[0] == "cgroup2":
            return pathlib.Path(before.split()[4])
    raise RuntimeError("no cgroup2 hierarchy is mounted")


class Cgroup:
    def __init__(self, purpose):
        self.path = cgroup2_mount() / f"{purpose}-{os.getpid()}-{next(counter)}"
        self.path.mkdir()

    def pids(self, below=""):
        """Processes in the cgroup and everywhere below it."""
        found = []
        for procs in sorted((self.path / below).rglob("cgroup.procs")):
            found += map(int, procs.read_text(encoding="ascii").split())
        return found

    def remove(self):
        """Kills what is left in it."""
        deadline = time.monotonic() + 5
        while self.path.exists():
            if pids := self.pids():
                for pid in pids:
                    kill(pid)
            try:
                for directory, _, _ in os.walk(self.path, topdown=False):
                    os.rmdir(directory)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)  # a killed process leaves its cgroup a moment later, and tells nobody


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
