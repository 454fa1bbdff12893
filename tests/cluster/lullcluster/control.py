# SPDX-License-Identifier: Apache-2.0
"""The supervisor's client."""
import json
import signal
import socket
import subprocess
import sys
import time

from . import build


class NotRunning(Exception):
    """No supervisor answers: there is no cluster, or one that crashed."""


class Control:
    """Starts, stops and kills a cluster's servers."""

    def __init__(self, where):
        self.where = where

    def ask(self, **request):
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(str(self.where.supervisor_socket))
            except (FileNotFoundError, ConnectionRefusedError) as error:
                raise NotRunning(f"cluster: no supervisor at {self.where.supervisor_socket}") from error
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(connection.makefile().readline() or '{"error": "the supervisor went away"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["ok"]

    def alive(self):
        try:
            self.ask(do="status")
        except NotRunning:
            return False
        return True

    def status(self):
        return self.ask(do="status")

    def start(self, name, argv=None, environment=None):
        more = {} if argv is None else {"argv": list(map(str, argv)), "environment": environment or {}}
        return self.ask(do="start", name=name, **more)

    def stop(self, name, number=signal.SIGTERM):
        return self.ask(do="stop", name=name, signal=int(number))

    def kill(self, name, number=signal.SIGKILL):
        return self.ask(do="kill", name=name, signal=int(number))

    def launch(self):
        """Starts the supervisor itself and waits until it listens."""
        self.where.supervisor_socket.unlink(missing_ok=True)
        with open(self.where.logs / "supervisor.log", "ab") as log:
            process = subprocess.Popen(  # pylint: disable=consider-using-with
                [sys.executable, "-m", "lullcluster.supervisor", self.where.name], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, cwd=build.MODULES.parent)
        while not self.alive():
            if process.poll() is not None:
                raise RuntimeError(f"cluster: the supervisor ended at once, see {log.name}")
            time.sleep(0.01)
