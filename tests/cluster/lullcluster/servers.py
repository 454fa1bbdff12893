# SPDX-License-Identifier: Apache-2.0
"""The servers of a cluster: what to call, and where."""
import os
import pathlib
import sys

from . import build, layout

ETCD = "http://127.0.0.1:2379"  # within the fabric namespace, where nobody else is


def in_fabric(where, *words):
    return ["nsenter", f"--net={where.namespace_path('fab')}", "--", *words]


def in_node(where, node, holder, *words):
    """In the network and mount namespaces of a node."""
    return ["nsenter", f"--net={where.namespace_path(node.name)}", f"--mount=/proc/{holder}/ns/mnt", "--", *words]


def etcd(where):
    return in_fabric(where, build.program("etcd"), f"--data-dir={where.directory}/etcd", f"--listen-client-urls={ETCD}",
                     f"--advertise-client-urls={ETCD}", "--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync",
                     "--log-level=warn")


def apiserver(where, extra=()):
    pki = where.certificates
    return in_fabric(
        where, build.program("kube-apiserver"), f"--etcd-servers={ETCD}", f"--secure-port={layout.API_PORT}",
        f"--advertise-address={layout.CONTROL_PLANE[0]}", f"--service-cluster-ip-range={','.join(layout.SERVICE_RANGE)}",
        f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key", f"--client-ca-file={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt", f"--kubelet-client-key={pki}/kubelet-client.key",
        f"--kubelet-certificate-authority={pki}/ca.crt", "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={pki}/service-accounts.crt",
        f"--service-account-signing-key-file={pki}/service-accounts.key", "--authorization-mode=Node,RBAC",
        f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt", "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User", f"--proxy-client-cert-file={pki}/front-proxy.crt",
        f"--proxy-client-key-file={pki}/front-proxy.key", "--enable-aggregator-routing=true", "--allow-privileged=true", *extra)


def controller_manager(where):
    pki = where.certificates
    kubeconfig = where.configuration / "kube-controller-manager.kubeconfig"
    return in_fabric(
        where, build.program("kube-controller-manager"), f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={pki}/service-accounts.key", f"--root-ca-file={pki}/ca.crt",
        "--use-service-account-credentials=true", "--leader-elect=false", "--bind-address=127.0.0.1",
        # Its default of 20 requests a second costs 5 s at the start, when it makes its controllers' accounts.
        "--kube-api-qps=1000", "--kube-api-burst=1000",
        f"--flex-volume-plugin-dir={where.directory}/volume-plugins")


def scheduler(where):
    kubeconfig = where.configuration / "kube-scheduler.kubeconfig"
    return in_fabric(
        where, build.program("kube-scheduler"), f"--kubeconfig={kubeconfig}", f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1")


def front(where):
    return in_fabric(where, sys.executable, "-m", "lullcluster.front", where.name)


def node_holder(where, node):
    """A process that keeps a node's mount namespace: a /var, a /run and a bpffs of its own, so that whatever has a fixed place
    there (device plugins, CNI's records, the xtables lock, the agent's socket and pins) is the node's and goes with it."""
    own = where.node_directory(node)
    for directory in ("var/lib/kubelet", "var/lib/cni", "var/log/pods", "var/log/containers", "var/tmp", "var/cache", "run/lock"):
        (own / directory).mkdir(parents=True, exist_ok=True)
    for link in ("run", "lock"):
        if not (own / "var" / link).is_symlink():
            (own / "var" / link).symlink_to(f"/run/{'lock' if link == 'lock' else ''}")
    script = ["mount --make-rprivate /"]
    for parent in ("/var", "/run"):
        if where.directory.is_relative_to(parent):  # it must stay where it is for those within
            inner = own / where.directory.relative_to("/")
            inner.mkdir(parents=True, exist_ok=True)
            script.append(f"mount --bind {where.directory} {inner}")
        script.append(f"mount --rbind {own}{parent} {parent}")
    if pathlib.Path("/sys/fs/bpf").is_dir():
        script.append("mount -t bpf bpf /sys/fs/bpf")
    # Volumes that a pod asks to have propagated need a shared tree.
    script += ["mount --make-rshared /", "exec sleep infinity"]
    return ["unshare", "--mount", "--propagation", "private", "--", "nsenter", f"--net={where.namespace_path(node.name)}", "--",
            "sh", "-euc", "\n".join(script)]


def containerd(where, node, holder):
    path = f"{build.program('containerd').parent}:{os.environ['PATH']}"
    return in_node(where, node, holder, "env", f"PATH={path}", build.program("containerd"),
                   f"--config={where.configuration}/containerd-{node.name}.toml", "--log-level=info")


def kubelet(where, node, holder):
    return in_node(
        where, node, holder, build.program("kubelet"), f"--config={where.configuration}/kubelet-{node.name}.json",
        f"--kubeconfig={where.configuration}/kubelet-{node.name}.kubeconfig", f"--hostname-override={node.name}",
        f"--node-ip={','.join(node.addresses)}", "--root-dir=/var/lib/kubelet")


def kube_proxy(where, node, holder):
    return in_node(where, node, holder, build.program("kube-proxy"),
                   f"--config={where.configuration}/kube-proxy-{node.name}.json")
