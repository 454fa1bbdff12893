# SPDX-License-Identifier: Apache-2.0
"""Builds Kubernetes and what it needs from Go modules, once: the binaries are kept by a hash of what they are made from."""
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

MODULES = pathlib.Path(__file__).resolve().parent.parent / "modules"
GO_VERSION = "1.26.8"  # the newest that one of the modules asks for
KUBERNETES_VERSION = "1.37.2"
KUBERNETES_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl")
LONGEST = "kubernetes"
# The compiler collects garbage less often than memory asks for: a sixth of its time.
COMPILER = {"GOFLAGS": "", "GOWORK": "off", "GOGC": "400"}
CNI_PROGRAMS = ("ptp", "bridge", "host-local", "loopback", "portmap")


@dataclasses.dataclass(frozen=True)
class Module:
    """A directory below modules/ and what to make of it."""

    name: str
    programs: tuple
    packages: tuple = ("tool",)  # the go.mod's "tool" lines, or "." for an own main.go
    tags: tuple = ()
    cgo: bool = False
    variables: tuple = ()  # -X of the linker
    links: tuple = ()      # further names for programs[0]

    def recipe(self):
        return json.dumps(dataclasses.astuple(self) + (GO_VERSION, os.uname().machine))


def component_version(name, value):
    return f"k8s.io/component-base/version.{name}={value}"


ALL = (
    # Without these the API server says that it is v0.0.0.
    Module("kubernetes", ("kubernetes",), packages=(".",), links=KUBERNETES_PROGRAMS, variables=(
        component_version("gitVersion", f"v{KUBERNETES_VERSION}"),
        component_version("gitMajor", KUBERNETES_VERSION.split(".")[0]),
        component_version("gitMinor", KUBERNETES_VERSION.split(".")[1]))),
    Module("etcd", ("etcd",), packages=(".",)),
    Module("containerd", ("containerd", "containerd-shim-runc-v2", "ctr"),
           tags=("no_btrfs", "no_zfs", "no_devmapper", "no_aufs")),
    Module("cni", CNI_PROGRAMS),
    Module("runc", ("runc",), tags=("seccomp",), cgo=True),
    Module("reflectors", ("reflectors",), packages=(".",)),
)
# Built when a test first asks for one.
ON_DEMAND = (
    Module("traefik", ("traefik",)),
    Module("deviceplugin", ("deviceplugin",), packages=(".",)),
)


def cache():
    return pathlib.Path(os.environ.get("LULL_CACHE") or pathlib.Path.home() / ".cache/lull")


def cluster_cache():
    return cache() / "cluster"


def module_hash(module):
    digest = hashlib.sha256(module.recipe().encode())
    for path in sorted((MODULES / module.name).iterdir()):
        digest.update(f"\0{path.name}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def module_directory(module):
    return cluster_cache() / f"{module.name}-{module_hash(module)}"


def program(name):
    """The path of a built program."""
    for module in ALL + ON_DEMAND:
        if name in module.programs or name in module.links:
            return module_directory(module) / name
    raise KeyError(name)


def cni_directory():
    return program("ptp").parent


def version_of(go):
    match = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", subprocess.run(
        [go, "version"], check=True, capture_output=True, text=True, env={**os.environ, "GOTOOLCHAIN": "local"}).stdout)
    return tuple(int(part or 0) for part in match.groups())


def find_go():
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if not found:
        raise SystemExit("cluster: there is no go; any version will do (apt-get install golang-go), it fetches the one needed")
    return found


def fetch_toolchain(go):
    """A Go from before 1.21 cannot change to another version by itself, but it can fetch one: a toolchain is a module."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    name = f"golang.org/toolchain@v0.0.1-go{GO_VERSION}.linux-{machine}"
    said = json.loads(subprocess.run([go, "mod", "download", "-json", name], check=True, capture_output=True, text=True,
                                     cwd=tempfile.gettempdir()).stdout)
    root = pathlib.Path(said["Dir"])
    for path in [*(root / "bin").iterdir(), *(root / "pkg/tool").rglob("*")]:
        path.chmod(0o755)  # module files are never executable
    return str(root / "bin/go")


def go_command():
    """Returns the go to call and the GOTOOLCHAIN to call it with."""
    go = find_go()
    version, wanted = version_of(go), tuple(map(int, GO_VERSION.split(".")))

    if version >= wanted:
        return go, "local"
    if version >= (1, 21, 0):
        return go, f"go{GO_VERSION}"
    return fetch_toolchain(go), "local"


def build(module, into):
    go, toolchain = go_command()
    environment = {**os.environ, **COMPILER, "CGO_ENABLED": str(int(module.cgo)), "GOTOOLCHAIN": toolchain}
    linker = " ".join(["-s", "-w", *(f"-X {variable}" for variable in module.variables)])
    # "go build tool" writes into a directory only if it is said to be one. What the linker would strip is not made.
    nice = 10 if module.name == LONGEST else 19
    subprocess.run(["nice", "-n", str(nice), go, "build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", linker,
                    "-gcflags", "all=-dwarf=false", "-tags", ",".join(module.tags), "-o", f"{into}/", *module.packages],
                   check=True, cwd=MODULES / module.name, env=environment)
    for link in module.links:
        (into / link).symlink_to(module.programs[0])
    missing = [name for name in module.programs if not (into / name).exists()]
    if missing:
        raise SystemExit(f"cluster: {module.name} built, but without {', '.join(missing)}")


@contextlib.contextmanager
def only_one_builds(name="lock"):
    cluster_cache().mkdir(parents=True, exist_ok=True)
    with open(cluster_cache() / name, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure_module(module):
    final = module_directory(module)
    if final.exists():
        return
    started = time.monotonic()
    print(f"cluster: building {module.name}", flush=True)
    with tempfile.TemporaryDirectory(dir=cluster_cache(), prefix=f"{module.name}.") as directory:
        made = pathlib.Path(directory) / "bin"
        made.mkdir()
        build(module, made)
        made.rename(final)
    print(f"cluster: built {module.name} in {time.monotonic() - started:.0f} s", flush=True)


def ensure_program(name):
    """Builds the one module that a program is from, if it is not built yet; returns its path."""
    module = next((module for module in ALL + ON_DEMAND if name in module.programs), None)
    if not module:
        known = ", ".join(program for module in ALL + ON_DEMAND for program in module.programs)
        raise SystemExit(f"cluster: there is no program {name} to build by itself; there is {known}")
    if not module_directory(module).exists():
        with only_one_builds(*([] if module in ALL else [f"{module.name}.lock"])):
            ensure_module(module)
    return program(name)


def ensure():
    """Builds what is not built yet. A build that is killed leaves nothing that a later one would take for finished. Two at once: the
    longest has packages that wait for each other, and leaves a core to the others for a third of its time, but goes first."""
    with only_one_builds(), concurrent.futures.ThreadPoolExecutor(2) as pool:
        for built in [pool.submit(ensure_module, module) for module in ALL]:
            built.result()


if __name__ == "__main__":
    sys.exit(ensure())
