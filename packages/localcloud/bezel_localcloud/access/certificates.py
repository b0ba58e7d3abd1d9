"""The certificate of localcloud's https port: for the loopback's names, from an authority of the data folder's own.

Made with its authority, whose key is not kept, when there is none or it is about to expire. Leaves out the port itself.
"""

import datetime as dt
import ipaddress
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bezel_base.atomic_write import write_whole
from bezel_localcloud.access.credentials.keys import private_pem

_DAYS, _SPARE_DAYS = 397, 30  # lifetime, the longest that every client accepts; and what must be left of it
_NAMES = ("localhost", "*.localhost", "*.storage.localhost")
_ADDRESSES = ("127.0.0.1", "::1")


class Certificate(NamedTuple):
    """Files in PEM: the authority that clients trust, the server's certificate with it, and the server's key."""

    authority: Path
    chain: Path
    key: Path


def server_certificate(folder: Path, now: float) -> Certificate:
    """The certificate of a data folder.

    Args:
        folder: Where its files are kept.
        now: Unix seconds.
    """
    certificate = Certificate(folder / "authority.pem", folder / "server.pem", folder / "server-key.pem")
    moment = dt.datetime.fromtimestamp(now, dt.UTC)
    if not _is_valid(certificate, moment + dt.timedelta(days=_SPARE_DAYS)):
        folder.mkdir(exist_ok=True, mode=0o700)
        _make(certificate, moment)
    return certificate


def _is_valid(certificate: Certificate, moment: dt.datetime) -> bool:
    try:
        made = x509.load_pem_x509_certificate(certificate.chain.read_bytes())
    except (OSError, ValueError):
        return False
    return made.not_valid_after_utc > moment and certificate.key.exists() and certificate.authority.exists()


def _make(certificate: Certificate, now: dt.datetime) -> None:
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localcloud of this folder")])
    root = (
        builder(root_name, root_name, root_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(signs_certificates=True), critical=True)
        .sign(root_key, hashes.SHA256())
    )
    names = [
        *(x509.DNSName(name) for name in _NAMES),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES),
    ]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAMES[0])])
    made = (
        builder(name, root_name, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False)
        .sign(root_key, hashes.SHA256())
    )
    root_pem, pem = (one.public_bytes(serialization.Encoding.PEM) for one in (root, made))
    for path, content in (
        (certificate.key, private_pem(key)),
        (certificate.authority, root_pem),
        (certificate.chain, pem + root_pem),
    ):
        write_whole(path, content, mode=0o600)


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: dt.datetime
) -> x509.CertificateBuilder:
    """A certificate of a key, valid from now on, without what depends on its use."""
    public = key.public_key()
    return (
        x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS - 1))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """What a key is for: to sign certificates, or connections."""
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
