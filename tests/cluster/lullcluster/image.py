# SPDX-License-Identifier: Apache-2.0
"""Container images without a container engine: an OCI archive written from a directory of files."""
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "images"


class Archive:
    """An OCI image layout in a tar file: every part is a file named by its own hash."""

    def __init__(self, path):
        self.tar = tarfile.open(path, "w")  # pylint: disable=consider-using-with

    def add(self, name, content):
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        self.tar.addfile(entry, io.BytesIO(content))

    def add_blob(self, kind, content):
        digest = hashlib.sha256(content).hexdigest()
        self.add(f"blobs/sha256/{digest}", content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}


def as_root(entry):
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def layer_of(directory):
    """The same files always make the same image: nothing of who built it and when."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for path in sorted(pathlib.Path(directory).rglob("*")):
            layer.add(path, path.relative_to(directory), recursive=False, filter=as_root)
    return buffer.getvalue()


def write(directory, name, archive, command=(), environment=()):
    """Writes an image of the files below directory to the file archive. name has its tag: "lull.test/pause:1"."""
    machine = MACHINES[os.uname().machine]
    layer = layer_of(directory)
    configuration = {
        "architecture": machine, "os": "linux",
        "config": {"Entrypoint": list(command), "Env": ["PATH=/bin", *environment], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }
    out = Archive(archive)
    with out.tar:
        manifest = {
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": out.add_blob("config.v1+json", json.dumps(configuration).encode()),
            "layers": [out.add_blob("layer.v1.tar", layer)],
        }
        described = out.add_blob("manifest.v1+json", json.dumps(manifest).encode())
        described["annotations"] = {"io.containerd.image.name": name,
                                    "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
        described["platform"] = {"architecture": machine, "os": "linux"}
        out.add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        out.add("index.json", json.dumps({"schemaVersion": 2, "manifests": [described]}).encode())


def compile_static(source, into):
    """Static, so that an image is one file. -s: symbols are of no use in there."""
    into.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-static", "-s", "-pthread", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
                    "-o", into, source], check=True)
    return into


def add_program(directory, program, path=None):
    """Copies a dynamically linked program to an image's directory, with the libraries it loads, to where it looks for them.
    path is the program's within the image, by default its own."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    libraries = re.findall(r"(/\S+) \(0x", listed)
    for source, target in [(program, path or program), *((library, library) for library in libraries)]:
        copy = pathlib.Path(directory) / str(target).lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
