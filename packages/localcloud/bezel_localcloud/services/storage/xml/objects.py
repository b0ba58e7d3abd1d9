"""Objects of the XML API: read, written, copied, composed and deleted by their path."""

from collections.abc import Mapping
from urllib.parse import quote, unquote

from starlette.responses import Response

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import invalid, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import OBJECT_NAME, bucket_of
from bezel_localcloud.services.storage.conditions import check_etags, check_preconditions, of_sources
from bezel_localcloud.services.storage.copies import compose_objects, copy_object, source_of
from bezel_localcloud.services.storage.encryption.customer_keys import key_of, new_lock, reveal, unlock
from bezel_localcloud.services.storage.encryption.kms_keys import check_readable
from bezel_localcloud.services.storage.objects.content import describing_headers, download, raw_headers
from bezel_localcloud.services.storage.objects.generations import Generations, Placed
from bezel_localcloud.services.storage.objects.methods import delete_object, find_object
from bezel_localcloud.services.storage.uploads.sessions import cancel, open_session, receive_chunk
from bezel_localcloud.services.storage.uploads.single_request import whole
from bezel_localcloud.services.storage.uploads.writes import announced_sums, check_permitted, place_object
from bezel_localcloud.services.storage.xml.documents import children, document, parse, texts
from bezel_localcloud.services.storage.xml.lists import quoted_etag

_FIELDS = {
    "content-type": "contentType",
    "cache-control": "cacheControl",
    "content-disposition": "contentDisposition",
    "content-encoding": "contentEncoding",
    "content-language": "contentLanguage",
    "x-goog-storage-class": "storageClass",
    "x-goog-custom-time": "customTime",
    "x-goog-encryption-kms-key-name": "kmsKeyName",
}
_CONDITIONS = {
    f"x-goog-{source}if-{kind}-match": f"if{source.title().replace('-', '').replace('Copy', '')}{kind.title()}Match"
    for source in ("", "copy-source-")
    for kind in ("generation", "metageneration")
}
_CUSTOM = "x-goog-meta-"
# Predefined access control lists that have no effect, as in packages/localcloud/bezel_localcloud/http/methods.py.
_OF_THE_PROJECT = frozenset({"private", "project-private", "bucket-owner-read", "bucket-owner-full-control"})
_DOCUMENT = 1 << 20  # bytes


def conditions_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Preconditions in the headers, as the JSON API's query arguments.

    Raises:
        ApiError: INVALID_ARGUMENT for a value that is no number.
    """
    conditions = {argument: headers[name] for name, argument in _CONDITIONS.items() if name in headers}
    if wrong := [name for name, value in conditions.items() if decimal(value) is None]:
        raise invalid(f"Invalid precondition {wrong[0]}: expected a generation.", (wrong[0], "is not a number"))
    return conditions


def fields_of(headers: Mapping[str, str]) -> Json:
    """Fields of an object in the headers of its upload.

    Raises:
        NotServedError: For an access control list of others than the project.
    """
    if headers.get("x-goog-acl", "private") not in _OF_THE_PROJECT:
        raise unserved_error(f"the header x-goog-acl: {headers['x-goog-acl']}")
    custom = {
        name.removeprefix("x-goog-meta-"): value for name, value in headers.items() if name.startswith("x-goog-meta-")
    }
    fields: Json = {field: headers[name] for name, field in _FIELDS.items() if headers.get(name)}
    return fields | ({"metadata": custom} if custom else {})


def read(call: Call) -> Response:
    """The bytes of an object, or for HEAD its headers."""
    call.require("storage.objects.get", call.name(OBJECT_NAME))
    row = find_object(call)
    etag = quoted_etag(row)
    check_preconditions(call.arguments, row)
    check_etags(call.request.headers, etag.strip('"'), reads=True)
    key, cipher = key_of(call.request.headers), None
    if call.request.method != "HEAD":
        check_readable(call.cloud, row)
    if key or call.request.method != "HEAD":
        row, cipher = unlock(row, key)
    response = download(call, row, describing_headers(row, etag, custom=True), cipher)
    if call.request.method == "HEAD":
        response.status_code = 200
    return response


async def write(call: Call) -> Response:
    """Upload an object, copy or compose one, or receive the bytes of a resumable session."""
    headers, query = call.request.headers, call.request.query_params
    if "upload_id" in query:
        done = await receive_chunk(call)
        return done if isinstance(done, Response) else upload_response(call, done)
    if "x-goog-copy-source" in headers:
        return await _copy(call, headers["x-goog-copy-source"])
    if "compose" in query:
        parts = children(parse(await whole(call, _DOCUMENT)), "Component")
        sources = [
            {"name": "".join(texts(part, "Name")), "generation": "".join(texts(part, "Generation"))} for part in parts
        ]
        return upload_response(call, await compose_objects(call, sources, fields_of(headers)))
    bucket, name = bucket_of(call), call.param("object")
    fields = fields_of(headers)
    check_permitted(call, bucket, name)  # before any byte is written to the disk
    live = Generations(call.cloud, bucket).live(name)
    check_etags(headers, quoted_etag(live).strip('"') if live else "", reads=False)
    lock = new_lock(key_of(headers))
    upload = await call.cloud.objects.receive(call.request.stream(), lock.cipher if lock else None)
    placed = Placed(upload, fields, lock=lock.fields(upload) if lock else None)
    return upload_response(
        call, place_object(call, bucket, name, placed, call.arguments, sums=announced_sums(headers, {}))
    )


def begin(call: Call) -> Response:
    """Open a resumable session (`x-goog-resumable: start`)."""
    metadata = fields_of(call.request.headers) | {"name": call.param("object")}
    path = f"/{call.param('bucket')}/{quote(call.param('object'), safe='/~')}"
    lock = new_lock(key_of(call.request.headers))
    return open_session(call, bucket_of(call), metadata, lock, path, 201)


def delete(call: Call) -> Response:
    """Delete an object, or end a resumable session."""
    if "upload_id" in call.request.query_params:
        return cancel(call)
    call.require("storage.objects.delete", call.name(OBJECT_NAME))
    return delete_object(call)


def upload_response(call: Call, row: Json) -> Response:
    """The response to an upload."""
    response, row = Response(), reveal(row, call.request.headers)
    headers = describing_headers(row, quoted_etag(row))
    kept = {name: headers[name] for name in headers if name.startswith("x-goog-") or name == "etag"}
    response.raw_headers += raw_headers(kept)
    return response


async def _copy(call: Call, source: str) -> Response:
    bucket, _, name = unquote(source).lstrip("/").partition("/")
    headers, target = call.request.headers, bucket_of(call)
    row = source_of(call, bucket, name, headers.get("x-goog-copy-source-generation", ""))
    check_preconditions(of_sources(call.arguments), row)
    replaces = headers.get("x-goog-metadata-directive", "COPY").upper() == "REPLACE"
    fields = fields_of(headers)
    metadata = {"contentType": row["contentType"]} | fields if replaces else {}
    if storage_class := headers.get("x-goog-storage-class"):
        metadata["storageClass"] = storage_class
    if kms_key := headers.get("x-goog-encryption-kms-key-name"):
        metadata["kmsKeyName"] = kms_key
    copied = await copy_object(call, row, target, call.param("object"), metadata)
    return document("CopyObjectResult", [("LastModified", copied["updated"]), ("ETag", quoted_etag(copied))])
