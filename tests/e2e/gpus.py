# SPDX-License-Identifier: Apache-2.0
"""Nodes with GPUs that are not there: a device plugin that advertises them, and what containers are given with them.

A GPU is another character device, which every machine has and anybody may open several times. An agent reads in /proc/devices that such
ones are NVIDIA's. As NVIDIA's own plugin and toolkit do, the container runtime is told by CDI specifications on each node
(https://github.com/cncf-tags/container-device-interface) what belongs to a device: its node in /dev and the driver's library, or, for an
agent, NVML. The libraries are stand-ins (tests/gpu), and NVML says what say() was told.
"""
import contextlib
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

from lullcluster import build, image

import lull as deployed
from oci import TRIPLETS, this_machine

HERE = pathlib.Path(__file__).resolve().parent
MISC = 10  # the major number of such devices
MINORS = (200, 229, 234, 237, 232, 236, 235, 223, 239, 241)  # tun, fuse, btrfs-control, loop-control, kvm, …
DEVICES = f"Character devices:\n  1 mem\n {MISC} nvidia\n\nBlock devices:\n  7 loop\n"

GPU, DRIVER = "nvidia.com/gpu", "lull.test/driver"
GPU_NODE = "n1"
PLUGIN_IMAGE, WORKER_IMAGE = "lull.test/deviceplugin:1", "lull.test/gpu-worker:1"
PLACE = pathlib.PurePath("/run/lull-gpus")  # on a node
LIBRARIES = pathlib.PurePath("/usr/lib", TRIPLETS[this_machine()])


def can_be_opened(minor):
    with tempfile.TemporaryDirectory() as directory, contextlib.suppress(OSError):
        path = pathlib.Path(directory, "device")
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(MISC, minor))
        os.close(os.open(path, os.O_RDONLY))
        return True
    return False


def choose(count):
    """The minor numbers of so many devices."""
    chosen = [minor for minor in MINORS if can_be_opened(minor)][:count]
    if len(chosen) < count:
        raise RuntimeError(f"of the devices {MISC}:{MINORS} only {chosen} can be opened here, and {count} are needed")
    return chosen


def uuid(minor):
    """As the stand-in for NVML has it."""
    return f"GPU-00000000-0000-0000-0000-{minor:012}"


def mount(name, into):
    return {"hostPath": str(PLACE / name), "containerPath": str(into), "options": ["bind", "ro", "nosuid", "nodev"]}


def specification(kind, devices, **edits):
    return {"cdiVersion": "0.6.0", "kind": kind, "devices": [{"name": name, "containerEdits": more} for name, more in devices],
            "containerEdits": edits}


def gpu_specification(minors):
    def edits(minor):
        return {"env": [f"NVIDIA_VISIBLE_DEVICES={uuid(minor)}"], "deviceNodes": [
            {"path": f"/dev/nvidia{minor}", "type": "c", "major": MISC, "minor": minor, "permissions": "rw"}]}
    return specification(GPU, [(uuid(minor), edits(minor)) for minor in minors],
                         mounts=[mount("libcuda.so.1", LIBRARIES / "libcuda.so.1")])


def driver_specification():
    """Nothing may be mounted below /proc but by a hook. It runs in the container's mount namespace, in its root directory, before that
    becomes the root."""
    program = shutil.which("mount")
    hook = {"hookName": "createContainer", "path": program,
            "args": ["mount", "--no-canonicalize", "--bind", str(PLACE / "devices"), "proc/devices"]}
    return specification(DRIVER, [("0", {"env": [f"LULL_NVML_STATE={PLACE}/nvml/state"]})], hooks=[hook],
                         mounts=[mount("libnvidia-ml.so.1", LIBRARIES / "libnvidia-ml.so.1"), mount("nvml", PLACE / "nvml")])


def import_images(cluster):
    with tempfile.TemporaryDirectory() as directory:
        image.add_program(directory, build.ensure_program("deviceplugin"), "/bin/deviceplugin")
        cluster.import_image(directory, PLUGIN_IMAGE, ["/bin/deviceplugin"])
    with tempfile.TemporaryDirectory() as directory:
        program = pathlib.Path(directory, "gpu_worker")
        subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread",
                        "-o", program, HERE / "images/gpu_worker.c"], check=True)
        root = pathlib.Path(directory, "root")
        image.add_program(root, program, "/bin/gpu_worker")
        cluster.import_image(root, WORKER_IMAGE, ["/bin/gpu_worker"])


def plugin(node, resource, names):
    """A pod that advertises devices on a node."""
    directory = "/var/lib/kubelet/device-plugins"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{node}-{resource.replace('/', '-').replace('.', '-')}"},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 1,
                     "volumes": [{"name": "plugins", "hostPath": {"path": directory}}],
                     "containers": [{"name": "plugin", "image": PLUGIN_IMAGE, "imagePullPolicy": "Never", "args": [resource, *names],
                                     "volumeMounts": [{"name": "plugins", "mountPath": directory}]}]}}


def with_gpu(deployment):
    """Has each pod of a Deployment ask for one."""
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {GPU: "1"}}


class Gpus:
    """Both nodes with the driver, and so many devices on GPU_NODE; of the other no container gets any."""

    def __init__(self, cluster, count):
        self.cluster, self.minors, self.namespace = cluster, choose(count), cluster.make_namespace()

    def install(self):
        import_images(self.cluster)
        for node in self.cluster.nodes:
            self.lay_out(node)
        self.say()
        for node in self.cluster.nodes:
            self.advertise(node, DRIVER, ["0"])
        self.advertise(GPU_NODE, GPU, map(uuid, self.minors))

    def on_node(self, node, path):
        """Where a file of the node's /run is on this machine."""
        return self.cluster.where.node_directory(self.cluster.where.node(node)) / str(path).lstrip("/")

    def lay_out(self, node):
        place, specifications = self.on_node(node, PLACE), self.on_node(node, "/run/cdi")
        for directory in (place / "nvml", specifications):
            directory.mkdir(parents=True, exist_ok=True)
        for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
            shutil.copy(deployed.BUILD / "tests/gpu" / library, place / library)
        (place / "devices").write_text(DEVICES, encoding="ascii")
        for name, content in (("driver", driver_specification()), ("gpu", gpu_specification(self.minors))):
            (specifications / f"lull-{name}.json").write_text(json.dumps(content), encoding="ascii")

    def advertise(self, node, resource, names):
        """Waits until pods may ask for it."""
        names = list(names)
        self.cluster.api.post(f"/api/v1/namespaces/{self.namespace}/pods", plugin(node, resource, names))
        self.cluster.api.until("/api/v1/nodes", lambda nodes: nodes[f"/{node}"]["status"]["allocatable"].get(resource) == str(len(names)))

    def say(self, lost=()):
        """What NVML tells of the devices: that nothing runs on them, but that some are @lost."""
        error = 15  # NVML_ERROR_GPU_IS_LOST
        lines = [f"device minor={minor} power=60000 used=1 total=2" + (f" error={error} process_error={error}" if minor in lost else "")
                 for minor in self.minors]
        for node in self.cluster.nodes:
            new = self.on_node(node, PLACE / "nvml/new")
            new.write_text("".join(f"{line}\n" for line in lines if node == GPU_NODE), encoding="ascii")
            new.rename(new.with_name("state"))

    def of(self, pod):
        """The minor number of the device that a pod has."""
        [minor] = [minor for minor in self.minors if self.has_open(self.cluster.container_pid(pod), minor)]
        return minor

    @staticmethod
    def has_open(pid, minor):
        def device(descriptor):
            with contextlib.suppress(OSError):
                return descriptor.stat().st_rdev
            return None
        return any(device(descriptor) == os.makedev(MISC, minor) for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir())

    def remove(self):
        """Nobody has one any more."""
        self.cluster.remove_namespace(self.namespace)
        for node in self.cluster.nodes:
            shutil.rmtree(self.on_node(node, PLACE), ignore_errors=True)
            for name in ("driver", "gpu"):
                self.on_node(node, f"/run/cdi/lull-{name}.json").unlink(missing_ok=True)
