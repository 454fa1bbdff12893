# SPDX-License-Identifier: Apache-2.0
"""Takes a cluster down, however far it had come: processes, namespaces, mounts, cgroups, files."""
import contextlib
import pathlib
import shutil

from . import cgroups, layout, namespaces, network


def mounts_below(directory):
    """Mount points below a directory, in the order to unmount them."""
    points = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
    return [point for point in reversed(points) if pathlib.PurePath(point).is_relative_to(directory)]


def remove(where):
    """The order matters: who is dead restarts nothing, makes no mount and holds no cgroup. Nodes' mounts end with the last
    process of their mount namespace."""
    cgroups.kill_all(where.cgroup)
    network.remove(where)
    for point in mounts_below(where.directory):
        namespaces.libc.umount2(point.encode(), namespaces.MNT_DETACH)
    cgroups.remove(where.cgroup)
    shutil.rmtree(where.directory, ignore_errors=False, onerror=only_if_there)
    with contextlib.suppress(OSError):  # others' clusters may be there
        where.directory.parent.rmdir()


def only_if_there(_function, _path, information):
    if not isinstance(information[1], FileNotFoundError):
        raise information[1]


def leftovers(where):
    """What is still there of a cluster: empty after down()."""
    found = [f"process {pid}" for pid in cgroups.processes(where.cgroup)]
    found += [f"namespace {name}" for name in map(where.namespace, where.namespaces) if (namespaces.RUN_NETNS / name).exists()]
    found += [f"mount {point}" for point in mounts_below(where.directory)]
    found += [f"cgroup {mount}{where.cgroup}" for _, mount in cgroups.mounts() if (mount / where.cgroup.lstrip("/")).exists()]
    found += [f"directory {where.directory}"] if where.directory.exists() else []
    return found


def down(where=None):
    where = where or layout.Layout()
    remove(where)
    if found := leftovers(where):
        raise SystemExit(f"cluster: left behind: {', '.join(found)}")
