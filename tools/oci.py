# SPDX-License-Identifier: Apache-2.0
"""Container images without a container engine: OCI archives (https://github.com/opencontainers/image-spec) of a directory.

The same files always make the same archive, whoever writes it and when.
"""
import gzip
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
# A loader's own way to write an architecture, and where Debian and Ubuntu keep its libraries.
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}


def this_machine():
    return MACHINES[os.uname().machine]


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
    if entry.isdir():
        entry.mode = 0o755  # not the umask of whoever built it
    return entry


def layer_of(directory):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for path in sorted(pathlib.Path(directory).rglob("*")):
            layer.add(path, path.relative_to(directory), recursive=False, filter=as_root)
    return buffer.getvalue()


def write(directory, name, archive, command=(), environment=(), user="", architecture=None, compressed=False, labels=None):
    """Writes an image of the files below directory to the file archive. name has its tag: "lull.test/pause:1"."""
    architecture = architecture or this_machine()
    layer = layer_of(directory)
    configuration = {
        "architecture": architecture, "os": "linux",
        "config": {"Entrypoint": list(command), "Env": ["PATH=/bin", *environment], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }
    if user:
        configuration["config"]["User"] = user
    if labels:
        configuration["config"]["Labels"] = labels
    kind = "layer.v1.tar"
    if compressed:
        kind, layer = "layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0)
    out = Archive(archive)
    with out.tar:
        manifest = {
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": out.add_blob("config.v1+json", json.dumps(configuration).encode()),
            "layers": [out.add_blob(kind, layer)],
        }
        described = out.add_blob("manifest.v1+json", json.dumps(manifest).encode())
        described["annotations"] = {"io.containerd.image.name": name,
                                    "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
        described["platform"] = {"architecture": architecture, "os": "linux"}
        out.add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        out.add("index.json", json.dumps({"schemaVersion": 2, "manifests": [described]}).encode())


class Needs:
    """What a dynamically linked program loads, found without running it: it may be another architecture's."""

    def __init__(self, architecture=None):
        triplet = TRIPLETS[architecture or this_machine()]
        self.directories = [pathlib.Path(parent, child) for child in (triplet, "") for parent in
                            (f"/usr/{triplet}/lib", "/lib", "/usr/lib", "/usr/local/lib")]

    def library(self, name):
        """A library's own path here. Loaders look into several directories; an image is happy with one."""
        for directory in self.directories:
            if (directory / name).is_file():
                return directory / name
        raise SystemExit(f'make-image: there is no library "{name}" in {", ".join(map(str, self.directories))}')

    @staticmethod
    def read(program):
        """The loader, or None, and the names of the libraries."""
        said = subprocess.run(["readelf", "--wide", "--program-headers", "--dynamic", program], check=True, capture_output=True,
                              text=True, env={**os.environ, "LC_ALL": "C"}).stdout
        loader = re.search(r"Requesting program interpreter: (\S+)\]", said)
        return loader and loader[1], re.findall(r"\(NEEDED\)\s+Shared library: \[(.+)\]", said)

    def of(self, program):
        """Yields (path here, path in the image) of the loader and of every library, each once."""
        loader, waiting = self.read(program)
        if loader:
            yield self.library(pathlib.Path(loader).name), loader
        seen = set()
        while waiting:
            name = waiting.pop()
            if name in seen or (loader and name == pathlib.Path(loader).name):
                continue
            seen.add(name)
            path = self.library(name)
            yield path, f"/lib/{self.directories[0].name}/{name}"
            waiting += self.read(path)[1]


def add_program(directory, program, path=None, architecture=None):
    """Copies a program to an image's directory, with what it loads, to where its loader looks. path is the program's within the
    image, by default its own. Returns where the copy is."""
    directory = pathlib.Path(directory)
    for source, target in [*Needs(architecture).of(program), (program, path or program)]:
        copy = directory / str(target).lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
        copy.chmod(0o755)
    return copy
