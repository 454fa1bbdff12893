# SPDX-License-Identifier: Apache-2.0
"""The configuration files of a cluster's servers. JSON where YAML is read: it is YAML."""
import json

from . import build, layout

PAUSE_IMAGE = "lull.test/pause:1"
SERVER_IMAGE = "lull.test/server:1"


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")


def kubeconfig(where, client, port=layout.API_PORT):
    """Certificates by path, not by value: one that is replaced is found replaced."""
    pki = where.certificates
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "lull",
        "clusters": [{"name": "lull", "cluster": {"server": f"https://{layout.CONTROL_PLANE[0]}:{port}",
                                                  "certificate-authority": str(pki / "ca.crt")}}],
        "users": [{"name": client, "user": {"client-certificate": str(pki / f"{client}.crt"),
                                            "client-key": str(pki / f"{client}.key")}}],
        "contexts": [{"name": "lull", "context": {"cluster": "lull", "user": client}}],
    }


def containerd(where, node):
    directory = where.node_directory(node)
    cni = build.cni_directory()
    return f"""version = 3
root = "{directory}/containerd"
state = "{directory}/containerd-state"

[grpc]
address = "{directory}/containerd.sock"

[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins.'io.containerd.cri.v1.runtime']
# Lowering the score takes CAP_SYS_RESOURCE, which root in a sandbox may lack.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{cni}"]
conf_dir = "{directory}/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = "runc"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "{build.program('runc')}"
SystemdCgroup = false
"""


def cni(node):
    ranges = [[{"subnet": subnet}] for subnet in node.pod_ranges]
    return {
        "cniVersion": "1.0.0", "name": "pods",
        "plugins": [
            {"type": "ptp", "ipMasq": False, "ipam": {"type": "host-local", "ranges": ranges,
                                                      "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def kubelet(where, node):
    directory = where.node_directory(node)
    pki = where.certificates
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{directory}/containerd.sock",
        "cgroupDriver": "cgroupfs", "cgroupRoot": where.node_cgroup(node), "failCgroupV1": False, "failSwapOn": False,
        "podLogsDir": f"{directory}/pod-logs", "resolvConf": "", "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": str(pki / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki / f"kubelet-server-{node.name}.crt"),
        "tlsPrivateKeyFile": str(pki / f"kubelet-server-{node.name}.key"),
        # The machine's disk and memory are not this cluster's to run out of.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%",
                         "nodefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100,
        "localStorageCapacityIsolation": False,
        # Several nodes share the kernel: none of them may set what belongs to all, and none is worth waiting for.
        "protectKernelDefaults": False, "makeIPTablesUtilChains": False,
        "maxPods": 250, "registryPullQPS": 0, "eventRecordQPS": 0, "serializeImagePulls": False,
        "nodeStatusUpdateFrequency": "10s", "shutdownGracePeriod": "0s",
    }


def kube_proxy(where, node, mode):
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": mode,
        "clientConnection": {"kubeconfig": str(where.configuration / "kube-proxy.kubeconfig")},
        "clusterCIDR": ",".join(layout.POD_RANGE), "detectLocalMode": "ClusterCIDR",
        "conntrack": {"maxPerCore": 0}, "hostnameOverride": node.name,
        "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
    }


def kube_proxy_path(where, node):
    return where.configuration / f"kube-proxy-{node.name}.json"


def kube_proxy_mode(where):
    return json.loads(kube_proxy_path(where, where.nodes[0]).read_text(encoding="utf-8"))["mode"]


def write_kube_proxy(where, mode):
    for node in where.nodes:
        write(kube_proxy_path(where, node), kube_proxy(where, node, mode))


def write_all(where, mode):
    for client in ("admin", "kube-controller-manager", "kube-scheduler", "kube-proxy"):
        write(where.configuration / f"{client}.kubeconfig", kubeconfig(where, client))
    write_kube_proxy(where, mode)
    for node in where.nodes:
        write(where.configuration / f"kubelet-{node.name}.kubeconfig", kubeconfig(where, f"kubelet-{node.name}"))
        write(where.configuration / f"kubelet-{node.name}.json", kubelet(where, node))
        write(where.configuration / f"containerd-{node.name}.toml", containerd(where, node))
        write(where.node_directory(node) / "cni/10-pods.conflist", cni(node))
