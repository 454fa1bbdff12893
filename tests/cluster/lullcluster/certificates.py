# SPDX-License-Identifier: Apache-2.0
"""One authority for all of a cluster, and certificates for each of its parts and for tests."""
import datetime
import ipaddress
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from . import layout

DAY = datetime.timedelta(days=1)


def write(path, content):
    """Appears whole, as a reader that watches the file must see it."""
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
    temporary.rename(path)


def private_bytes(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def subject(common_name, organizations):
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations] +
                     [x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def alternative_names(names):
    def one(name):
        try:
            return x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return x509.DNSName(name)
    return x509.SubjectAlternativeName([one(name) for name in names])


class Authority:
    """Keeps NAME.crt and NAME.key in a directory, beside those that it issues."""

    def __init__(self, directory, name="ca"):
        self.directory, self.name = directory, name
        directory.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self.make()
        self.key = serialization.load_pem_private_key((directory / f"{name}.key").read_bytes(), None)
        self.certificate = x509.load_pem_x509_certificate(self.path.read_bytes())

    @property
    def path(self):
        return self.directory / f"{self.name}.crt"

    def make(self):
        key = ec.generate_private_key(ec.SECP256R1())
        name = subject(f"lull test {self.name}", ())
        built = self.builder(name, name, key.public_key(), 3650 * DAY)
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        built = built.add_extension(x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True)
        write(self.directory / f"{self.name}.key", private_bytes(key))
        write(self.path, built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    @staticmethod
    def builder(name, issuer, public_key, lifetime):
        now = datetime.datetime.utcnow()
        built = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(public_key)
        # An hour back, since a test may set a clock back.
        return built.serial_number(x509.random_serial_number()).not_valid_before(
            now - datetime.timedelta(hours=1)).not_valid_after(now + lifetime)

    def issue(self, file, common_name, organizations=(), names=(), lifetime=365 * DAY):
        """Writes FILE.crt and FILE.key; returns the two paths. Issued again, it replaces what was there."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = self.builder(subject(common_name, organizations), self.certificate.subject, key.public_key(), lifetime)
        built = built.add_extension(x509.ExtendedKeyUsage(
            [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        if names:
            built = built.add_extension(alternative_names(names), critical=False)
        certificate, private = self.directory / f"{file}.crt", self.directory / f"{file}.key"
        write(private, private_bytes(key))
        write(certificate, built.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return certificate, private


def make_all(where):
    """What a cluster needs to start."""
    authority = Authority(where.certificates)
    if (where.certificates / "admin.crt").exists():
        return
    Authority(where.certificates, "front-proxy-ca").issue("front-proxy", "front-proxy-client")
    # Signs service accounts' tokens: only the key counts.
    authority.issue("service-accounts", "service-accounts")
    authority.issue("apiserver", "kube-apiserver", names=(
        "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost",
        "127.0.0.1", "::1", layout.API_SERVICE, *layout.CONTROL_PLANE))
    authority.issue("kubelet-client", "kube-apiserver-kubelet-client", ("system:masters",))
    for component in ("kube-controller-manager", "kube-scheduler", "kube-proxy"):
        authority.issue(component, f"system:{component}")
    for node in where.nodes:
        authority.issue(f"kubelet-{node.name}", f"system:node:{node.name}", ("system:nodes",))
        authority.issue(f"kubelet-server-{node.name}", f"system:node:{node.name}", ("system:nodes",),
                        (node.name, *node.addresses))
    authority.issue("admin", "admin", ("system:masters",))  # last: its presence says that all are there
