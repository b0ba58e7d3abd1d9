"""Buckets of the XML API: created, deleted, and their location, storage class and versioning."""

from starlette.responses import Response

from bezel_localcloud.core.errors import unserved_error
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import POLICY, bucket_of
from bezel_localcloud.services.storage.buckets import api as json_buckets
from bezel_localcloud.services.storage.uploads.single_request import whole
from bezel_localcloud.services.storage.xml.documents import document, parse, texts

_DOCUMENT = 1 << 16  # bytes


async def create(call: Call) -> Response:
    """Create a bucket."""
    body = await whole(call, _DOCUMENT)
    root = parse(body) if body else None
    call.require("storage.buckets.create", f"projects/{PROJECT}")
    call.arguments["project"] = call.request.headers.get("x-goog-project-id", PROJECT)
    call.body = {"name": call.param("bucket")}
    for name, field in (("LocationConstraint", "location"), ("StorageClass", "storageClass")):
        if root is not None and (values := texts(root, name)):
            call.body[field] = values[0]
    json_buckets.create(call)
    return Response()


def delete(call: Call) -> Response:
    """Delete an empty bucket."""
    call.require("storage.buckets.delete", call.name(POLICY))
    return json_buckets.delete(call)


def read_setting(call: Call) -> Response:
    """The location, the storage class or the versioning of a bucket."""
    call.require("storage.buckets.get", call.name(POLICY))
    bucket, query = bucket_of(call), call.request.query_params
    if "versioning" in query:
        status = "Enabled" if (bucket.get("versioning") or {}).get("enabled") else "Suspended"
        return document("VersioningConfiguration", [("Status", status)])
    if "storageClass" in query:
        return document("StorageClass", bucket["storageClass"])
    return document("LocationConstraint", bucket["location"])


async def write_setting(call: Call) -> Response:
    """Switch the versioning of a bucket."""
    if "versioning" not in call.request.query_params:
        raise unserved_error("PUT ?location and ?storageClass of Cloud Storage's XML API")
    root = parse(await whole(call, _DOCUMENT))
    call.require("storage.buckets.update", call.name(POLICY))
    call.body = {"versioning": {"enabled": texts(root, "Status") == ["Enabled"]}}
    json_buckets.patch(call)
    return Response()
