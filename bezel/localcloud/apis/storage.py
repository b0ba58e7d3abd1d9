"""Cloud Storage v1: buckets, their policies, and objects read and listed; uploads stand in uploads.py."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

from starlette.responses import FileResponse, Response

from bezel.localcloud.api import Api
from bezel.localcloud.errors import ApiError, invalid
from bezel.localcloud.layout import PROJECT, PROJECT_NUMBER
from bezel.localcloud.policies import read_policy, write_policy
from bezel.localcloud.shapes import b64, timestamp

if TYPE_CHECKING:
    from bezel.localcloud.api import Call
    from bezel.localcloud.shapes import Json

api = Api("storage.googleapis.com", "Cloud Storage API", legacy=True)
_BUCKET = "/storage/v1/b/{bucket:id}"
POLICY = "projects/_/buckets/{bucket}"


@api.route("POST", "/storage/v1/b", needs="storage.buckets.create", on=f"projects/{PROJECT}")
async def create(call: Call) -> Json:
    """Create a bucket."""
    body = await call.json()
    name = str(body.get("name", ""))
    if call.query("project") not in {PROJECT, PROJECT_NUMBER}:
        raise invalid("Required parameter: project" if not call.query("project") else "Unknown project id.")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{1,61}[a-z0-9]", name):
        raise invalid(f"Invalid bucket name: '{name}'")
    location, now = str(body.get("location") or "US").upper(), timestamp(call.cloud.pace.now())
    bucket = {
        "kind": "storage#bucket",
        "id": name,
        "projectNumber": PROJECT_NUMBER,
        "metageneration": "1",
        "timeCreated": now,
        "updated": now,
        "etag": b64(b"1"),
        "locationType": "region" if "-" in location else "multi-region",
        "storageClass": "STANDARD",
        "softDeletePolicy": {"retentionDurationSeconds": "604800", "effectiveTime": now},
    }
    bucket = _merged(bucket, {key: value for key, value in body.items() if value is not None}) | {"location": location}
    _mirror_access(bucket)
    with call.cloud.store.transaction():
        if call.cloud.store.get("bucket", name):
            raise ApiError(
                "ALREADY_EXISTS",
                "Your previous request to create the named bucket succeeded and you already own it.",
            )
        call.cloud.store.put("bucket", name, bucket)
        owners = [f"projectEditor:{PROJECT}", f"projectOwner:{PROJECT}"]
        call.cloud.store.put_policy(
            f"projects/_/buckets/{name}",
            {
                "version": 1,
                "etag": b64(b"etag-%08d" % call.cloud.store.next_number("policy")),
                "bindings": [
                    {"role": "roles/storage.legacyBucketOwner", "members": owners},
                    {"role": "roles/storage.legacyBucketReader", "members": [f"projectViewer:{PROJECT}"]},
                ],
            },
        )
        call.cloud.objects.bucket_folder(name).mkdir(exist_ok=True)
    return _shown(call, bucket)


@api.route("GET", "/storage/v1/b", needs="storage.buckets.list", on=f"projects/{PROJECT}")
def list_buckets(call: Call) -> Json:
    """Buckets of the project."""
    buckets = [(name, _shown(call, body)) for name, body in call.cloud.store.rows("bucket", call.query("prefix"))]
    return {"kind": "storage#buckets"} | call.page(buckets, "items", default=1000)


@api.route("GET", _BUCKET, needs="storage.buckets.get", on=POLICY)
def get(call: Call) -> Json:
    """One bucket."""
    return _shown(call, bucket_of(call))


@api.route("PATCH", _BUCKET, needs="storage.buckets.update", on=POLICY)
async def patch(call: Call) -> Json:
    """Merge into a bucket; null removes."""
    body = await call.json()
    with call.cloud.store.transaction():
        bucket = bucket_of(call)
        fixed = {key: bucket[key] for key in ("name", "location", "timeCreated", "id") if key in bucket}
        bucket = _merged(bucket, body) | fixed
        bucket["metageneration"] = str(int(bucket["metageneration"]) + 1)
        bucket["etag"], bucket["updated"] = b64(bucket["metageneration"].encode()), timestamp(call.cloud.pace.now())
        _mirror_access(bucket)
        call.cloud.store.put("bucket", bucket["name"], bucket)
    return _shown(call, bucket)


@api.route("DELETE", _BUCKET, needs="storage.buckets.delete", on=POLICY)
def delete(call: Call) -> Response:
    """Delete an empty bucket."""
    name = bucket_of(call)["name"]
    if call.cloud.store.rows("object", f"{name}/", limit=1):
        raise ApiError("ABORTED", "The bucket you tried to delete is not empty.")
    with call.cloud.store.transaction():
        call.cloud.store.delete("bucket", name)
        call.cloud.store.delete_policy(f"projects/_/buckets/{name}")
    shutil.rmtree(call.cloud.objects.bucket_folder(name), ignore_errors=True)
    return Response(status_code=204)


@api.route("GET", _BUCKET + "/iam", needs="storage.buckets.getIamPolicy", on=POLICY)
def get_policy(call: Call) -> Json:
    """Policy of a bucket."""
    bucket_of(call)
    return _policy_shown(call, read_policy(call.cloud.store, call.name(POLICY)))


@api.route("PUT", _BUCKET + "/iam", needs="storage.buckets.setIamPolicy", on=POLICY)
async def set_policy(call: Call) -> Json:
    """Replace it."""
    body = await call.json()
    bucket_of(call)
    return _policy_shown(call, write_policy(call.cloud.store, call.name(POLICY), body))


@api.route("GET", _BUCKET + "/anywhereCaches", needs="storage.buckets.get", on=POLICY)
@api.route("GET", _BUCKET + "/anywhereCaches/", needs="storage.buckets.get", on=POLICY)
def list_caches(call: Call) -> Json:
    """Anywhere caches: none."""
    bucket_of(call)
    return {"kind": "storage#anywhereCaches"}


@api.route("GET", _BUCKET + "/o", needs="storage.objects.list", on=POLICY)
def list_objects(call: Call) -> Json:
    """Objects by prefix; with a delimiter, what lies deeper is folded into `prefixes`."""
    bucket = bucket_of(call)["name"]
    prefix, delimiter = call.query("prefix"), call.query("delimiter")
    entries: dict[str, Json | None] = {}  # None: a folded prefix
    for _, row in call.cloud.store.rows("object", f"{bucket}/{prefix}"):
        head, found, _ = row["name"][len(prefix) :].partition(delimiter) if delimiter else (row["name"], "", "")
        if found:
            entries[prefix + head + delimiter] = None
        else:
            entries[row["name"]] = object_shown(call, row)
    first, after = call.query("startOffset"), call.query("pageToken")
    names = sorted(name for name in entries if name >= first and name > after)
    size = call.number("maxResults") or 1000
    shown = names[:size]
    answer: Json = {"kind": "storage#objects"}
    if items := [entries[name] for name in shown if entries[name] is not None]:
        answer["items"] = items
    if prefixes := [name for name in shown if entries[name] is None]:
        answer["prefixes"] = prefixes
    return answer | ({"nextPageToken": shown[-1]} if len(names) > size else {})


@api.route("GET", _BUCKET + "/o/{object:path}", needs="storage.objects.get", on=POLICY)
@api.route("GET", "/download" + _BUCKET + "/o/{object:path}", needs="storage.objects.get", on=POLICY)
def get_object(call: Call) -> Json | Response:
    """An object's metadata, or with alt=media its bytes (ranges too)."""
    row = _object(call)
    if call.query("alt") == "media" or call.request.url.path.startswith("/download/"):
        headers = {"x-goog-generation": row["generation"], "x-goog-hash": f"md5={row['md5Hash']}"}
        if row["name"].endswith("/"):
            return Response(b"", media_type=row["contentType"], headers=headers)
        path = call.cloud.objects.path(row["bucket"], row["name"])
        return FileResponse(path, media_type=row["contentType"], headers=headers)
    return object_shown(call, row)


@api.route("DELETE", _BUCKET + "/o/{object:path}", needs="storage.objects.delete", on=POLICY)
def delete_object(call: Call) -> Response:
    """Delete an object."""
    row = _object(call)
    call.cloud.objects.remove(row["bucket"], row["name"])
    return Response(status_code=204)


def bucket_of(call: Call) -> Json:
    """The bucket of the path.

    Raises:
        ApiError: NOT_FOUND.
    """
    found = call.cloud.store.get("bucket", call.param("bucket"))
    if found is None:
        raise ApiError("NOT_FOUND", "The specified bucket does not exist.")
    return found


def object_shown(call: Call, row: Json) -> Json:
    """An object as the API shows it, with links at today's address."""
    path = f"b/{row['bucket']}/o/{row['name'].replace('/', '%2F')}"
    return row | {
        "id": f"{row['bucket']}/{row['name']}/{row['generation']}",
        "selfLink": f"{call.cloud.base}/storage/v1/{path}",
        "mediaLink": f"{call.cloud.base}/download/storage/v1/{path}?generation={row['generation']}&alt=media",
    }


def _object(call: Call) -> Json:
    bucket, name = bucket_of(call)["name"], call.param("object")
    found = call.cloud.store.get("object", f"{bucket}/{name}")
    if found is None:
        raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}")
    return found


def _shown(call: Call, bucket: Json) -> Json:
    return bucket | {"selfLink": f"{call.cloud.base}/storage/v1/b/{bucket['name']}"}


def _policy_shown(call: Call, policy: Json) -> Json:
    return policy | {"kind": "storage#policy", "resourceId": call.name(POLICY)}


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    merged = old | {key: _merged(old.get(key), value) for key, value in new.items()}
    return {key: value for key, value in merged.items() if value is not None}


def _mirror_access(bucket: Json) -> None:
    configuration = bucket.get("iamConfiguration") or {}
    if uniform := configuration.get("uniformBucketLevelAccess"):
        bucket["iamConfiguration"] = configuration | {"bucketPolicyOnly": uniform}
