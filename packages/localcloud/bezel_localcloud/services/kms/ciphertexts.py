"""Ciphertexts of Cloud KMS: AES-256-GCM under a version's key material, behind a header that names the version.

As Google's, a ciphertext holds a fingerprint of the version that made it, so that decryption names the key only.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.kms.keys import VERSION, check_enabled, current, versions_of

_HEAD = b"\x0a\x24\x00"  # what the ciphertexts of Google begin with
_FINGERPRINT, _NONCE, _TAG = 35, 12, 16  # bytes


def encrypt_bytes(cloud: Context, key: str, plain: bytes, context: bytes) -> tuple[bytes, Json]:
    """Encrypt with the primary version of a key.

    Args:
        cloud: The project's state.
        key: Name of the key.
        plain: The bytes.
        context: Additional authenticated data.

    Returns:
        The ciphertext, and the row of the version.

    Raises:
        ApiError: NOT_FOUND; FAILED_PRECONDITION, the key has no primary version or it is not enabled.
    """
    row = current(cloud, key)
    version = cloud.store.get(VERSION, row.get("_primary", ""))
    if version is None:
        raise ApiError("FAILED_PRECONDITION", f"CryptoKey {key} does not have a primary CryptoKeyVersion.")
    check_enabled(version)
    nonce = os.urandom(_NONCE)
    sealed = AESGCM(_material(cloud, version)).encrypt(nonce, plain, context)
    return _HEAD + bytes.fromhex(version["_fingerprint"]) + nonce + sealed, version


def decrypt_bytes(cloud: Context, key: str, ciphertext: bytes, context: bytes) -> tuple[bytes, Json]:
    """Decrypt with the version of a key that made a ciphertext.

    Returns:
        The bytes, and the row of the version.

    Raises:
        ApiError: NOT_FOUND; INVALID_ARGUMENT, it was not made by this key or with other data; FAILED_PRECONDITION, the
            version is not enabled.
    """
    current(cloud, key)
    begin = len(_HEAD) + _FINGERPRINT
    if not ciphertext.startswith(_HEAD) or len(ciphertext) < begin + _NONCE + _TAG:
        raise invalid("Decryption failed: the ciphertext is invalid.")
    fingerprint = ciphertext[len(_HEAD) : begin].hex()
    version = next((row for row in versions_of(cloud, key) if row["_fingerprint"] == fingerprint), None)
    if version is None:
        raise invalid("Decryption failed: verify that 'name' refers to the correct CryptoKey.")
    check_enabled(version)
    nonce, sealed = ciphertext[begin : begin + _NONCE], ciphertext[begin + _NONCE :]
    try:
        return AESGCM(_material(cloud, version)).decrypt(nonce, sealed, context), version
    except InvalidTag:
        raise invalid("Decryption failed: the ciphertext is invalid.") from None


def _material(cloud: Context, version: Json) -> bytes:
    data = cloud.store.payload(version["name"])
    if data is None:
        raise ApiError("INTERNAL", f"The key material of {version['name']} is missing.")
    return data
