# SPDX-License-Identifier: Apache-2.0
"""An authority and what it signs, as PEM files."""
import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    def __init__(self, directory, name="authority"):
        self.directory, self.name = directory, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign(name, self.key.public_key(), [x509.BasicConstraints(ca=True, path_length=None)])
        self.path = directory / f"{name}.crt"
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _sign(self, subject, public_key, extensions):
        now = datetime.datetime.utcnow()
        builder = (x509.CertificateBuilder().subject_name(_name(subject)).issuer_name(_name(self.name)).public_key(public_key)
                   .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
                   .not_valid_after(now + datetime.timedelta(days=1)))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def issue(self, subject, *, address=None, host=None):
        """Returns the paths of a certificate and its key; the files are replaced, not rewritten."""
        names = ([x509.IPAddress(ipaddress.ip_address(address))] if address else []) + ([x509.DNSName(host)] if host else [])
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(subject, key.public_key(), [x509.SubjectAlternativeName(names)] if names else [])
        paths = self.directory / f"{subject}.crt", self.directory / f"{subject}.key"
        pems = (certificate.public_bytes(serialization.Encoding.PEM),
                key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        for path, pem in zip(paths, pems):
            fresh = path.with_suffix(path.suffix + ".new")
            fresh.write_bytes(pem)
            fresh.rename(path)
        return paths
