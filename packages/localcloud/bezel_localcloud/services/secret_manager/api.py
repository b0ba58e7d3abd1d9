"""Secret Manager v1: secrets and their versions. Only :access returns a payload."""

import base64
import re
from functools import partial

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import ApiError, invalid, refuse_unserved
from bezel_localcloud.core.files.checksums import crc32c
from bezel_localcloud.core.json_types import Json, b64, timestamp
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.core.store import Store
from bezel_localcloud.http.messages import camel
from bezel_localcloud.http.paging import newest_first
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.context import Context
from bezel_localcloud.routing.iam_policies import serve_policy
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.secret_manager.expiration import FIELDS, delete_expired, delete_secret, expiration

api = Api("secretmanager.googleapis.com", "Secret Manager API")
_ROOT = "/secretmanager/v1/projects/{project:id}/secrets"
_ONE = _ROOT + "/{secret:id}"
_VERSION = _ONE + "/versions/{version:id}"
_NAME = "projects/{project}/secrets/{secret}"
_VERSION_NAME = _NAME + "/versions/{version}"
_MAX_PAYLOAD = 65_536
# Fields that a caller may change, fields stored of a new secret, and fields that localcloud does not support.
_SETTABLE = frozenset({"labels", "annotations", "versionAliases"}) | FIELDS
_KEPT = frozenset({"labels", "annotations", "replication", "secretType"})
_UNSERVED = frozenset({"rotation", "topics", "versionDestroyTtl", "customerManagedEncryption", "tags"})


@api.route("POST", _ROOT, needs="secretmanager.secrets.create", query="secretId", body="secret")
def create(call: Call) -> Json:
    """Create a secret without a version."""
    secret_id, body = call.query("secretId"), call.body
    refuse_unserved(body, _UNSERVED, "a secret")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", secret_id):
        raise invalid(f"Secret ID {secret_id!r} is not of the form [A-Za-z0-9_-]{{1,255}}.", ("secret_id", secret_id))
    if not body.get("replication"):
        raise invalid("Secret replication is required.", ("secret.replication", "is required"))
    name = f"projects/{PROJECT}/secrets/{secret_id}"
    now = call.cloud.pace.now()
    expires = expiration(body, now)
    delete_expired(call.cloud.store, now)
    with call.cloud.store.transaction():
        call.check_absent("secret", name, f"Secret [{_with_number(name)}] already exists.")
        secret = {"name": _with_number(name), "createTime": timestamp(now), "etag": _etag(call.cloud.store)} | expires
        secret |= {key: value for key, value in body.items() if key in _KEPT and value}
        call.cloud.store.put("secret", name, secret)
    return secret


@api.route("GET", _ROOT, needs="secretmanager.secrets.list", query="pageSize pageToken")
def list_secrets(call: Call) -> Json:
    """Secrets of the project, newest first."""
    delete_expired(call.cloud.store, call.cloud.pace.now())
    return _list_page(call, newest_first(call.cloud.store.rows("secret")), "secrets")


@api.route("GET", _ONE, needs="secretmanager.secrets.get", on=_NAME)
def get(call: Call) -> Json:
    """One secret, without its payload."""
    return _secret(call)[1]


@api.route("PATCH", _ONE, needs="secretmanager.secrets.update", on=_NAME, query="updateMask", body="secret")
def patch(call: Call) -> Json:
    """Change the fields that the mask names."""
    body, mask = call.body, call.mask()
    if not mask:
        raise invalid("Update mask must be provided.", ("update_mask", "is required"))
    refuse_unserved(body, _UNSERVED, "a secret")
    with call.cloud.store.transaction():
        name, secret = _secret(call)
        _check_etag(body.get("etag", ""), secret)
        changed = apply_mask(secret, body, mask, "secretmanager.Secret", _SETTABLE)
        if asked := {path for path in map(camel, mask) if path in FIELDS}:
            changed.pop("expireTime", None)
            changed |= expiration({field: body.get(field) for field in asked}, call.cloud.pace.now())
        changed.pop("ttl", None)
        _check_aliases(call.cloud.store, name, changed.get("versionAliases") or {})
        secret = {key: value for key, value in secret.items() if key not in _SETTABLE}
        secret |= {key: value for key, value in changed.items() if value}
        secret["etag"] = _etag(call.cloud.store)
        call.cloud.store.put("secret", name, secret)
    return secret


@api.route("DELETE", _ONE, needs="secretmanager.secrets.delete", on=_NAME, query="etag")
def delete(call: Call) -> Json:
    """Delete a secret with all versions."""
    store = call.cloud.store
    with store.transaction():
        name, secret = _secret(call)
        _check_etag(call.query("etag"), secret)
        delete_secret(store, name)
    return {}


serve_policy(api, _ONE, _NAME, "secretmanager.secrets", lambda call: _secret(call)[0])


@api.route("POST", _ONE + ":addVersion", needs="secretmanager.versions.add", on=_NAME)
def add_version(call: Call) -> Json:
    """Add a version, which becomes the latest."""
    payload = call.body.get("payload") or {}
    data = base64.b64decode(payload.get("data", ""))
    if not data or len(data) > _MAX_PAYLOAD:
        raise invalid("Secret Payload must be between 1 and 65536 bytes.", ("payload.data", f"{len(data)} bytes"))
    checksum = payload.get("dataCrc32c")
    if checksum is not None and int(checksum) != crc32c(data):
        raise invalid("Secret Payload does not match its checksum.", ("payload.data_crc32c", "does not match"))
    store = call.cloud.store
    with store.transaction():
        name, _ = _secret(call)
        number = max((_number(n) for n, _ in store.rows("secretVersion", f"{name}/versions/")), default=0) + 1
        version = {
            "name": f"{_with_number(name)}/versions/{number}",
            "createTime": timestamp(call.cloud.pace.now()),
            "state": "ENABLED",
            "replicationStatus": {"automatic": {}},
            "etag": _etag(store),
        } | ({"clientSpecifiedPayloadChecksum": True} if checksum is not None else {})
        store.put("secretVersion", f"{name}/versions/{number}", version)
        store.put_payload(f"{name}/versions/{number}", data)
    return version


@api.route("GET", _ONE + "/versions", needs="secretmanager.versions.list", on=_NAME, query="pageSize pageToken")
def list_versions(call: Call) -> Json:
    """Versions of a secret, newest first."""
    versions = call.cloud.store.rows("secretVersion", f"{_secret(call)[0]}/versions/")
    ordered = sorted(versions, key=lambda item: -_number(item[0]))
    return _list_page(call, [body for _, body in ordered], "versions")


@api.route("GET", _VERSION, needs="secretmanager.versions.get", on=_VERSION_NAME)
def get_version(call: Call) -> Json:
    """One version, without its payload; "latest" is the newest one."""
    return find_version(call.cloud, call.name(_NAME), call.param("version"))[1]


@api.route("GET", _VERSION + ":access", needs="secretmanager.versions.access", on=_VERSION_NAME)
def access(call: Call) -> Json:
    """The payload of an enabled version."""
    name, version = find_version(call.cloud, call.name(_NAME), call.param("version"))
    data = payload_of(call.cloud.store, name, version)
    return {"name": version["name"], "payload": {"data": b64(data), "dataCrc32c": str(crc32c(data))}}


def find_version(cloud: Context, secret: str, version: str) -> tuple[str, Json]:
    """Return (name, body) of a version by number, alias or "latest".

    Raises:
        ApiError: NOT_FOUND.
    """
    store = cloud.store
    delete_expired(store, cloud.pace.now())
    if version == "latest":
        numbers = [_number(name) for name, _ in store.rows("secretVersion", f"{secret}/versions/")]
        version = str(max(numbers, default=0))
    version = ((store.get("secret", secret) or {}).get("versionAliases") or {}).get(version, version)
    name = f"{secret}/versions/{version}"
    row = store.get("secretVersion", name)
    if row is None:
        raise ApiError("NOT_FOUND", f"Secret Version [{_with_number(name)}] not found.")
    return name, row


def payload_of(store: Store, name: str, version: Json) -> bytes:
    """Return the bytes of a version.

    Raises:
        ApiError: FAILED_PRECONDITION if it is not enabled.
    """
    data = store.payload(name)
    if version["state"] != "ENABLED" or data is None:
        raise ApiError("FAILED_PRECONDITION", f"Secret Version [{version['name']}] is in {version['state']} state.")
    return data


def _set_state(call: Call, state: str) -> Json:
    """Make a version readable, or unreadable until it is enabled again, or delete its payload for good."""
    store, number = call.cloud.store, call.param("version")
    if decimal(number) is None:
        text = f"Secret version {number[:50]!r} must be a number: only get and access accept an alias or 'latest'."
        raise invalid(text, ("name", number))
    with store.transaction():
        name, version = find_version(call.cloud, call.name(_NAME), number)
        _check_etag(call.body.get("etag", ""), version)
        if version["state"] == "DESTROYED":
            raise ApiError("FAILED_PRECONDITION", f"Secret Version [{version['name']}] is already destroyed.")
        version |= {"state": state, "etag": _etag(store)}
        if state == "DESTROYED":
            version["destroyTime"] = timestamp(call.cloud.pace.now())
            store.put_payload(name, None)
        store.put("secretVersion", name, version)
    return version


for _verb, _state in {"enable": "ENABLED", "disable": "DISABLED", "destroy": "DESTROYED"}.items():
    _serves = api.route("POST", f"{_VERSION}:{_verb}", needs=f"secretmanager.versions.{_verb}", on=_VERSION_NAME)
    _serves(partial(_set_state, state=_state))


def _secret(call: Call) -> tuple[str, Json]:
    name = call.name(_NAME)
    delete_expired(call.cloud.store, call.cloud.pace.now())
    return name, call.row_of("secret", name, f"Secret [{_with_number(name)}] not found.")


def _list_page(call: Call, ordered: list[Json], key: str) -> Json:
    page = call.page_in_order(ordered, key, default=25_000, max_size=25_000)
    return page | ({"totalSize": len(ordered)} if ordered else {})


def _check_etag(etag: str, current: Json) -> None:
    if etag not in {"", current["etag"]}:
        text = f"The etag given is not the current one of [{current['name']}]: read it again, then change it."
        raise ApiError("ABORTED", text)


def _check_aliases(store: Store, name: str, aliases: Json) -> None:
    for alias, number in aliases.items():
        formed = re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,62}", alias) and alias not in {"latest", "NEW"}
        if not formed or store.get("secretVersion", f"{name}/versions/{number}") is None:
            text = f"Version alias {alias!r} must begin with a letter, not be 'latest' or 'NEW', and name a version."
            raise invalid(text, ("secret.version_aliases", alias))


def _with_number(name: str) -> str:
    return name.replace(f"projects/{PROJECT}/", f"projects/{PROJECT_NUMBER}/", 1)


def _number(name: str) -> int:
    return int(name.rpartition("/")[2])


def _etag(store: Store) -> str:
    return f'"{store.next_number("secret-etag"):013x}"'
