"""Certificates that balancers show, one for each managed certificate that is active, of an authority of the folder.

The authority's key stays in the folder, readable by its owner only, since domains come and go; it signs for names of
DNS alone. Owns the files and the choice by the name that a client asks for. Leaves out the states of managed
certificates (load_balancing/certificates.py).
"""

import datetime as dt
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bezel_base.atomic_write import write_whole
from bezel_localcloud.access.certificates import builder, usage
from bezel_localcloud.access.credentials.keys import private_pem

_PEM = serialization.Encoding.PEM
_SPARE = dt.timedelta(days=30)


def server_context() -> ssl.SSLContext:
    """A context of a server that shows no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    return context


class DomainCertificates:
    """Contexts of TLS that show a certificate for some domains, made when they are first needed."""

    def __init__(self, authority: Path) -> None:
        """Use the file of an authority's certificate, whose folder has its key; what is missing is made when needed."""
        self._file, self._key_file = authority, authority.with_name("balancer-authority-key.pem")
        self._contexts: dict[tuple[str, ...], ssl.SSLContext] = {}
        self._authority: tuple[ec.EllipticCurvePrivateKey, x509.Certificate] | None = None

    def prepare(self, now: float) -> None:
        """Have the authority, so that clients can be pointed at its file; `now` in Unix seconds."""
        self._authority = self._load_authority(dt.datetime.fromtimestamp(now, dt.UTC))

    def context(self, domains: Sequence[str], now: float) -> ssl.SSLContext:
        """The context for domains, with `*.` for all below one; `now` in Unix seconds."""
        names = tuple(domains)
        if names not in self._contexts:
            context = server_context()
            file = self._make(names, dt.datetime.fromtimestamp(now, dt.UTC))
            try:
                context.load_cert_chain(file)
            finally:
                file.unlink()
            self._contexts[names] = context
        return self._contexts[names]

    def _make(self, domains: tuple[str, ...], now: dt.datetime) -> Path:
        root_key, root = self._authority or self._load_authority(now)
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, domains[0][:64])])
        made = (
            builder(subject, root.subject, key, now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in domains]), critical=False)
            .add_extension(usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False)
            .sign(root_key, hashes.SHA256())
        )
        path = self._file.with_name("balancer-server.pem")  # a context reads a file, and only one
        write_whole(path, private_pem(key).encode() + made.public_bytes(_PEM) + root.public_bytes(_PEM), mode=0o600)
        return path

    def _load_authority(self, now: dt.datetime) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        try:
            key = serialization.load_pem_private_key(self._key_file.read_bytes(), None)
            root = x509.load_pem_x509_certificate(self._file.read_bytes())
            if isinstance(key, ec.EllipticCurvePrivateKey) and root.not_valid_after_utc > now + _SPARE:
                return key, root
        except (OSError, ValueError):
            pass
        return self._make_authority(now)

    def _make_authority(self, now: dt.datetime) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        self._file.parent.mkdir(exist_ok=True, mode=0o700)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localcloud's balancers of this folder")])
        root = (
            builder(name, name, key, now)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        write_whole(self._key_file, private_pem(key), mode=0o600)
        write_whole(self._file, root.public_bytes(_PEM), mode=0o600)
        return key, root
