# SPDX-License-Identifier: Apache-2.0
"""A machine of its own for the protocol table: a network namespace, a bpffs, a cgroup with the servers in it, and the watch on it."""
import ctypes
import json
import os
import pathlib
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
DEADLINE = 20


def wait_for(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {DEADLINE} s for {what}"
        time.sleep(0.01)
    return value


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def cgroup2_mount():
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.split()[0] == "cgroup2":
            return pathlib.Path(fields.split()[4])
    raise RuntimeError("no cgroup2 is mounted")


class Machine:
    def __init__(self, directory):
        self.directory = directory
        directory.chmod(0o755)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET | CLONE_NEWNS) < 0:
            raise OSError(ctypes.get_errno(), "unshare")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        self.bpffs = directory / "bpf"
        self.bpffs.mkdir()
        subprocess.run(["mount", "-t", "bpf", "bpf", self.bpffs], check=True)
        self.cgroup_parent = cgroup2_mount() / f"lull-activity-{os.getpid()}"
        self.cgroup_parent.mkdir()

    def close(self):
        self.cgroup_parent.rmdir()
        subprocess.run(["umount", self.bpffs], check=True)


class Workload:
    """Servers in a cgroup, and what lull sees of them."""

    def __init__(self, machine, name, watch, ports):
        self.machine, self.ports, self.processes = machine, ports, []
        self.directory = machine.directory / name
        self.directory.mkdir()
        self.directory.chmod(0o777)
        self.cgroup = machine.cgroup_parent / name
        self.cgroup.mkdir()
        frontends = [f"tcp/[::]:{port}" for port in ports]
        self.watch_command = [watch, machine.bpffs, name, self.cgroup, *frontends]
        self.watch = None
        self.begin_to_watch()

    def begin_to_watch(self):
        self.watch = subprocess.Popen(self.watch_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.watch.stdout.readline() == "{}\n"

    def stop_watching(self, keep):
        if keep:
            self.watch.stdin.write("keep\n")
        self.watch.stdin.close()
        assert self.watch.wait() == 0

    def start(self, command):
        enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.cgroup]
        log = (self.directory / "log").open("a")
        self.processes.append(subprocess.Popen([*enter, *command], cwd=self.directory, stdout=log, stderr=log))
        for port in self.ports:
            wait_for(lambda port=port: listens(port), f"port {port} of {command[0]}")

    def ask(self, line):
        self.watch.stdin.write(line + "\n")
        self.watch.stdin.flush()
        answer = json.loads(self.watch.stdout.readline())
        assert "error" not in answer
        return answer

    def read(self):
        return self.ask("")

    def await_answered(self):
        wait_for(lambda: self.read()["open"] == 0, "no open request")

    def assert_open_for(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.read()["open"] == 1
            time.sleep(0.02)

    def assert_no_request_for(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.read()["open"] == 0
            time.sleep(0.02)

    def close(self):
        self.stop_watching(keep=False)
        (self.cgroup / "cgroup.kill").write_text("1")
        for process in self.processes:
            process.wait()
        wait_for(lambda: not (self.cgroup / "cgroup.procs").read_text(), "the cgroup to be empty")
        self.cgroup.rmdir()


class Backend:
    """What slow servers wait for, outside the workload's cgroup: /slow is answered once the test says so."""

    PORT = 9000

    def __init__(self):
        self.asked, self.released = threading.Event(), threading.Event()
        backend = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_GET(self):
                if self.path.endswith("/slow"):
                    backend.asked.set()
                    backend.released.wait(60)
                if self.path.endswith("/events"):
                    self.send_response(200)
                    self.send_header("Content-Type", "text/event-stream")
                    self.send_header("Connection", "close")
                    self.end_headers()
                    self.wfile.write(b"data: hello\n\n")
                    self.wfile.flush()
                    backend.asked.set()
                    backend.released.wait(60)
                    self.wfile.write(b"data: again\n\n")
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", "3")
                self.end_headers()
                self.wfile.write(b"ok\n")

        self.server = ThreadingHTTPServer(("127.0.0.1", self.PORT), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self):
        self.released.set()
        self.asked, self.released = threading.Event(), threading.Event()
