"""Buckets: created, read, listed, changed, locked and deleted; their policies are in policies.py."""

from starlette.responses import Response

from bezel_catalog.storage_locations import location_kind, storage_locations
from bezel_localcloud.core.errors import ApiError, invalid, refuse_unserved, unserved_error
from bezel_localcloud.core.files.objects import LIVE, NONCURRENT
from bezel_localcloud.core.json_types import Json, b64, timestamp
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.core.regions import regions
from bezel_localcloud.http.update_mask import merge
from bezel_localcloud.routing.iam_policies import write_policy
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import BUCKET, OF_BUCKETS, POLICY, api, bucket_of
from bezel_localcloud.services.storage.buckets import soft_delete
from bezel_localcloud.services.storage.buckets.names import is_bucket_name
from bezel_localcloud.services.storage.buckets.policies import forget_object_policies, heed_uniform_access
from bezel_localcloud.services.storage.buckets.uniform_access import bucket_json, under_one_name, with_lock
from bezel_localcloud.services.storage.conditions import check_etags, check_preconditions
from bezel_localcloud.services.storage.encryption.kms_keys import STORAGE_AGENT, check_key, default_of
from bezel_localcloud.services.storage.objects.generations import next_generation
from bezel_localcloud.services.storage.objects.metadata import CLASSES

_PROJECT = f"projects/{PROJECT}"
_LISTED = "project prefix softDeleted maxResults pageToken"
# Fields that the platform sets, and fields that cannot be changed.
_THEIRS = frozenset(
    {"kind", "id", "selfLink", "projectNumber", "metageneration", "generation", "timeCreated", "updated", "etag",
     "owner", "locationType", "softDeleteTime", "hardDeleteTime", "satisfiesPZI", "satisfiesPZS", "objectRetention"}
)  # fmt: skip
_FIXED = frozenset({"name", "location"})
# Fields that a PUT keeps although it leaves them out, as each has a value in every bucket.
_KEPT = frozenset({"storageClass", "softDeletePolicy"})
_LONGEST_RETENTION = 3_155_760_000  # seconds, 100 years


@api.route("POST", "/storage/v1/b", needs="storage.buckets.create", on=_PROJECT, query="project enableObjectRetention")
def create(call: Call) -> Json:
    """Create a bucket."""
    name = str(call.body.get("name") or "")
    _check_project(call)
    if not is_bucket_name(name):
        raise invalid(f"Invalid bucket name: '{name}'")
    location, now = str(call.body.get("location") or "US").upper(), timestamp(call.cloud.pace.now())
    if location.lower() not in regions() and location not in storage_locations():
        raise invalid(f"The specified location constraint is not valid: {location}.", ("location", location))
    _check_settings(call.body)
    bucket = {
        "kind": "storage#bucket",
        "id": name,
        "projectNumber": PROJECT_NUMBER,
        "generation": next_generation(call.cloud),
        "metageneration": "1",
        "timeCreated": now,
        "updated": now,
        "etag": b64(b"1"),
        "locationType": location_kind(
            location, (call.body.get("customPlacementConfig") or {}).get("dataLocations") or ()
        ),
        "storageClass": "STANDARD",
        "softDeletePolicy": {"retentionDurationSeconds": "604800", "effectiveTime": now},
    }
    settings = under_one_name(call.body, {})
    bucket = merge(bucket, {key: value for key, value in settings.items() if key not in _THEIRS})
    bucket["location"] = location
    if call.flag("enableObjectRetention"):
        bucket["objectRetention"] = {"mode": "Enabled"}
    _complete(bucket, {}, call.cloud.pace.now())
    _check_default_key(call, bucket, {})
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
    return bucket_json(call, bucket)


@api.route("GET", "/storage/v1/b", needs="storage.buckets.list", on=_PROJECT, query=_LISTED)
def list_buckets(call: Call) -> Json:
    """Buckets of the project, or those that were deleted softly."""
    _check_project(call)
    prefix, store = call.query("prefix"), call.cloud.store
    rows = soft_delete.list_deleted(call.cloud, prefix) if call.flag("softDeleted") else store.rows("bucket", prefix)
    buckets = [(name, bucket_json(call, body)) for name, body in rows]
    return {"kind": "storage#buckets"} | call.page(buckets, "items", default=1000)


@api.route("GET", BUCKET, needs="storage.buckets.get", on=POLICY, query=f"softDeleted generation {OF_BUCKETS}")
def get(call: Call) -> Json:
    """One bucket, or with its generation one that was deleted softly."""
    if call.flag("softDeleted"):
        soft_delete.purge(call.cloud)
        return bucket_json(call, soft_delete.find(call, call.param("bucket"), call.query("generation")))
    bucket = bucket_of(call)
    if call.query("generation") not in {"", bucket.get("generation")}:
        raise ApiError("NOT_FOUND", "The specified bucket does not exist.")
    check_preconditions(call.arguments, bucket, reads=True)
    check_etags(call.request.headers, bucket["etag"], reads=True)
    return bucket_json(call, bucket)


@api.route("PATCH", BUCKET, needs="storage.buckets.update", on=POLICY, query=OF_BUCKETS)
def patch(call: Call) -> Json:
    """Merge into a bucket; null removes."""
    return _change(call, replaces=False)


@api.route("PUT", BUCKET, needs="storage.buckets.update", on=POLICY, query=OF_BUCKETS)
def update(call: Call) -> Json:
    """Replace the settings of a bucket; those that the body leaves out are cleared."""
    return _change(call, replaces=True)


@api.route(
    "POST",
    BUCKET + "/lockRetentionPolicy",
    needs="storage.buckets.update",
    on=POLICY,
    query="ifMetagenerationMatch",
)
def lock_retention(call: Call) -> Json:
    """Lock the retention policy of a bucket for good."""
    with call.cloud.store.transaction():
        bucket = bucket_of(call)
        check_preconditions(call.arguments, bucket)
        if not bucket.get("retentionPolicy"):
            raise invalid("Bucket has no retention policy to lock.", ("retentionPolicy", "is not set"))
        changed = bucket | {"retentionPolicy": bucket["retentionPolicy"] | {"isLocked": True}}
        return _store(call, changed)


@api.route("DELETE", BUCKET, needs="storage.buckets.delete", on=POLICY, query=OF_BUCKETS)
def delete(call: Call) -> Response:
    """Delete an empty bucket."""
    bucket = bucket_of(call)
    check_preconditions(call.arguments, bucket)
    name = bucket["name"]
    check_etags(call.request.headers, bucket["etag"], reads=False)
    if any(call.cloud.store.rows(kind, f"{name}/", limit=1) for kind in (LIVE, NONCURRENT)):
        raise ApiError("ABORTED", "The bucket you tried to delete is not empty.")
    with call.cloud.store.transaction():
        soft_delete.keep(call.cloud, bucket)
        call.cloud.store.delete("bucket", name)
        call.cloud.store.delete_policy(POLICY.format(bucket=name))
        forget_object_policies(call.cloud.store, name)
    call.cloud.objects.forget_bucket(name, call.cloud.pace.now())
    return Response(status_code=204)


@api.route("GET", BUCKET + "/storageLayout", needs="storage.objects.list", on=POLICY, query="prefix")
def get_layout(call: Call) -> Json:
    """Where a bucket keeps its objects, and that it has no hierarchical namespace."""
    bucket = bucket_of(call)
    layout = {key: bucket[key] for key in ("location", "locationType", "customPlacementConfig") if key in bucket}
    return {"kind": "storage#storageLayout", "bucket": bucket["name"]} | layout


@api.route("GET", "/storage/v1/projects/{project:id}/serviceAccount", needs="resourcemanager.projects.get", on=_PROJECT)
def get_service_account(_: Call) -> Json:
    """The account that Cloud Storage itself acts as."""
    return {"kind": "storage#serviceAccount", "email_address": STORAGE_AGENT}


@api.route("GET", BUCKET + "/anywhereCaches", needs="storage.buckets.get", on=POLICY, query="pageSize pageToken")
@api.route("GET", BUCKET + "/anywhereCaches/", needs="storage.buckets.get", on=POLICY, query="pageSize pageToken")
def list_caches(call: Call) -> Json:
    """Anywhere caches: none."""
    bucket_of(call)
    return {"kind": "storage#anywhereCaches"} | call.page([], "items")


def _check_project(call: Call) -> None:
    if call.query("project") not in {PROJECT, PROJECT_NUMBER}:
        raise invalid("Unknown project id.", ("project", call.query("project")))


def _change(call: Call, *, replaces: bool) -> Json:
    _check_settings(call.body)
    settings = {key: value for key, value in call.body.items() if key not in _THEIRS | _FIXED}
    with call.cloud.store.transaction():
        bucket = bucket_of(call)
        check_preconditions(call.arguments, bucket)
        check_etags(call.request.headers, bucket["etag"], reads=False)
        kept = {key: bucket[key] for key in bucket if key in _THEIRS | _FIXED | _KEPT} if replaces else bucket
        changed = merge(kept, under_one_name(settings, bucket))
        _complete(changed, bucket, call.cloud.pace.now())
        _check_default_key(call, changed, bucket)
        heed_uniform_access(call.cloud.store, bucket, changed)
        return _store(call, changed)


def _store(call: Call, bucket: Json) -> Json:
    bucket["metageneration"] = str(int(bucket["metageneration"]) + 1)
    bucket["etag"], bucket["updated"] = b64(bucket["metageneration"].encode()), timestamp(call.cloud.pace.now())
    call.cloud.store.put("bucket", bucket["name"], bucket)
    return bucket_json(call, bucket)


def _check_default_key(call: Call, bucket: Json, before: Json) -> None:
    """Check a key of Cloud KMS that becomes a bucket's default.

    Raises:
        ApiError: It cannot be used.
    """
    if (key := default_of(bucket)) and key != default_of(before):
        check_key(call.cloud, key, str(bucket["location"]))


def _check_settings(body: Json) -> None:
    refuse_unserved(body, ("acl", "defaultObjectAcl"), "a bucket")
    if (body.get("hierarchicalNamespace") or {}).get("enabled"):
        raise unserved_error("a hierarchical namespace")
    name = body.get("storageClass")
    if name is not None and name not in CLASSES:
        raise invalid(f"Invalid storage class {name!r}: use one of {', '.join(CLASSES)}.", ("storageClass", name))
    period = int((body.get("retentionPolicy") or {}).get("retentionPeriod") or 1)
    if not 0 < period < _LONGEST_RETENTION:
        text = "Retention period must be greater than zero and less than 100 years."
        raise invalid(text, ("retentionPolicy.retentionPeriod", str(period)))


def _complete(bucket: Json, before: Json, now: float) -> None:
    """Add what the platform derives from the settings.

    Raises:
        ApiError: 403 for a shorter retention period than a locked one, 400 for an end of locked uniform access.
    """
    bucket["iamConfiguration"] = with_lock(bucket, before, now)
    old, new = (version.get("retentionPolicy") or {} for version in (before, bucket))
    shorter = int(new.get("retentionPeriod") or 0) < int(old.get("retentionPeriod") or 0)
    if old.get("isLocked") and shorter:
        text = f"Cannot reduce retention duration of a locked Retention Policy for bucket '{bucket['name']}'."
        raise ApiError("PERMISSION_DENIED", text, reason="retentionPolicyLocked")
    if new:
        fixed = {key: old[key] for key in ("effectiveTime", "isLocked") if old.get(key)}
        period = {"retentionPeriod": new["retentionPeriod"]} if "retentionPeriod" in new else {}
        bucket["retentionPolicy"] = {"effectiveTime": timestamp(now)} | fixed | period
