"""Versions of Cloud KMS's keys, and encryption and decryption with a key."""

import base64
from collections.abc import Callable

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.files.checksums import crc32c
from bezel_localcloud.core.json_types import Json, b64, timestamp
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.kms.api import KEY_NAME, KEY_PATH, api
from bezel_localcloud.services.kms.ciphertexts import decrypt_bytes, encrypt_bytes
from bezel_localcloud.services.kms.keys import (
    KEY,
    VERSION,
    add_version,
    current,
    duration,
    find_key,
    find_version,
    public_fields,
    versions_of,
)

_VERSIONS = KEY_PATH + "/cryptoKeyVersions"
_ONE = _VERSIONS + "/{version:id}"
_NAME = KEY_NAME + "/cryptoKeyVersions/{version}"
_LARGEST = 65_536  # bytes of a plaintext and of additional data
_AAD = "additionalAuthenticatedData"


@api.route("POST", _VERSIONS, needs="cloudkms.cryptoKeyVersions.create", on=KEY_NAME)
def create(call: Call) -> Json:
    """Add a version, which does not become the primary one."""
    with call.cloud.store.transaction():
        state = call.body.get("state") or "ENABLED"
        if state not in {"ENABLED", "DISABLED"}:
            raise invalid("A new CryptoKeyVersion is ENABLED or DISABLED.", ("crypto_key_version.state", state))
        return public_fields(add_version(call.cloud, current(call.cloud, call.name(KEY_NAME)), state))


@api.route("GET", _VERSIONS, needs="cloudkms.cryptoKeyVersions.list", on=KEY_NAME, query="pageSize pageToken")
def list_versions(call: Call) -> Json:
    """Versions of a key in the order of their numbers."""
    key = call.name(KEY_NAME)
    current(call.cloud, key)
    rows = [public_fields(row) for row in versions_of(call.cloud, key)]
    return call.page_in_order(rows, "cryptoKeyVersions") | {"totalSize": len(rows)}


@api.route("GET", _ONE, needs="cloudkms.cryptoKeyVersions.get", on=_NAME)
def get(call: Call) -> Json:
    """One version."""
    return public_fields(find_version(call.cloud, call.name(KEY_NAME), call.param("version")))


@api.route("PATCH", _ONE, needs="cloudkms.cryptoKeyVersions.update", on=_NAME, query="updateMask")
def patch(call: Call) -> Json:
    """Enable or disable a version."""
    if call.mask() != ["state"]:
        raise invalid("The only field of a CryptoKeyVersion that can be updated is state.", ("update_mask", "state"))
    state = str(call.body.get("state") or "")
    if state not in {"ENABLED", "DISABLED"}:
        raise invalid("A state can be set to ENABLED or DISABLED only.", ("crypto_key_version.state", state))

    def switch(version: Json) -> Json:
        _check_state(version, "ENABLED", "DISABLED")
        return version | {"state": state}

    return _change(call, switch)


@api.route("POST", _ONE + ":destroy", needs="cloudkms.cryptoKeyVersions.destroy", on=_NAME)
def destroy(call: Call) -> Json:
    """Schedule a version for destruction."""

    def schedule(version: Json) -> Json:
        _check_state(version, "ENABLED", "DISABLED")
        key = current(call.cloud, call.name(KEY_NAME))
        ends = call.cloud.pace.now() + duration(key["destroyScheduledDuration"])
        return version | {"state": "DESTROY_SCHEDULED", "destroyTime": timestamp(ends)}

    return _change(call, schedule)


@api.route("POST", _ONE + ":restore", needs="cloudkms.cryptoKeyVersions.restore", on=_NAME)
def restore(call: Call) -> Json:
    """Keep a version that is scheduled for destruction; it is disabled then."""

    def keep(version: Json) -> Json:
        _check_state(version, "DESTROY_SCHEDULED")
        return {key: value for key, value in version.items() if key != "destroyTime"} | {"state": "DISABLED"}

    return _change(call, keep)


@api.route("POST", KEY_PATH + ":updatePrimaryVersion", needs="cloudkms.cryptoKeys.update", on=KEY_NAME)
def update_primary(call: Call) -> Json:
    """Make a version the one that encrypts."""
    name = call.name(KEY_NAME)
    with call.cloud.store.transaction():
        version = find_version(call.cloud, name, str(call.body.get("cryptoKeyVersionId") or ""))
        _check_state(version, "ENABLED", "DISABLED")
        call.cloud.store.put(KEY, name, current(call.cloud, name) | {"_primary": version["name"]})
    return find_key(call.cloud, name)


@api.route("POST", KEY_PATH + ":encrypt", needs="cloudkms.cryptoKeyVersions.useToEncrypt", on=KEY_NAME)
def encrypt(call: Call) -> Json:
    """Encrypt with the primary version."""
    plain, checked = _data(call, "plaintext", _LARGEST)
    context, context_checked = _data(call, _AAD, _LARGEST)
    ciphertext, version = encrypt_bytes(call.cloud, call.name(KEY_NAME), plain, context)
    answer: Json = {
        "name": version["name"],
        "ciphertext": b64(ciphertext),
        "ciphertextCrc32c": str(crc32c(ciphertext)),
        "protectionLevel": "SOFTWARE",
    }
    flags = {"verifiedPlaintextCrc32c": checked, "verifiedAdditionalAuthenticatedDataCrc32c": context_checked}
    return answer | {name: True for name, value in flags.items() if value}


@api.route("POST", KEY_PATH + ":decrypt", needs="cloudkms.cryptoKeyVersions.useToDecrypt", on=KEY_NAME)
def decrypt(call: Call) -> Json:
    """Decrypt with the version that encrypted."""
    ciphertext, _ = _data(call, "ciphertext", 10 * _LARGEST)
    context, _ = _data(call, _AAD, _LARGEST)
    name = call.name(KEY_NAME)
    plain, version = decrypt_bytes(call.cloud, name, ciphertext, context)
    primary = current(call.cloud, name).get("_primary") == version["name"]
    answer = {"plaintext": b64(plain), "plaintextCrc32c": str(crc32c(plain)), "protectionLevel": "SOFTWARE"}
    return answer | ({"usedPrimary": True} if primary else {})


def _data(call: Call, field: str, most: int) -> tuple[bytes, bool]:
    """Return the bytes of a field, and whether a checksum of them was checked.

    Raises:
        ApiError: INVALID_ARGUMENT for too many bytes, and for those that differ from their checksum.
    """
    data, checksum = base64.b64decode(call.body.get(field) or ""), call.body.get(f"{field}Crc32c")
    shown_field = "additional_authenticated_data" if field == _AAD else field
    if len(data) > most:
        text = f"The {shown_field} is too large: {len(data)} bytes; the maximum is {most} bytes."
        raise invalid(text, (shown_field, f"{len(data)} bytes"))
    if checksum is not None and int(checksum) != crc32c(data):
        text = f"The checksum in field {shown_field}_crc32c did not match the data in field {shown_field}."
        raise invalid(text, (f"{shown_field}_crc32c", "does not match"))
    return data, checksum is not None


def _change(call: Call, change: Callable[[Json], Json]) -> Json:
    with call.cloud.store.transaction():
        version = change(find_version(call.cloud, call.name(KEY_NAME), call.param("version")))
        call.cloud.store.put(VERSION, version["name"], version)
    return public_fields(version)


def _check_state(version: Json, *states: str) -> None:
    if version["state"] not in states:
        text = f"{version['name']} has state {version['state']}; the request needs {' or '.join(states)}."
        raise ApiError("FAILED_PRECONDITION", text)
