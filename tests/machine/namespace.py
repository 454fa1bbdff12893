# SPDX-License-Identifier: Apache-2.0
"""Namespaces without names: each lives exactly as long as this process holds its file descriptor."""
import contextlib
import ctypes
import os
import signal
import socket
import subprocess

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def private_mounts():
    """Mounts made from here on are seen by this process and its children only, and go with them."""
    check(libc.unshare(CLONE_NEWNS))
    check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))


def mount_bpffs(directory):
    directory.mkdir(parents=True, exist_ok=True)
    check(libc.mount(b"bpf", bytes(directory), b"bpf", 0, None))


def set_writable(directory, writable):
    """Makes a mount read-only, as a full or failing disk would be, or writable again."""
    check(libc.mount(None, bytes(directory), None, MS_REMOUNT | MS_BIND | (0 if writable else MS_RDONLY), None))


def unmount(directory):
    libc.umount2(bytes(directory), MNT_DETACH)


def die_with_parent():
    """For preexec_fn: a killed test run leaves no daemon behind."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Namespace:
    """A network namespace. Sockets made in it stay in it, so one process can talk from many."""

    def __init__(self):
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            check(libc.unshare(CLONE_NEWNET))
            self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            with open("/proc/sys/net/ipv6/conf/default/accept_dad", "w", encoding="ascii") as setting:
                setting.write("0")
        finally:
            check(libc.setns(home, CLONE_NEWNET))
            os.close(home)
        self.ip("link set lo up")

    @property
    def path(self):
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    @contextlib.contextmanager
    def entered(self):
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            check(libc.setns(self.fd, CLONE_NEWNET))
            yield
        finally:
            check(libc.setns(home, CLONE_NEWNET))
            os.close(home)

    def socket(self, family, kind, protocol=0):
        with self.entered():
            return socket.socket(family, kind, protocol)

    def command(self, *words):
        return ["nsenter", f"--net={self.path}", "--", *map(str, words)]

    def run(self, *words, **options):
        """Runs to its end and returns its output; a failure raises with what it said."""
        options = {"check": True, "text": True, "capture_output": True, "timeout": 60, **options}
        return subprocess.run(self.command(*words), **options)  # pylint: disable=subprocess-run-check

    def start(self, *words, **options):
        """In a session of its own: Ctrl-C is for the one who started it, who then stops it in order."""
        return subprocess.Popen(self.command(*words), preexec_fn=die_with_parent, start_new_session=True, **options)

    def ip(self, *lines):
        """Lines in the syntax of ip -batch."""
        self.run("ip", "-batch", "-", input="\n".join(lines) + "\n")

    def set(self, name, value):
        """A sysctl of this namespace: set("ipv4/ip_forward", 1)."""
        with self.entered(), open(f"/proc/sys/net/{name}", "w", encoding="ascii") as setting:
            setting.write(str(value))

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
