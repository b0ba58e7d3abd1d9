"""Customer-supplied encryption keys: their headers, and contents that only the key opens.

As on Google, only a hash of the key is stored. The bytes are encrypted with AES-256 in counter mode, so that a range of
them can be read, and the checksums with AES-GCM; the rest of the metadata can be read without the key.
Source of the refusals: Cloud Storage's pages on status codes of the JSON and of the XML API.
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher as Algorithm
from cryptography.hazmat.primitives.ciphers import algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.files.checksums import Cipher, Upload
from bezel_localcloud.core.json_types import Json, b64

_BLOCK, _KEY, _NONCE, _GCM_NONCE = 16, 32, 16, 12  # bytes
_SUMS = ("crc32c", "md5Hash")
_PRIVATE = ("_nonce", "_sums")
LOCK_FIELDS = ("customerEncryption", *_PRIVATE)
"""Fields of an object's row that belong to its bytes, so that a second name of the bytes has them too."""
_TEXTS = {
    "customerEncryptionAlgorithmIsInvalid": (
        'Missing an encryption algorithm, or the provided algorithm is not "AES256."'
    ),
    "customerEncryptionKeyFormatIsInvalid": (
        "Missing an encryption key, or it is not Base64 encoded, or it does not meet the required length of the "
        "encryption algorithm."
    ),
    "customerEncryptionKeySha256IsInvalid": (
        "Missing a SHA256 hash of the encryption key, or it is not Base64 encoded, or it does not match the encryption "
        "key."
    ),
    "customerEncryptionKeyIsIncorrect": "The provided encryption key is incorrect.",
    "resourceIsEncryptedWithCustomerEncryptionKey": (
        "The target object is encrypted by a customer-supplied encryption key."
    ),
    "resourceNotEncryptedWithCustomerEncryptionKey": (
        "The target object is not encrypted by a customer-supplied encryption key."
    ),
}


class CustomerKey(NamedTuple):
    """A key of a request.

    Attributes:
        key: Its bytes.
        digest: Base64 of their SHA-256, by which the key is recognized.
    """

    key: bytes
    digest: str


class Lock(NamedTuple):
    """A key with the nonce of one content."""

    key: CustomerKey
    nonce: bytes

    def cipher(self, offset: int) -> Callable[[bytes], bytes]:
        """A function that encrypts, or decrypts, the bytes from an offset on."""
        counter = (int.from_bytes(self.nonce, "big") + offset // _BLOCK) % (1 << 8 * _BLOCK)
        stream = Algorithm(algorithms.AES(self.key.key), modes.CTR(counter.to_bytes(_BLOCK, "big"))).encryptor()
        stream.update(bytes(offset % _BLOCK))
        return stream.update

    def fields(self, upload: Upload) -> Json:
        """Fields of the row of an object with these bytes."""
        nonce, sums = os.urandom(_GCM_NONCE), {"crc32c": upload.crc32c, "md5Hash": upload.md5}
        text = json.dumps({name: value for name, value in sums.items() if value}).encode()
        return {
            "customerEncryption": {"encryptionAlgorithm": "AES256", "keySha256": self.key.digest},
            "_nonce": b64(self.nonce),
            "_sums": b64(nonce + AESGCM(self.key.key).encrypt(nonce, text, None)),
        }


def key_of(headers: Mapping[str, str], *, source: bool = False) -> CustomerKey | None:
    """The key that a request brings for its object, or for the source of its copy.

    Raises:
        ApiError: 400, the headers are incomplete or do not fit together.
    """
    prefix = "x-goog-copy-source-encryption-" if source else "x-goog-encryption-"
    algorithm, key, digest = (headers.get(f"{prefix}{name}") for name in ("algorithm", "key", "key-sha256"))
    if algorithm is None and key is None and digest is None:
        return None
    if algorithm != "AES256":
        raise _key_error("customerEncryptionAlgorithmIsInvalid")
    key_bytes = _decode(key)
    if len(key_bytes) != _KEY:
        raise _key_error("customerEncryptionKeyFormatIsInvalid")
    expected = hashlib.sha256(key_bytes).digest()
    if not hmac.compare_digest(_decode(digest), expected):
        raise _key_error("customerEncryptionKeySha256IsInvalid")
    return CustomerKey(key_bytes, b64(expected))


def new_lock(key: CustomerKey | None) -> Lock | None:
    """A lock for a new content; None without a key."""
    return None if key is None else Lock(key, os.urandom(_NONCE))


def unlock(row: Json, key: CustomerKey | None) -> tuple[Json, Cipher | None]:
    """Return an object with its checksums, and the cipher of its bytes, None where they are not encrypted.

    Raises:
        ApiError: 400, the object needs a key, another key, or none.
    """
    encryption = row.get("customerEncryption")
    if encryption is None:
        if key is not None:
            raise _key_error("resourceNotEncryptedWithCustomerEncryptionKey")
        return row, None
    if key is None:
        raise _key_error("resourceIsEncryptedWithCustomerEncryptionKey")
    check_digest(key, encryption["keySha256"])
    sealed = base64.b64decode(row["_sums"])
    sums = json.loads(AESGCM(key.key).decrypt(sealed[:_GCM_NONCE], sealed[_GCM_NONCE:], None))
    return row | sums, Lock(key, base64.b64decode(row["_nonce"])).cipher


def check_digest(key: CustomerKey, digest: str) -> None:
    """Check that a key is the one of a digest.

    Raises:
        ApiError: 400, it is not.
    """
    if not hmac.compare_digest(key.digest, digest):
        raise _key_error("customerEncryptionKeyIsIncorrect")


def session_fields(lock: Lock | None) -> Json:
    """What a session for an upload keeps of its key."""
    return {} if lock is None else {"key": {"digest": lock.key.digest, "nonce": b64(lock.nonce)}}


def lock_of_session(session: Json, headers: Mapping[str, str]) -> Lock | None:
    """The lock of a session, whose every request brings the key again.

    Raises:
        ApiError: 400, it brings none or another one.
    """
    kept, key = session.get("key"), key_of(headers)
    if kept is None:
        return None
    if key is None:
        raise _key_error("resourceIsEncryptedWithCustomerEncryptionKey")
    check_digest(key, kept["digest"])
    return Lock(key, base64.b64decode(kept["nonce"]))


def reveal(row: Json, headers: Mapping[str, str]) -> Json:
    """An object with its checksums where the request brings its key, else as it is."""
    try:
        return unlock(row, key_of(headers))[0]
    except ApiError:
        return row


def _key_error(reason: str) -> ApiError:
    return ApiError("INVALID_ARGUMENT", _TEXTS[reason], reason=reason)


def _decode(text: str | None) -> bytes:
    try:
        return base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        return b""
