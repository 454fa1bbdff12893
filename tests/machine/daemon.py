# SPDX-License-Identifier: Apache-2.0
"""One lulld: started, awaited by its own word, its log kept, and never allowed to die unnoticed."""
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import time

from machine.control import Control

ROOT = pathlib.Path(__file__).resolve().parents[2]
SANITIZER = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")


def build_directory():
    return (ROOT / os.environ.get("BUILD", "build")).resolve()


def slowness():
    """What a sanitizer's build may take longer."""
    return 4 if "sanitize" in str(build_directory()) else 1


class Daemon:
    """@node tells the namespace, the directories and the settings."""

    def __init__(self, node, policies, options=()):
        self.node = node
        self.policies = [str(path) for path in policies]
        self.options = list(options)
        self.log_path = node.directory / f"lulld.{len(node.daemons)}.log"
        self.control = Control(node.run_directory / "control.sock")
        self.process = None
        self.expected_to_die = False
        node.daemons.append(self)

    def arguments(self):
        node = self.node
        return [build_directory() / "lulld", "standalone", "--bpffs", node.bpffs, "--cgroup", node.cgroup.path,
                "--run-dir", node.run_directory, "--log-dir", node.log_directory, "--metrics", node.metrics,
                *self.options, *self.policies]

    def start(self, wait=True, timeout=20):
        notify_path = self.node.directory / f"notify.{len(self.node.daemons)}"
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(str(notify_path))
        environment = {**os.environ, "NOTIFY_SOCKET": str(notify_path)}
        began = time.monotonic()
        with open(self.log_path, "wb") as log, notify:
            self.process = self.node.namespace.start(*self.arguments(), stdin=subprocess.DEVNULL, stdout=log,
                                                     stderr=log, env=environment)
            if wait:
                self.await_ready(notify, timeout * slowness())
        self.start_seconds = time.monotonic() - began
        notify_path.unlink()
        return self

    def await_ready(self, notify, timeout):
        deadline = time.monotonic() + timeout
        died = os.pidfd_open(self.process.pid)
        poller = select.poll()
        poller.register(notify, select.POLLIN)
        poller.register(died, select.POLLIN)
        try:
            while True:
                readable = [fd for fd, _ in poller.poll(max(0, deadline - time.monotonic()) * 1000)]
                if notify.fileno() in readable:
                    if "READY=1" in notify.recv(4096).decode().splitlines():
                        return
                elif readable:
                    raise AssertionError(f"lulld exited with status {self.process.wait()} before it was ready:\n{self.log()}")
                else:
                    raise AssertionError(f"lulld was not ready within {timeout} s:\n{self.log()}")
        finally:
            os.close(died)

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return self.log_path.read_text(encoding="utf-8", errors="replace") if self.log_path.exists() else ""

    def running(self):
        return self.process is not None and self.process.poll() is None

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def stop(self, timeout=10):
        """A planned stop, as systemd does it."""
        self.expected_to_die = True
        self.process.terminate()
        return self.process.wait(timeout * slowness())

    def kill(self):
        self.expected_to_die = True
        self.process.kill()
        return self.process.wait(10)

    def wait(self, timeout=10):
        """For a daemon that ends by itself."""
        self.expected_to_die = True
        return self.process.wait(timeout * slowness())

    def complaints(self):
        """What would make any test fail, whatever it was about."""
        found = []
        if self.process and not self.running() and not self.expected_to_die:
            found.append(f"lulld died unexpectedly with status {self.process.returncode}")
        if SANITIZER.search(self.log()):
            found.append("a sanitizer reported an error in lulld")
        return found
