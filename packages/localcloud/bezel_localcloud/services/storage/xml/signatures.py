"""Signed URLs and signed forms: the account that signed a request, verified with the keys of its key files.

Versions 4 (`X-Goog-Signature`) and 2 (`Signature`), as Cloud Storage's pages on signatures describe them. Leaves out
what the account may do, which its roles decide.
"""

import base64
import binascii
import contextlib
import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.store import Store
from bezel_localcloud.services.storage.xml.documents import XmlError

ALGORITHM = "GOOG4-RSA-SHA256"
_LONGEST = 604_800  # seconds: seven days
_LATEST = 253_402_300_799  # Unix seconds of the end of the year 9999
_SKEW = 900.0  # seconds that a signer's clock may be ahead
_CREDENTIAL = re.compile(r"(?P<email>[^/]+)/(?P<scope>(?P<day>[0-9]{8})/[^/]+/storage/goog4_request)")
_DATE = "%Y%m%dT%H%M%SZ"
# Query parameters that are no part of a version 2 signature.
_NOT_SIGNED = frozenset({"GoogleAccessId", "Expires", "Signature"})
_SUBRESOURCES = frozenset(
    {"acl", "billing", "compose", "cors", "encryption", "lifecycle", "location", "logging", "notification",
     "partNumber",
     "policy", "requestPayment", "torrent", "uploadId", "uploads", "versionId", "versioning", "versions", "website"}
)  # fmt: skip


Pairs = list[tuple[str, str]]  # a query


class Signed(NamedTuple):
    """A request as it was signed.

    Attributes:
        method: HTTP method.
        path: Path as it was sent.
        query: Query as it was sent.
        headers: Headers by names in lower case.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]


def is_signed(query: Mapping[str, str]) -> bool:
    """Whether a query has a signature."""
    return "X-Goog-Signature" in query or "x-goog-signature" in query or "Signature" in query


def signer(request: Signed, store: Store, now: float, bucket: str = "") -> str:
    """Return the e-mail of the account that signed a request.

    Args:
        request: The request.
        store: Keys and accounts.
        now: Unix seconds.
        bucket: Bucket of a virtual host, which the path of a version 2 signature begins with.

    Raises:
        XmlError: The signature is wrong, expired, or of no account.
    """
    pairs = parse_qsl(request.query, keep_blank_values=True)
    query = {name.lower(): value for name, value in pairs}
    if "x-goog-signature" in query:
        return _version_4(request, pairs, query, store, now)
    return _version_2(request, pairs, store, now, bucket)


def form_signer(fields: Mapping[str, str], store: Store, now: float) -> str:
    """Return the e-mail of the account that signed the policy of a form; its expiry is in the policy.

    Raises:
        XmlError: The signature is wrong, or of no account.
    """
    policy = fields["policy"]
    if "x-goog-signature" in fields:
        email, _, begin = _credential(fields.get("x-goog-credential", ""), fields.get("x-goog-date", ""))
        if begin > now + _SKEW or fields.get("x-goog-algorithm") != ALGORITHM:
            raise _malformed_error("x-goog-date")
        signature = _hexadecimal(fields["x-goog-signature"])
    else:
        email, signature = fields.get("googleaccessid", ""), _base64(fields.get("signature", ""))
    _verify(store, email, signature, policy)
    return email


def _version_4(request: Signed, pairs: Pairs, query: Mapping[str, str], store: Store, now: float) -> str:
    if query.get("x-goog-algorithm") != ALGORITHM:
        raise _malformed_error("X-Goog-Algorithm")
    stamp, lifetime = query.get("x-goog-date", ""), query.get("x-goog-expires", "")
    email, scope, begin = _credential(query.get("x-goog-credential", ""), stamp)
    seconds = decimal(lifetime, _LONGEST)
    if not seconds or begin > now + _SKEW:
        raise _malformed_error("X-Goog-Expires" if begin <= now + _SKEW else "X-Goog-Date")
    if now >= begin + seconds:
        raise _expired_error(begin + seconds)
    names = query.get("x-goog-signedheaders", "").split(";")
    unsigned = {name for name in request.headers if name.startswith("x-goog-")} - set(names) - {"x-goog-hash"}
    if "host" not in names or unsigned:
        raise _malformed_error(f"X-Goog-SignedHeaders: {', '.join(sorted(unsigned)) or 'host'} must be signed")
    rest = sorted(f"{_quote(name)}={_quote(value)}" for name, value in pairs if name.lower() != "x-goog-signature")
    payload = request.headers.get("x-goog-content-sha256", "UNSIGNED-PAYLOAD")
    texts: dict[str, str] = {}
    for host in _hosts(request.headers.get("host", "")):
        values = {**request.headers, "host": host}
        headers = "".join(f"{name}:{' '.join(values.get(name, '').split())}\n" for name in names)
        canonical = "\n".join([request.method, request.path, "&".join(rest), headers, ";".join(names), payload])
        texts["\n".join([ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])] = canonical
    sent, canonical = next(iter(texts.items()))
    shown = (("StringToSign", sent), ("CanonicalRequest", canonical))
    _verify_any(store, email, _hexadecimal(query["x-goog-signature"]), list(texts), *shown)
    return email


def _hosts(host: str) -> list[str]:
    """A host as it was sent, and without its port: some libraries sign it without, which at Google is the same."""
    return list(dict.fromkeys([host, re.sub(r":[0-9]*$", "", host)]))


def _version_2(request: Signed, pairs: Pairs, store: Store, now: float, bucket: str) -> str:
    query = dict(pairs)
    email, expires = query.get("GoogleAccessId", ""), query.get("Expires", "")
    end = decimal(expires, _LATEST)
    if not email or end is None:
        raise _malformed_error("GoogleAccessId" if not email else "Expires")
    if now >= end:
        raise _expired_error(float(end))
    headers = sorted((name, value) for name, value in request.headers.items() if name.startswith("x-goog-"))
    extension = [f"{name}:{' '.join(value.split())}" for name, value in headers]
    beginning = [
        request.method,
        request.headers.get("content-md5", ""),
        request.headers.get("content-type", ""),
        expires,
    ]
    path = (f"/{bucket}" if bucket else "") + request.path
    others = [(name, value) for name, value in pairs if name not in _NOT_SIGNED]
    # Google signs the subresources only; its Python library also signs the parameters that its caller adds.
    added = sorted((name.lower(), value.strip()) for name, value in others if not name.startswith("response-"))
    bare = sorted(name if not value else f"{name}={value}" for name, value in others if name in _SUBRESOURCES)
    candidates = [path, f"{path}?{urlencode(added)}", f"{path}?{'&'.join(bare)}"]
    texts = list(dict.fromkeys("\n".join([*beginning, *extension, resource]) for resource in candidates))
    _verify_any(store, email, _base64(query["Signature"]), texts, ("StringToSign", texts[0]))
    return email


def _verify_any(store: Store, email: str, signature: bytes, texts: list[str], *shown: tuple[str, str]) -> None:
    """Check that a signature is one of these texts.

    Raises:
        XmlError: It is of none of them, or there is no such account.
    """
    for text in texts[:-1]:
        with contextlib.suppress(XmlError):
            _verify(store, email, signature, text)
            return
    _verify(store, email, signature, texts[-1], *shown)


def _verify(store: Store, email: str, signature: bytes, text: str, *shown: tuple[str, str]) -> None:
    """Check a signature with every key of an account.

    Raises:
        XmlError: It fits none of them, or there is no such account.
    """
    account = store.get("account", email)
    keys = [row["publicKeyPem"] for _, row in store.rows("key", f"{email}/")] if account else []
    if account is None or account.get("disabled"):
        raise XmlError(403, "InvalidAccessKeyId", "The Access Key Id you provided does not exist in our records.")
    for pem in keys:
        key = load_pem_public_key(pem.encode())
        try:
            if isinstance(key, rsa.RSAPublicKey):
                key.verify(signature, text.encode(), padding.PKCS1v15(), hashes.SHA256())
                return
        except InvalidSignature:
            continue
    message = (
        "The request signature we calculated does not match the signature you provided. Check your Google secret key "
        "and signing method."
    )
    raise XmlError(403, "SignatureDoesNotMatch", message, *shown)


def _credential(credential: str, stamp: str) -> tuple[str, str, float]:
    """Return (e-mail, scope, Unix seconds of the date)."""
    match = _CREDENTIAL.fullmatch(credential)
    try:
        date = datetime.strptime(stamp, _DATE).replace(tzinfo=UTC)
    except ValueError:
        raise _malformed_error("X-Goog-Date") from None
    if match is None or not stamp.startswith(match["day"]):
        raise _malformed_error("X-Goog-Credential")
    return match["email"], match["scope"], date.timestamp()


def _hexadecimal(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise _malformed_error("X-Goog-Signature") from None


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace(" ", "+"), validate=True)
    except (binascii.Error, ValueError):
        raise _malformed_error("Signature") from None


def _quote(text: str) -> str:
    return quote(text, safe="~")


def _expired_error(time: float) -> XmlError:
    shown = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = f"The provided token has expired. Request signature expired at: {shown}"
    return XmlError(400, "ExpiredToken", "Invalid argument.", ("Details", text))


def _malformed_error(what: str) -> XmlError:
    return XmlError(400, "InvalidArgument", "Invalid argument.", ("Details", f"The signature is malformed: {what}"))
