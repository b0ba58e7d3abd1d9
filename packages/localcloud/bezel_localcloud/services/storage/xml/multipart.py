"""Multipart uploads of the XML API: parts received in any order, at once or again, and joined at the end.

Source: Cloud Storage's page on XML API multipart uploads. An upload and its parts survive a restart of the daemon, and
are forgotten after a week.
"""

import uuid

from starlette.responses import Response

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import POLICY, bucket_of
from bezel_localcloud.services.storage.copies import joined_upload
from bezel_localcloud.services.storage.encryption.customer_keys import (
    key_of,
    lock_of_session,
    new_lock,
    reveal,
    session_fields,
)
from bezel_localcloud.services.storage.objects.content import raw_headers
from bezel_localcloud.services.storage.objects.generations import Placed
from bezel_localcloud.services.storage.uploads.single_request import whole
from bezel_localcloud.services.storage.uploads.writes import announced_sums, check_permitted, check_sums, place_object
from bezel_localcloud.services.storage.xml.documents import UPLOADS, Node, XmlError, children, document, parse, texts
from bezel_localcloud.services.storage.xml.lists import quoted_etag

_KIND, _PART = "upload", "uploadPart"
_MOST_PARTS = 10_000
_SMALLEST = 5 << 20  # bytes of every part but the last
_DOCUMENT = 4 << 20  # bytes of the list of parts


def initiate(call: Call, fields: Json) -> Response:
    """Begin an upload."""
    bucket, name, now = bucket_of(call), call.param("object"), call.cloud.pace.now()
    check_permitted(call, bucket, name)
    identifier = uuid.uuid4().hex
    call.cloud.objects.forget_sessions(now)
    upload = {"bucket": bucket["name"], "name": name, "fields": fields, "opened": now, "caller": call.caller}
    upload |= session_fields(new_lock(key_of(call.request.headers)))
    call.cloud.store.put(_KIND, identifier, upload)
    nodes = [("Bucket", bucket["name"]), ("Key", name), ("UploadId", identifier)]
    return document("InitiateMultipartUploadResult", nodes, UPLOADS)


async def receive_part(call: Call) -> Response:
    """Receive one part; a part that comes again replaces the first."""
    check_permitted(call, bucket_of(call), call.param("object"))
    identifier, upload = _upload(call)
    lock_of_session(upload, call.request.headers)
    lock = new_lock(key_of(call.request.headers)) if "key" in upload else None
    number = decimal(call.request.query_params.get("partNumber", ""), _MOST_PARTS)
    if not number:
        text = f"Part number must be an integer between 1 and {_MOST_PARTS}, inclusive"
        raise XmlError(400, "InvalidArgument", "Invalid argument.", ("Details", text))
    received = await call.cloud.objects.receive(call.request.stream(), lock.cipher if lock else None)
    try:
        check_sums(announced_sums(call.request.headers, {}), received)
        _upload(call)  # it may have been aborted meanwhile
    except BaseException:
        received.path.unlink(missing_ok=True)
        raise
    key, store = f"{identifier}/{number:05d}", call.cloud.store
    old = store.get(_PART, key)
    part = {"file": received.path.name, "size": str(received.size), "crc32c": received.crc32c, "md5Hash": received.md5}
    part |= session_fields(lock)
    store.put(_PART, key, part | {"updated": timestamp(call.cloud.pace.now())})
    if old:
        call.cloud.objects.upload_path(old["file"]).unlink(missing_ok=True)
    response = Response()
    hashes = f"crc32c={received.crc32c},md5={received.md5}"
    response.raw_headers += raw_headers({"etag": quoted_etag(part), "x-goog-hash": hashes})
    return response


async def complete(call: Call) -> Response:
    """Join the parts that the caller lists into the object."""
    identifier, upload = _upload(call, ended=True)
    bucket = bucket_of(call)
    if "done" not in upload:
        check_permitted(call, bucket, upload["name"])
        wanted = _wanted_parts(await whole(call, _DOCUMENT))
        parts = [part for number, etag in wanted if (part := _part(call, identifier, number, etag))]
        if any(int(part["size"]) < _SMALLEST for part in parts[:-1]):
            text = "Your proposed upload is smaller than the minimum object size specified in your Policy Document."
            raise XmlError(400, "EntityTooSmall", text)
        lock = lock_of_session(upload, call.request.headers)
        locks = [lock_of_session(part, call.request.headers) for part in parts]
        joined = await joined_upload(
            call,
            [(call.cloud.objects.upload_path(part["file"]), part) for part in parts],
            [part_lock.cipher if part_lock else None for part_lock in locks],
            lock.cipher if lock else None,
        )
        placed = Placed(joined, upload["fields"], lock=lock.fields(joined) if lock else None)

        def close(row: Json) -> None:  # with the object, in one step
            call.cloud.store.put(_KIND, identifier, upload | {"done": row})

        row = place_object(call, bucket, upload["name"], placed, call.arguments, then=close)
        upload["done"] = row
        _forget_parts(call, identifier)
    row = reveal(upload["done"], call.request.headers)
    location = f"{call.base}/{bucket['name']}/{row['name']}"
    nodes = [("Location", location), ("Bucket", bucket["name"]), ("Key", row["name"]), ("ETag", quoted_etag(row))]
    response = document("CompleteMultipartUploadResult", nodes, UPLOADS)
    hashes = {"x-goog-hash": f"crc32c={row['crc32c']}"} if "crc32c" in row else {}
    response.raw_headers += raw_headers({"x-goog-generation": row["generation"]} | hashes)
    return response


def abort(call: Call) -> Response:
    """End an upload and delete its parts."""
    identifier, upload = _upload(call)
    check_permitted(call, bucket_of(call), upload["name"])
    call.cloud.objects.forget_session(identifier)
    return Response(status_code=204)


def list_parts(call: Call) -> Response:
    """The parts of an upload."""
    identifier, upload = _upload(call)
    call.require("storage.objects.list", POLICY.format(bucket=upload["bucket"]))
    nodes: list[Node] = [("Bucket", upload["bucket"]), ("Key", upload["name"]), ("UploadId", identifier)]
    nodes += [("StorageClass", str(upload["fields"].get("storageClass", "STANDARD"))), ("IsTruncated", "false")]
    for key, part in call.cloud.store.rows(_PART, f"{identifier}/"):
        shown = [("LastModified", part["updated"]), ("ETag", quoted_etag(part)), ("Size", part["size"])]
        nodes.append(("Part", [("PartNumber", str(int(key.rpartition("/")[2]))), *shown]))
    return document("ListPartsResult", nodes, UPLOADS)


def list_uploads(call: Call) -> Response:
    """The uploads of a bucket that have not ended."""
    bucket = bucket_of(call)["name"]
    call.require("storage.objects.list", POLICY.format(bucket=bucket))
    rows = [(key, row) for key, row in call.cloud.store.rows(_KIND) if row["bucket"] == bucket and _is_open(row)]
    nodes: list[Node] = [("Bucket", bucket), ("IsTruncated", "false")]
    for key, row in sorted(rows, key=lambda item: (item[1]["name"], item[0])):
        nodes.append(("Upload", [("Key", row["name"]), ("UploadId", key), ("Initiated", timestamp(row["opened"]))]))
    return document("ListMultipartUploadsResult", nodes, UPLOADS)


def _upload(call: Call, *, ended: bool = False) -> tuple[str, Json]:
    identifier = call.request.query_params.get("uploadId", "")
    row = call.cloud.store.get(_KIND, identifier)
    here = row is not None and (row["bucket"], row.get("name")) == (call.param("bucket"), call.param("object"))
    if row is None or not here or not (ended or _is_open(row)):
        raise ApiError("NOT_FOUND", "No such upload.")
    return identifier, row


def _is_open(row: Json) -> bool:
    return "fields" in row and "done" not in row


def _wanted_parts(body: bytes) -> list[tuple[int, str]]:
    """Number and etag of each part that an upload is to be completed with."""
    try:
        parts = children(parse(body), "Part")
        wanted = [(decimal(texts(part, "PartNumber")[0]) or 0, texts(part, "ETag")[0].strip('"')) for part in parts]
    except IndexError:
        raise invalid("The XML you provided was not well-formed: a part needs PartNumber and ETag.") from None
    if not wanted:
        raise invalid("The upload must be completed with one part at least.")
    if [number for number, _ in wanted] != sorted({number for number, _ in wanted}):
        text = "The list of parts was not in ascending order. Parts must be ordered by part number."
        raise XmlError(400, "InvalidPartOrder", text)
    return wanted


def _part(call: Call, identifier: str, number: int, etag: str) -> Json:
    part = call.cloud.store.get(_PART, f"{identifier}/{number:05d}")
    if part is None or quoted_etag(part).strip('"') != etag:
        text = "One or more of the specified parts could not be found. The part may not have been uploaded, or the "
        raise XmlError(400, "InvalidPart", text + "specified entity tag may not match the part's entity tag.")
    return part


def _forget_parts(call: Call, identifier: str) -> None:
    for key, part in call.cloud.store.rows(_PART, f"{identifier}/"):
        call.cloud.store.delete(_PART, key)
        call.cloud.objects.upload_path(part["file"]).unlink(missing_ok=True)
