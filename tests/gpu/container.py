# SPDX-License-Identifier: Apache-2.0
"""A container: runc's, with a file system of its own that has the stand-ins' client, a libcuda and one device, and nothing else."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cluster"), str(ROOT / "tools")]

from lullcluster import build, cgroups  # noqa: E402  pylint: disable=wrong-import-position
from oci import add_program  # noqa: E402  pylint: disable=wrong-import-position

LIBRARY = "/usr/lib/libcuda.so.1"


class Process:
    """A client: takes a line, and answers it."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # pylint: disable=consider-using-with
        assert self.process.stdout.readline() == "ready\n"

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self):
        self.process.kill()
        self.process.wait()


class Container:
    def __init__(self, directory, client, library, device):
        self.directory = directory
        self.files = directory / "rootfs"
        self.name = f"lull-test-container-{os.getpid()}"
        self.runc = [build.ensure_program("runc"), "--root", directory / "state"]
        directory.mkdir()
        add_program(self.files, client, "/bin/client")
        self.put_library(library)
        subprocess.run([*self.runc, "spec", "--bundle", directory], check=True)
        self.configure(device)
        self.processes = []
        self.processes.append(Process(*self.runc, "run", "--bundle", directory, self.name))

    @property
    def cgroup(self):
        return cgroups.unified() / self.name

    def put_library(self, library):
        """A copy under another inode: what was there before is deleted, as by an update of the image's files."""
        path = self.files / LIBRARY.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        shutil.copy(library, path)

    def remove_library(self):
        (self.files / LIBRARY.lstrip("/")).unlink()

    def configure(self, device):
        status = device.stat()
        node = {"type": "c", "major": os.major(status.st_rdev), "minor": os.minor(status.st_rdev)}
        path = self.directory / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        config["process"] |= {"terminal": False, "args": ["/bin/client"]}
        config["root"]["readonly"] = False
        config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] in ("/proc", "/dev")]
        config["linux"]["cgroupsPath"] = f"/{self.name}"
        config["linux"]["devices"] = [{**node, "path": f"/dev/{device.name}", "fileMode": 0o666, "uid": 0, "gid": 0}]
        config["linux"]["resources"] = {"devices": [{"allow": False, "access": "rwm"}, {**node, "allow": True, "access": "rw"}]}
        path.write_text(json.dumps(config), encoding="utf-8")

    def run(self):
        """One more process in it."""
        self.processes.append(Process(*self.runc, "exec", self.name, "/bin/client"))
        return self.processes[-1]

    def close(self):
        cgroups.kill_all(self.name)
        for process in self.processes:
            process.close()
        subprocess.run([*self.runc, "delete", "--force", self.name], check=False)
        cgroups.remove(self.name)
