# SPDX-License-Identifier: Apache-2.0
"""The cluster's cgroups: one tree by its name in every hierarchy, v1 and v2 alike.

Every process of the cluster is in the tree in the cgroup2 hierarchy from its start, and so is all it forks: containers and
the shims that outlive containerd too. That tree is how the processes are found when the cluster is taken down.
"""
import contextlib
import errno
import os
import pathlib
import select
import signal
import time


def mounts():
    """Yields (file system type, mount point) of every cgroup hierarchy."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="ascii").splitlines():
        fields, _, rest = line.partition(" - ")
        kind = rest.split()[0]
        if kind in ("cgroup", "cgroup2"):
            yield kind, pathlib.Path(fields.split()[4])


def unified():
    for kind, mount in mounts():
        if kind == "cgroup2":
            return mount
    raise SystemExit("cluster: no cgroup2 is mounted; mount it (mount -t cgroup2 none /sys/fs/cgroup/unified)")


def make(path):
    """Makes a cgroup in every hierarchy. One of cpuset v1 takes nobody in before it has processors and memory."""
    for kind, mount in mounts():
        directory = mount
        for part in pathlib.PurePath(path).parts[1:]:
            parent, directory = directory, directory / part
            directory.mkdir(exist_ok=True)
            for setting in ("cpuset.cpus", "cpuset.mems"):
                if kind == "cgroup" and (parent / setting).exists():
                    (directory / setting).write_text((parent / setting).read_text(encoding="ascii"), encoding="ascii")


def enter(path):
    """Moves the calling process into a cgroup of the cgroup2 hierarchy."""
    (unified() / path.lstrip("/") / "cgroup.procs").write_text("0", encoding="ascii")


def tree(top):
    """Every cgroup from the leaves up to top. One may go while we look."""
    for directory, _, _ in os.walk(top, topdown=False, onerror=None):
        yield pathlib.Path(directory)


def processes(path):
    """The ids of all processes below a cgroup, in any hierarchy."""
    found = set()
    for _, mount in mounts():
        for directory in tree(mount / path.lstrip("/")):
            with contextlib.suppress(OSError):
                found.update(map(int, (directory / "cgroup.procs").read_text(encoding="ascii").split()))
    return found


def kill_all(path):
    """Kills until nobody is left: who forks while we look is found by the next look. Waits for each end by its pidfd."""
    while True:
        descriptors = []
        for pid in processes(path) - {os.getpid()}:
            with contextlib.suppress(ProcessLookupError):
                descriptors.append(os.pidfd_open(pid))
        if not descriptors:
            return
        for descriptor in descriptors:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        for descriptor in descriptors:
            if not select.select([descriptor], [], [], 10)[0]:
                raise SystemExit(f"cluster: a process below cgroup {path} does not die")
            os.close(descriptor)


def remove_one(directory, timeout=5):
    """Whoever died has left a cgroup only when the kernel has taken the last of it apart, and nothing tells of that in v1."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            directory.rmdir()
            return
        except OSError as error:
            if error.errno == errno.ENOENT:
                return
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def remove(path):
    for _, mount in mounts():
        for directory in tree(mount / path.lstrip("/")):
            remove_one(directory)
