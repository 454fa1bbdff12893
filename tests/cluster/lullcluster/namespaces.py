# SPDX-License-Identifier: Apache-2.0
"""Named network namespaces, as ip-netns(8) keeps them, and the mount namespaces of nodes.

Entered with setns and nsenter, never with "ip netns exec": that mounts a new /sys, without the cgroups the kubelet looks for.
"""
import contextlib
import ctypes
import os
import pathlib
import socket
import subprocess

CLONE_NEWNET = 0x40000000
MNT_DETACH = 2
RUN_NETNS = pathlib.Path("/run/netns")

libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def ip(*lines, namespace=None):
    """Lines in the syntax of ip -batch, in a namespace by name."""
    into = ["-n", namespace] if namespace else []
    done = subprocess.run(["ip", *into, "-batch", "-"], input="\n".join(lines) + "\n", check=False, text=True,
                          capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"ip, in {namespace}: {done.stderr.strip()}\n" + "\n".join(lines))


def add(name):
    ip(f"netns add {name}")
    # An address of IPv6 is usable at once, not a second later: nobody else is here to have it.
    with entered(RUN_NETNS / name):
        set_sysctl("ipv6/conf/default/accept_dad", 0)
        set_sysctl("ipv6/conf/all/accept_dad", 0)
    ip("link set lo up", namespace=name)


def remove(name):
    """What lives in it goes with it. A name whose mount was not made, or is gone already, is a plain file."""
    path = RUN_NETNS / name
    libc.umount2(bytes(path), MNT_DETACH)
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def entered(path):
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        with open(path, "rb") as there:
            check(libc.setns(there.fileno(), CLONE_NEWNET))
        yield
    finally:
        check(libc.setns(home, CLONE_NEWNET))
        os.close(home)


def set_sysctl(name, value):
    """Of the namespace one is in: set_sysctl("ipv4/ip_forward", 1)."""
    pathlib.Path("/proc/sys/net", name).write_text(str(value), encoding="ascii")


def connect(path, address, port, timeout):
    """A TCP connection from within a namespace. It stays there, wherever its owner goes."""
    with entered(path):
        return socket.create_connection((address, port), timeout)
