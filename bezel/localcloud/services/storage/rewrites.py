"""Copies within Cloud Storage: objects.rewrite, in one step or, between locations, in several."""

import json
import shutil
import uuid

from bezel.localcloud.core.errors import ApiError, invalid
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.core.objects import measured
from bezel.localcloud.routing.router import Api, Call
from bezel.localcloud.services.storage.api import OF_OBJECTS, POLICY, bucket_of, check_preconditions, object_json
from bezel.localcloud.services.storage.uploads import check_permitted, place_object

api = Api("storage.googleapis.com", "Cloud Storage API", legacy=True)
# Bytes that one call copies between two locations or storage classes; Google documents only that it is bounded.
_STEP_BYTES = 8 * 1024 * 1024
_MIB = 1024 * 1024
_SOURCE = "ifSource"


@api.route(
    "POST",
    "/storage/v1/b/{source:id}/o/{object:path}/rewriteTo/b/{bucket:id}/o/{name:path}",
    query=f"rewriteToken maxBytesRewrittenPerCall sourceGeneration {OF_OBJECTS} " + OF_OBJECTS.replace("if", _SOURCE),
)
def rewrite(call: Call) -> Json:
    """Copy an object, or the next part of it; the copy becomes visible when it is whole."""
    target = bucket_of(call)
    home = call.cloud.store.get("bucket", call.param("source"))
    row = call.cloud.store.get("object", f"{call.param('source')}/{call.param('object')}")
    if home is None or row is None or call.query("sourceGeneration") not in {"", row["generation"]}:
        raise ApiError("NOT_FOUND", f"No such object: {call.param('source')}/{call.param('object')}")
    resource = f"{POLICY.format(bucket=home['name'])}/objects/{row['name']}"
    call.require("storage.objects.get", resource)
    check_permitted(call, call.param("name"))
    arguments = call.arguments.items()
    check_preconditions({name.replace(_SOURCE, "if", 1): value for name, value in arguments if _SOURCE in name}, row)
    near = (home["location"], home["storageClass"]) == (target["location"], target["storageClass"])
    size = int(row["size"])
    done = min(size, _already(call, row) + (_step(call) or (size if near else _STEP_BYTES)))
    response: Json = {"kind": "storage#rewriteResponse", "totalBytesRewritten": str(done), "objectSize": str(size)}
    if done < size:
        token = uuid.uuid4().hex
        call.cloud.store.put("rewrite", token, {"of": _identity(call, row), "done": done})
        return response | {"done": False, "rewriteToken": token}
    part = call.cloud.objects.new_upload()
    if row["name"].endswith("/"):
        part.touch()
    else:
        shutil.copyfile(call.cloud.objects.path(home["name"], row["name"]), part)
    copied = {key: row[key] for key in ("contentType", "metadata", "cacheControl", "contentEncoding") if row.get(key)}
    metadata = copied | call.body | {"name": call.param("name")}
    copy = place_object(call, metadata, call.arguments, measured(part))
    call.cloud.store.delete("rewrite", call.query("rewriteToken"))
    return response | {"done": True, "resource": object_json(call, copy)}


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
