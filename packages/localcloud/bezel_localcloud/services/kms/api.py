"""Cloud KMS v1: key rings and keys, their locations and policies. Versions are in versions_api.py.

Served are symmetric keys in software (ENCRYPT_DECRYPT). As the API of most clients, this one deletes neither rings nor
keys. Leaves out what a version goes through and how it encrypts (keys.py, ciphertexts.py).
"""

import re

from bezel_localcloud.core.errors import invalid, unserved_error
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.regions import regions
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.iam_policies import serve_policy
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.kms.keys import (
    ALGORITHM,
    KEY,
    RING,
    add_version,
    check_durations,
    current,
    find_key,
    primary_of,
    public_fields,
)

# Source: Cloud KMS's list of locations.
_LARGE = frozenset({"global", "us", "europe", "asia", "eur3", "eur4", "eur5", "eur6", "nam3", "nam4", "asia1"})
api = Api("cloudkms.googleapis.com", "Cloud Key Management Service (KMS) API", locations=regions() | _LARGE)
_RINGS = "/cloudkms/v1/projects/{project:id}/locations/{location:id}/keyRings"
RING_PATH = _RINGS + "/{ring:id}"
_KEYS = RING_PATH + "/cryptoKeys"
KEY_PATH = _KEYS + "/{key:id}"
RING_NAME = "projects/{project}/locations/{location}/keyRings/{ring}"
KEY_NAME = RING_NAME + "/cryptoKeys/{key}"
_ID = re.compile(r"[a-zA-Z0-9_-]{1,63}")
_SETTABLE = frozenset({"labels", "rotationPeriod", "nextRotationTime", "versionTemplate"})
_UNSERVED = ("cryptoKeyBackend", "keyAccessJustificationsPolicy", "importOnly")


@api.route("POST", _RINGS, needs="cloudkms.keyRings.create", query="keyRingId")
def create_ring(call: Call) -> Json:
    """Create a key ring."""
    name = f"projects/{PROJECT}/locations/{call.param('location')}/keyRings/{_checked_id(call, 'keyRingId')}"
    ring = {"name": name, "createTime": timestamp(call.cloud.pace.now())}
    with call.cloud.store.transaction():
        call.check_absent(RING, name, f"KeyRing {name} already exists.")
        call.cloud.store.put(RING, name, ring)
    return ring


@api.route("GET", _RINGS, needs="cloudkms.keyRings.list", query="pageSize pageToken")
def list_rings(call: Call) -> Json:
    """Key rings of a location."""
    return _page(call, RING, f"projects/{PROJECT}/locations/{call.param('location')}/keyRings/", "keyRings")


@api.route("GET", RING_PATH, needs="cloudkms.keyRings.get", on=RING_NAME)
def get_ring(call: Call) -> Json:
    """One key ring."""
    return call.row_of(RING, _ring_name(call), f"KeyRing {_ring_name(call)} not found.")


@api.route(
    "POST",
    _KEYS,
    needs="cloudkms.cryptoKeys.create",
    on=RING_NAME,
    query="cryptoKeyId skipInitialVersionCreation",
)
def create_key(call: Call) -> Json:
    """Create a key, with a first version unless the caller skips it."""
    get_ring(call)
    body, now = call.body, call.cloud.pace.now()
    name = f"{_ring_name(call)}/cryptoKeys/{_checked_id(call, 'cryptoKeyId')}"
    key = _key_fields(body)
    check_durations(body, now)
    key |= {"name": name, "createTime": timestamp(now)}
    with call.cloud.store.transaction():
        call.check_absent(KEY, name, f"CryptoKey {name} already exists.")
        call.cloud.store.put(KEY, name, key)
        if not call.flag("skipInitialVersionCreation"):
            version = add_version(call.cloud, key)
            call.cloud.store.put(KEY, name, key | {"_primary": version["name"]})
    return find_key(call.cloud, name)


@api.route("GET", _KEYS, needs="cloudkms.cryptoKeys.list", on=RING_NAME, query="pageSize pageToken")
def list_keys(call: Call) -> Json:
    """Keys of a ring."""
    get_ring(call)
    prefix = f"{_ring_name(call)}/cryptoKeys/"
    for name, _ in call.cloud.store.rows(KEY, prefix):
        current(call.cloud, name)
    return _page(call, KEY, prefix, "cryptoKeys")


@api.route("GET", KEY_PATH, needs="cloudkms.cryptoKeys.get", on=KEY_NAME)
def get_key(call: Call) -> Json:
    """One key with its primary version."""
    return find_key(call.cloud, call.name(KEY_NAME))


@api.route("PATCH", KEY_PATH, needs="cloudkms.cryptoKeys.update", on=KEY_NAME, query="updateMask")
def patch_key(call: Call) -> Json:
    """Change the fields that the mask names."""
    mask = call.mask()
    if not mask:
        raise invalid("The update mask is empty.", ("update_mask", "is required"))
    name = call.name(KEY_NAME)
    with call.cloud.store.transaction():
        find_key(call.cloud, name)
        key = current(call.cloud, name)
        changed = apply_mask(key, call.body, mask, "cloudkms.CryptoKey", _SETTABLE)
        _key_fields({"purpose": key["purpose"]} | changed)
        check_durations(changed, call.cloud.pace.now())
        changed["versionTemplate"] = key["versionTemplate"]  # there is one only, and the body may name a part of it
        kept = {field: value for field, value in key.items() if field not in _SETTABLE}
        call.cloud.store.put(KEY, name, kept | {field: value for field, value in changed.items() if value})
    return find_key(call.cloud, name)


def _page(call: Call, kind: str, prefix: str, title: str) -> Json:
    rows = call.cloud.store.rows(kind, prefix)
    items = [(name, public_fields(row) | (primary_of(call.cloud, row) if kind == KEY else {})) for name, row in rows]
    return call.page(items, title) | {"totalSize": len(items)}


def _ring_name(call: Call) -> str:
    return call.name(RING_NAME)


def _checked_id(call: Call, name: str) -> str:
    value = call.query(name)
    if not _ID.fullmatch(value):
        field = re.sub(r"([A-Z])", r"_\1", name).lower()
        raise invalid(f"{field} {value!r} does not match {_ID.pattern}.", (field, value))
    return value


def _key_fields(body: Json) -> Json:
    """The stored fields of a new key.

    Raises:
        ApiError: INVALID_ARGUMENT without a purpose; NotServedError for a kind of key that localcloud does not serve.
    """
    purpose, template = body.get("purpose") or "", body.get("versionTemplate") or {}
    if purpose in {"", "CRYPTO_KEY_PURPOSE_UNSPECIFIED"}:
        raise invalid("The CryptoKey's purpose must be set.", ("crypto_key.purpose", "is required"))
    if purpose != "ENCRYPT_DECRYPT":
        raise unserved_error(f"keys with the purpose {purpose}", "use ENCRYPT_DECRYPT")
    if (level := template.get("protectionLevel") or "SOFTWARE") != "SOFTWARE":
        raise unserved_error(f"keys with the protection level {level}", "use SOFTWARE")
    if (algorithm := template.get("algorithm") or ALGORITHM) != ALGORITHM:
        text = f"Algorithm {algorithm} is not valid for purpose ENCRYPT_DECRYPT."
        raise invalid(text, ("crypto_key.version_template.algorithm", algorithm))
    if refused := [field for field in _UNSERVED if body.get(field)]:
        raise unserved_error(f"{', '.join(refused)} of a key")
    fields = {"labels", "rotationPeriod", "nextRotationTime", "destroyScheduledDuration"}
    kept = {field: value for field, value in body.items() if field in fields and value}
    template = {"protectionLevel": "SOFTWARE", "algorithm": ALGORITHM}
    return {"purpose": purpose, "versionTemplate": template, "destroyScheduledDuration": "2592000s"} | kept


serve_policy(api, RING_PATH, RING_NAME, "cloudkms.keyRings", lambda call: str(get_ring(call)["name"]))
serve_policy(api, KEY_PATH, KEY_NAME, "cloudkms.cryptoKeys", lambda call: str(get_key(call)["name"]))
