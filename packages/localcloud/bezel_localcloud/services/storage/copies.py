"""Copies within Cloud Storage: copy, rewrite (in one step or, between locations, in several), compose and move.

A copy shares the bytes of its source on the disk, so it takes no time whatever its size, unless it changes the key that
they are encrypted with.
"""

import asyncio
import base64
import json
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.files.checksums import Cipher, Upload, crc_text, join_crc32c
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import BUCKET, OF_OBJECTS, OF_SOURCES, api, bucket_of, resource_of
from bezel_localcloud.services.storage.conditions import check_preconditions, of_sources
from bezel_localcloud.services.storage.encryption.customer_keys import key_of, new_lock, unlock
from bezel_localcloud.services.storage.encryption.kms_keys import check_readable
from bezel_localcloud.services.storage.objects.contexts import custom
from bezel_localcloud.services.storage.objects.generations import Generations, Placed
from bezel_localcloud.services.storage.objects.metadata import no_such_object, object_json
from bezel_localcloud.services.storage.uploads.writes import check_permitted, place_object

# Bytes that one call copies between two locations or storage classes; Google documents only that it is bounded.
_STEP_BYTES = 8 * 1024 * 1024
_MIB = 1024 * 1024
_MOST_SOURCES = 32
_TO = "/b/{bucket:id}/o/{name:path}"
_FROM = "/storage/v1/b/{source:id}/o/{object:path}"
_OF_COPIES = f"sourceGeneration destinationKmsKeyName {OF_OBJECTS} {OF_SOURCES}"
_OF_COMPOSITIONS = "ifGenerationMatch ifMetagenerationMatch dropContextGroups kmsKeyName"
_COPIED = [
    "contentType",
    "metadata",
    "cacheControl",
    "contentEncoding",
    "contentDisposition",
    "contentLanguage",
    "customTime",
    "temporaryHold",
    "eventBasedHold",
]


@api.route(
    "POST",
    f"{_FROM}/rewriteTo{_TO}",
    query=f"rewriteToken maxBytesRewrittenPerCall dropContextGroups {_OF_COPIES}",
)
async def rewrite(call: Call) -> Json:
    """Copy an object, or the next part of it; the copy becomes visible when it is whole."""
    target, home = bucket_of(call), call.cloud.store.get("bucket", call.param("source"))
    row = source_of(call, call.param("source"), call.param("object"), call.query("sourceGeneration"))
    check_permitted(call, target, call.param("name"))
    check_preconditions(of_sources(call.arguments), row)
    kept = call.body.get("storageClass", target["storageClass"]) == row["storageClass"]
    keys = [key_of(call.request.headers, source=source) for source in (True, False)]
    unlock(row, keys[0])
    near = kept and (home or {})["location"] == target["location"] and keys[0] == keys[1]
    size = int(row["size"])
    done = min(size, _already(call, row) + (_step(call) or (size if near else _STEP_BYTES)))
    response: Json = {"kind": "storage#rewriteResponse", "totalBytesRewritten": str(done), "objectSize": str(size)}
    if done < size:
        token = uuid.uuid4().hex
        call.cloud.store.put("rewrite", token, {"of": _identity(call, row), "done": done})
        return response | {"done": False, "rewriteToken": token}
    copied = await copy_object(call, row, target, call.param("name"), call.body)
    call.cloud.store.delete("rewrite", call.query("rewriteToken"))
    return response | {"done": True, "resource": object_json(call, copied)}


@api.route("POST", f"{_FROM}/copyTo{_TO}", query=_OF_COPIES)
async def copy(call: Call) -> Json:
    """Copy an object."""
    target = bucket_of(call)
    row = source_of(call, call.param("source"), call.param("object"), call.query("sourceGeneration"))
    check_preconditions(of_sources(call.arguments), row)
    return object_json(call, await copy_object(call, row, target, call.param("name"), call.body))


@api.route("POST", BUCKET + "/o/{object:path}/moveTo/o/{name:path}", query=f"{OF_OBJECTS} {OF_SOURCES}")
async def move(call: Call) -> Json:
    """Rename an object within its bucket, in one step."""
    bucket = bucket_of(call)
    row = source_of(call, bucket["name"], call.param("object"), "")
    call.require("storage.objects.delete", resource_of(bucket["name"], row["name"]))
    check_preconditions(of_sources(call.arguments), row)
    if row["name"] == call.param("name"):
        raise invalid("The source and the destination of a move must differ.", ("destinationObject", row["name"]))
    return object_json(call, await copy_object(call, row, bucket, call.param("name"), {}, moves=True))


@api.route(
    "POST",
    BUCKET + "/o/{object:path}/compose",
    query=_OF_COMPOSITIONS,
)
async def compose(call: Call) -> Json:
    """Join up to 32 objects of a bucket into one."""
    body = call.body
    row = await compose_objects(
        call,
        body.get("sourceObjects") or [],
        body.get("destination") or {},
        deletes=bool(body.get("deleteSourceObjects")),
    )
    return object_json(call, row)


async def compose_objects(call: Call, sources: list[Json], fields: Json, *, deletes: bool = False) -> Json:
    """Make the object of the path out of others of its bucket, and return its row.

    Args:
        call: The request.
        sources: Name, and if they are given generation and preconditions, of each of the others.
        fields: Fields of the object.
        deletes: Whether the others are deleted in the same step.

    Raises:
        ApiError: A source does not exist, or there are too many or none.
    """
    key = key_of(call.request.headers)
    bucket, name = bucket_of(call), call.param("object")
    check_permitted(call, bucket, name)
    if not 0 < len(sources) <= _MOST_SOURCES:
        text = f"The number of source components provided ({len(sources)}) must be between 1 and {_MOST_SOURCES}."
        raise invalid(text, ("sourceObjects", str(len(sources))))
    rows, ciphers = [], []
    for source in sources:
        row = source_of(call, bucket["name"], str(source.get("name") or ""), str(source.get("generation") or ""))
        check_preconditions(source.get("objectPreconditions") or {}, row)
        check_readable(call.cloud, row)
        row, cipher = unlock(row, key)
        rows.append(row)
        ciphers.append(cipher)
    lock = new_lock(key)
    files = [(call.cloud.objects.content(row), row) for row in rows]
    upload = await joined_upload(call, files, ciphers, lock.cipher if lock else None)
    components = sum(int(row.get("componentCount", 1)) for row in rows)
    locked = lock.fields(upload) if lock else None
    fields = {"contentType": rows[0]["contentType"]} | _joined_contexts(call, rows, name) | fields
    fields |= _key_fields(call, "kmsKeyName")
    placed = Placed(upload, fields, components, locked)
    gone = [row for row in rows if row["name"] != name] if deletes else []
    return place_object(call, bucket, name, placed, call.arguments, deletes=gone)


async def joined_upload(
    call: Call,
    parts: list[tuple[Path, Json]],
    ciphers: Sequence[Cipher | None] = (),
    cipher: Cipher | None = None,
) -> Upload:
    """The bytes of several files one after the other; of each, its size and its CRC32C are known.

    Args:
        call: The request.
        parts: The files.
        ciphers: What each of them is encrypted with.
        cipher: What the upload is to be encrypted with.
    """
    with ExitStack() as opened:  # all before the first wait, so that each is what was found
        files = [opened.enter_context(path.open("rb")) for path, _ in parts]
        path = await asyncio.to_thread(call.cloud.objects.concatenate, files, ciphers, cipher)
    crc, size = 0, 0
    for _, row in parts:
        crc = join_crc32c(crc, int.from_bytes(base64.b64decode(row["crc32c"]), "big"), int(row["size"]))
        size += int(row["size"])
    return Upload(path, size, "", crc_text(crc))


def source_of(call: Call, bucket: str, name: str, generation: str) -> Json:
    """Return an object that the caller may read.

    Raises:
        ApiError: NOT_FOUND, or it may not.
    """
    home = call.cloud.store.get("bucket", bucket)
    row = None if home is None else Generations(call.cloud, home).find(name, generation)
    if row is None:
        raise no_such_object(bucket, name)
    call.require("storage.objects.get", resource_of(bucket, name))
    return row


async def copy_object(call: Call, row: Json, target: Json, name: str, metadata: Json, *, moves: bool = False) -> Json:
    """Make a copy of an object, with the metadata that the caller gives or else that of the source; return its row."""
    headers = call.request.headers
    key = key_of(headers)
    check_permitted(call, target, name)
    check_readable(call.cloud, row)
    source, cipher = unlock(row, key_of(headers, source=True) or (key if moves else None))
    lock = new_lock(key)
    kept = {key: row[key] for key in _COPIED if row.get(key)}
    fields = metadata if metadata.get("contentType") else kept | metadata
    fields = _joined_contexts(call, [row], name) | fields | _key_fields(call, "destinationKmsKeyName")
    if moves:
        fields["storageClass"] = row["storageClass"]
        fields |= {"kmsKeyName": row["kmsKeyName"].partition("/cryptoKeyVersions/")[0]} if "kmsKeyName" in row else {}
    upload = await _copy_bytes(call, source, cipher, lock.cipher if lock else None)
    locked = lock.fields(upload) if lock else None
    placed = Placed(upload, fields, int(row.get("componentCount", 0)), locked)
    conditions = {key: value for key, value in call.arguments.items() if key in OF_OBJECTS.split()}
    return place_object(call, target, name, placed, conditions, deletes=[row] if moves else [])


def _key_fields(call: Call, argument: str) -> Json:
    """The key of Cloud KMS that a query argument names for the object."""
    return {"kmsKeyName": call.query(argument)} if call.query(argument) else {}


def _joined_contexts(call: Call, sources: list[Json], name: str) -> Json:
    """The contexts of sources, unless the caller drops them, which takes a permission of its own."""
    contexts: Json = {}
    for row in sources:
        contexts |= custom(row)
    if dropped := call.request.query_params.getlist("dropContextGroups"):
        if dropped != ["custom"]:
            raise invalid(f"Invalid dropContextGroups {dropped}: expected 'custom'.", ("dropContextGroups", dropped[0]))
        if contexts:
            call.require("storage.objects.dropContexts", resource_of(call.param("bucket"), name))
        return {}
    return {"contexts": {"custom": contexts}} if contexts else {}


async def _copy_bytes(call: Call, row: Json, old: Cipher | None, new: Cipher | None) -> Upload:
    if not (old or new):
        return call.cloud.objects.copy(row)
    with call.cloud.objects.content(row).open("rb") as file:
        path = await asyncio.to_thread(call.cloud.objects.concatenate, [file], [old], new)
    return Upload(path, int(row["size"]), row.get("md5Hash", ""), row["crc32c"])


def _step(call: Call) -> int:
    """The bound that the caller sets on this call, 0 for none."""
    step = int(call.query("maxBytesRewrittenPerCall") or 0)
    if step < 0 or step % _MIB:
        raise invalid("maxBytesRewrittenPerCall must be an integral multiple of 1 MiB (1048576).")
    return step


def _already(call: Call, row: Json) -> int:
    """Return the bytes that earlier calls have copied.

    Raises:
        ApiError: INVALID_ARGUMENT for a token of another copy.
    """
    token = call.query("rewriteToken")
    if not token:
        return 0
    begun = call.cloud.store.get("rewrite", token)
    if begun is None or begun["of"] != _identity(call, row):
        raise invalid("The rewriteToken belongs to another copy.", ("rewriteToken", token))
    return int(begun["done"])


def _identity(call: Call, row: Json) -> str:
    return json.dumps([row["bucket"], row["name"], row["generation"], call.param("bucket"), call.param("name")])
