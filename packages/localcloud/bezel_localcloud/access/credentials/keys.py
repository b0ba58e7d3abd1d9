"""RS256 keys and JSON Web Tokens: localcloud's issuer, and the deployer's key file.

Owns signing, verifying and the key file's shape. Leaves out what a claim allows: tokens.py and permissions.py decide.
"""

import base64
import functools
import hashlib
import json
from pathlib import Path
from typing import cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from bezel_base.atomic_write import write_whole
from bezel_localcloud.access.credentials.claim_times import is_time
from bezel_localcloud.access.credentials.token_parts import TokenParts, token_parts
from bezel_localcloud.core.json_types import Json

_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
# A client sends one token with each of its requests. What depends on its text and on the key's text alone is kept;
# times, and the state of key and account, are checked each time.
_KEPT, _LONGEST_KEPT = 256, 4096  # tokens, characters of each


class TokenError(Exception):
    """An invalid token; the text gives the reason and never holds the token."""


def new_key() -> rsa.RSAPrivateKey:
    """A fresh 2048-bit RSA key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def private_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    """PKCS 8 text of a private key, as Google's key files hold it."""
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def public_pem(key: rsa.RSAPrivateKey) -> str:
    """Text of the public half."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def load_private(pem: str) -> rsa.RSAPrivateKey:
    """The key of a PKCS 8 text that localcloud wrote itself; the slow check of its numbers is skipped."""
    key = serialization.load_pem_private_key(pem.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    return cast("rsa.RSAPrivateKey", key)


def key_id(key: rsa.RSAPrivateKey) -> str:
    """40 hex digits that name a key, as Google's do."""
    return hashlib.sha256(public_pem(key).encode()).hexdigest()[:40]


def sign(claims: Json, key: rsa.RSAPrivateKey) -> str:
    """A JSON Web Token with these claims."""
    header = {"typ": "JWT", "alg": "RS256", "kid": key_id(key)}
    signed = ".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{_base64(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def header_and_claims(token: str) -> tuple[Json, Json]:
    """Return header and claims of a token, not verified.

    Raises:
        TokenError: If the text is not a JSON Web Token.
    """
    parts = _parts(token)
    return parts.header, parts.claims


def _parts(token: str) -> TokenParts:
    try:
        return _kept_parts(token) if len(token) <= _LONGEST_KEPT else token_parts(token)
    except ValueError:
        raise TokenError("not a JSON Web Token") from None


_kept_parts = functools.lru_cache(maxsize=_KEPT)(token_parts)


def verify(token: str, public_key: str, *, now: float) -> Json:
    """Return the claims of a token with a valid RS256 signature that is valid at this time.

    Raises:
        TokenError: If the signature or the times are wrong.
    """
    header, claims, signature, signed = _parts(token)
    if header.get("alg") != "RS256":
        raise TokenError("not signed with RS256")
    is_signed = _kept_is_signed if len(token) <= _LONGEST_KEPT else _is_signed
    if not is_signed(signed, signature, public_key):
        raise TokenError("signature does not fit")
    expires, issued = claims.get("exp"), claims.get("iat", 0)
    if not is_time(expires) or not is_time(issued):
        raise TokenError("without a time of expiry")
    # Google tolerates a clock skew of five minutes at issue and of none at expiry.
    if now >= expires:
        raise TokenError("expired")
    if issued > now + 300:
        raise TokenError("issued in the future")
    return claims


def _load_public_key(text: str) -> object:
    if _CERTIFICATE not in text:
        return serialization.load_pem_public_key(text.encode())
    from cryptography.x509 import load_pem_x509_certificate  # late: a start without it is faster

    return load_pem_x509_certificate(text.encode()).public_key()


def _is_signed(signed: str, signature: bytes, public_key: str) -> bool:
    """Whether a signature is that of the key: its text, or a certificate's."""
    key = _load_public_key(public_key)
    if not isinstance(key, rsa.RSAPublicKey):
        return False
    try:
        key.verify(signature, signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    except (InvalidSignature, ValueError):  # ValueError: a signature of another length
        return False
    return True


_kept_is_signed = functools.lru_cache(maxsize=_KEPT)(_is_signed)


def jwk(key: rsa.RSAPrivateKey) -> Json:
    """The public half as a JSON Web Key."""
    numbers = key.public_key().public_numbers()
    exponent, modulus = (_base64(n.to_bytes((n.bit_length() + 7) // 8, "big")) for n in (numbers.e, numbers.n))
    return {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": key_id(key), "n": modulus, "e": exponent}


def load_or_make(path: Path) -> rsa.RSAPrivateKey:
    """The private key of a file, created with mode 0600 if there is none."""
    if path.exists():
        return load_private(path.read_text(encoding="utf-8"))
    key = new_key()
    write_whole(path, private_pem(key), mode=0o600)
    return key


def key_file(key: rsa.RSAPrivateKey, *, email: str, unique_id: str, project: str, base: str) -> Json:
    """A service account key file in google-auth's format; its token_uri is localcloud's."""
    return {
        "type": "service_account",
        "project_id": project,
        "private_key_id": key_id(key),
        "private_key": private_pem(key),
        "client_email": email,
        "client_id": unique_id,
        "auth_uri": f"{base}/o/oauth2/auth",
        "token_uri": f"{base}/token",
        "auth_provider_x509_cert_url": f"{base}/oauth2/v1/certs",
        "client_x509_cert_url": f"{base}/robot/v1/metadata/x509/{email}",
        "universe_domain": "googleapis.com",
    }
