"""Cloud Storage v1: buckets, their policies, and objects read and listed; uploads are in uploads.py."""

import re
import shutil

from starlette.responses import FileResponse, Response

from bezel.localcloud.core.errors import ApiError, invalid
from bezel.localcloud.core.json_types import Json, b64, timestamp
from bezel.localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel.localcloud.core.regions import regions
from bezel.localcloud.http.update_mask import merged
from bezel.localcloud.routing.iam_policies import held_permissions, read_policy, write_policy
from bezel.localcloud.routing.router import Api, Call

api = Api("storage.googleapis.com", "Cloud Storage API", legacy=True)
# Query parameters of a handler that calls `check_preconditions`, for buckets and for objects.
OF_BUCKETS = "ifMetagenerationMatch ifMetagenerationNotMatch"
OF_OBJECTS = f"ifGenerationMatch ifGenerationNotMatch {OF_BUCKETS}"
_PROJECT = f"projects/{PROJECT}"
_BUCKET = "/storage/v1/b/{bucket:id}"
_OBJECT = _BUCKET + "/o/{object:path}"
POLICY = "projects/_/buckets/{bucket}"
_OBJECT_NAME = POLICY + "/objects/{object}"
_VERSION = "optionsRequestedPolicyVersion"
_PAGES = "maxResults pageToken"
_LISTED = f"prefix delimiter startOffset endOffset {_PAGES}"
_LARGE_LOCATIONS = frozenset({"US", "EU", "ASIA", "NAM4", "EUR4", "EUR5", "EUR7", "EUR8", "ASIA1"})
_CLASSES = ("STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE", "MULTI_REGIONAL", "REGIONAL", "DURABLE_REDUCED_AVAILABILITY")
# Fields that the platform sets, and fields that cannot be changed.
_THEIRS = frozenset(
    {"kind", "id", "selfLink", "projectNumber", "metageneration", "generation", "timeCreated", "updated", "etag",
     "owner", "locationType", "softDeleteTime", "hardDeleteTime", "satisfiesPZI", "satisfiesPZS"}
)  # fmt: skip
_FIXED = frozenset({"name", "location"})


@api.route("POST", "/storage/v1/b", needs="storage.buckets.create", on=_PROJECT, query="project")
def create(call: Call) -> Json:
    """Create a bucket."""
    name = str(call.body.get("name") or "")
    _check_project(call)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{1,61}[a-z0-9]", name):
        raise invalid(f"Invalid bucket name: '{name}'")
    location, now = str(call.body.get("location") or "US").upper(), timestamp(call.cloud.pace.now())
    if location.lower() not in regions() and location not in _LARGE_LOCATIONS:
        raise invalid(f"The specified location constraint is not valid: {location}.", ("location", location))
    _check_class(call.body)
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
    bucket = merged(bucket, {key: value for key, value in call.body.items() if key not in _THEIRS})
    bucket["location"] = location
    _mirror_access(bucket)
    with call.cloud.store.transaction():
        taken = "Your previous request to create the named bucket succeeded and you already own it."
        call.check_absent("bucket", name, taken)
        call.cloud.store.put("bucket", name, bucket)
        bindings = [
            {"role": f"roles/storage.legacyBucket{kind}", "members": [f"project{group}:{PROJECT}" for group in groups]}
            for kind, groups in {"Owner": ("Editor", "Owner"), "Reader": ("Viewer",)}.items()
        ]
        write_policy(call.cloud.store, POLICY.format(bucket=name), {"policy": {"bindings": bindings}})
        call.cloud.objects.bucket_folder(name).mkdir(exist_ok=True)
    return _shown(call, bucket)


@api.route("GET", "/storage/v1/b", needs="storage.buckets.list", on=_PROJECT, query=f"project prefix {_PAGES}")
def list_buckets(call: Call) -> Json:
    """Buckets of the project."""
    _check_project(call)
    buckets = [(name, _shown(call, body)) for name, body in call.cloud.store.rows("bucket", call.query("prefix"))]
    return {"kind": "storage#buckets"} | call.page(buckets, "items", default=1000)


@api.route("GET", _BUCKET, needs="storage.buckets.get", on=POLICY, query=OF_BUCKETS)
def get(call: Call) -> Json:
    """One bucket."""
    bucket = bucket_of(call)
    check_preconditions(call.arguments, bucket, reads=True)
    return _shown(call, bucket)


@api.route("PATCH", _BUCKET, needs="storage.buckets.update", on=POLICY, query=OF_BUCKETS)
def patch(call: Call) -> Json:
    """Merge into a bucket; null removes."""
    _check_class(call.body)
    with call.cloud.store.transaction():
        bucket = bucket_of(call)
        check_preconditions(call.arguments, bucket)
        bucket = merged(bucket, {key: value for key, value in call.body.items() if key not in _THEIRS | _FIXED})
        bucket["metageneration"] = str(int(bucket["metageneration"]) + 1)
        bucket["etag"], bucket["updated"] = b64(bucket["metageneration"].encode()), timestamp(call.cloud.pace.now())
        _mirror_access(bucket)
        call.cloud.store.put("bucket", bucket["name"], bucket)
    return _shown(call, bucket)


@api.route("DELETE", _BUCKET, needs="storage.buckets.delete", on=POLICY, query=OF_BUCKETS)
def delete(call: Call) -> Response:
    """Delete an empty bucket."""
    bucket = bucket_of(call)
    check_preconditions(call.arguments, bucket)
    name = bucket["name"]
    if call.cloud.store.rows("object", f"{name}/", limit=1):
        raise ApiError("ABORTED", "The bucket you tried to delete is not empty.")
    with call.cloud.store.transaction():
        call.cloud.store.delete("bucket", name)
        call.cloud.store.delete_policy(f"projects/_/buckets/{name}")
    call.cloud.objects.forget_sessions(call.cloud.pace.now(), name)
    shutil.rmtree(call.cloud.objects.bucket_folder(name), ignore_errors=True)
    return Response(status_code=204)


@api.route("GET", _BUCKET + "/iam", needs="storage.buckets.getIamPolicy", on=POLICY, query=_VERSION)
def get_policy(call: Call) -> Json:
    """Policy of a bucket."""
    bucket_of(call)
    return _policy_json(call, read_policy(call.cloud.store, call.name(POLICY), call.query(_VERSION)))


@api.route("PUT", _BUCKET + "/iam", needs="storage.buckets.setIamPolicy", on=POLICY)
def set_policy(call: Call) -> Json:
    """Replace the policy of a bucket."""
    bucket_of(call)
    policy = merged({}, call.body)
    return _policy_json(call, write_policy(call.cloud.store, call.name(POLICY), {"policy": policy}, stale=stale()))


@api.route("GET", _BUCKET + "/iam/testPermissions", query="permissions")
def test_permissions(call: Call) -> Json:
    """The requested permissions that the caller has on a bucket."""
    bucket_of(call)
    permissions = call.request.query_params.getlist("permissions")
    return {"kind": "storage#testIamPermissionsResponse"} | held_permissions(call, call.name(POLICY), permissions)


@api.route("GET", _BUCKET + "/anywhereCaches", needs="storage.buckets.get", on=POLICY, query="pageSize pageToken")
@api.route("GET", _BUCKET + "/anywhereCaches/", needs="storage.buckets.get", on=POLICY, query="pageSize pageToken")
def list_caches(call: Call) -> Json:
    """Anywhere caches: none."""
    bucket_of(call)
    return {"kind": "storage#anywhereCaches"} | call.page([], "items")


@api.route("GET", _BUCKET + "/o", needs="storage.objects.list", on=POLICY, query=_LISTED)
def list_objects(call: Call) -> Json:
    """Objects by prefix; with a delimiter, names below it are folded into `prefixes`."""
    bucket = bucket_of(call)["name"]
    prefix, delimiter = call.query("prefix"), call.query("delimiter")
    first, end = call.query("startOffset"), call.query("endOffset")
    entries: dict[str, Json | None] = {}  # None: a folded prefix
    for _, row in call.cloud.store.rows("object", f"{bucket}/{prefix}"):
        if row["name"] < first or (end and row["name"] >= end):
            continue
        head, folded, _ = row["name"][len(prefix) :].partition(delimiter) if delimiter else (row["name"], "", "")
        if folded:
            entries[prefix + head + delimiter] = None
        else:
            entries[row["name"]] = object_json(call, row)
    shown, token = call.paged(sorted(entries.items()), default=1000, max_size=1000)
    items = [entry for _, entry in shown if entry is not None]
    found = {"items": items, "prefixes": [name for name, entry in shown if entry is None], "nextPageToken": token}
    return {"kind": "storage#objects"} | {key: value for key, value in found.items() if value}


@api.route("GET", _OBJECT, needs="storage.objects.get", on=_OBJECT_NAME, query=f"generation {OF_OBJECTS}")
@api.route("GET", "/download" + _OBJECT, needs="storage.objects.get", on=_OBJECT_NAME, query=f"generation {OF_OBJECTS}")
def get_object(call: Call) -> Json | Response:
    """An object's metadata, or with alt=media its bytes (ranges too)."""
    row = _object(call)
    check_preconditions(call.arguments, row, reads=True)
    if call.query("alt") == "media" or call.request.url.path.startswith("/download/"):
        headers = {"x-goog-generation": row["generation"], "x-goog-hash": f"md5={row['md5Hash']}"}
        if row["name"].endswith("/"):
            return Response(b"", media_type=row["contentType"], headers=headers)
        path = call.cloud.objects.path(row["bucket"], row["name"])
        return FileResponse(path, media_type=row["contentType"], headers=headers)
    return object_json(call, row)


@api.route("DELETE", _OBJECT, needs="storage.objects.delete", on=_OBJECT_NAME, query=f"generation {OF_OBJECTS}")
def delete_object(call: Call) -> Response:
    """Delete an object."""
    row = _object(call)
    check_preconditions(call.arguments, row)
    call.cloud.objects.remove(row["bucket"], row["name"])
    return Response(status_code=204)


def stale() -> ApiError:
    """412: the caller's condition does not hold."""
    return ApiError("FAILED_PRECONDITION", "At least one of the pre-conditions you specified did not hold.", status=412)


def check_preconditions(conditions: dict[str, str], current: Json | None, *, reads: bool = False) -> None:
    """Check the conditions against a bucket or an object.

    Args:
        conditions: Query arguments, or those kept from an earlier call.
        current: The current row, None for a missing one, whose generation is 0.
        reads: Whether the call only reads: "not match" then gives a 304.

    Raises:
        ApiError: 412, or 304.
    """
    for kind in ("generation", "metageneration"):
        name, found = f"if{kind.capitalize()}", (current or {}).get(kind, "0")
        if conditions.get(f"{name}Match") not in {None, "", found}:
            raise stale()
        if conditions.get(f"{name}NotMatch") == found:
            raise ApiError("FAILED_PRECONDITION", "Not modified.", status=304) if reads else stale()


def bucket_of(call: Call) -> Json:
    """Return the bucket of the path.

    Raises:
        ApiError: NOT_FOUND.
    """
    return call.stored("bucket", call.param("bucket"), "The specified bucket does not exist.")


def object_json(call: Call, row: Json) -> Json:
    """JSON of an object, with links at the current address."""
    path = f"b/{row['bucket']}/o/{row['name'].replace('/', '%2F')}"
    return row | {
        "id": f"{row['bucket']}/{row['name']}/{row['generation']}",
        "selfLink": f"{call.cloud.base}/storage/v1/{path}",
        "mediaLink": f"{call.cloud.base}/download/storage/v1/{path}?generation={row['generation']}&alt=media",
    }


def _object(call: Call) -> Json:
    bucket, name = bucket_of(call)["name"], call.param("object")
    found = call.cloud.store.get("object", f"{bucket}/{name}")
    if found is None or call.query("generation") not in {"", found["generation"]}:
        raise ApiError("NOT_FOUND", f"No such object: {bucket}/{name}")
    return found


def _shown(call: Call, bucket: Json) -> Json:
    return bucket | {"selfLink": f"{call.cloud.base}/storage/v1/b/{bucket['name']}"}


def _policy_json(call: Call, policy: Json) -> Json:
    return policy | {"kind": "storage#policy", "resourceId": call.name(POLICY)}


def _check_project(call: Call) -> None:
    if call.query("project") not in {PROJECT, PROJECT_NUMBER}:
        raise invalid("Unknown project id.", ("project", call.query("project")))


def _check_class(body: Json) -> None:
    name = body.get("storageClass")
    if name is not None and name not in _CLASSES:
        raise invalid(f"Invalid storage class {name!r}: use one of {', '.join(_CLASSES)}.", ("storageClass", name))


def _mirror_access(bucket: Json) -> None:
    configuration = bucket.get("iamConfiguration") or {}
    if uniform := configuration.get("uniformBucketLevelAccess"):
        bucket["iamConfiguration"] = configuration | {"bucketPolicyOnly": uniform}
