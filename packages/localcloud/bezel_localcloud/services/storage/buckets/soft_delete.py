"""Soft-deleted buckets: kept with their policy and their soft-deleted objects until they are restored or purged.

Source: Cloud Storage's page on soft-deleted buckets. A bucket is kept for the time of its soft delete policy, and at
least as long as its objects. A new bucket may take its name meanwhile; then it cannot be restored.
"""

from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.files.objects import SOFT_DELETED
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.routing.context import Context
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import BUCKET, POLICY, api
from bezel_localcloud.services.storage.buckets.uniform_access import bucket_json
from bezel_localcloud.services.storage.objects.generations import next_generation
from bezel_localcloud.services.storage.objects.retention import seconds

_KIND = "softDeletedBucket"
_POLICY, _TIMES = "_policy", ("softDeleteTime", "hardDeleteTime")


@api.route("POST", BUCKET + "/restore", needs="storage.buckets.restore", on=POLICY, query="generation")
def restore(call: Call) -> Json:
    """Make a soft-deleted bucket live again; its objects stay soft-deleted and can be restored one by one."""
    store, name = call.cloud.store, call.param("bucket")
    purge(call.cloud)
    with store.transaction():
        row = find(call, name, call.query("generation"))
        call.check_absent("bucket", name, "A bucket with this name already exists.")
        for key, object_row in store.rows(SOFT_DELETED, _prefix(row)):
            store.delete(SOFT_DELETED, key)
            store.put(SOFT_DELETED, f"{name}/{key.removeprefix(_prefix(row))}", object_row)
        bucket = {key: value for key, value in row.items() if key not in _TIMES and key != _POLICY}
        bucket["metageneration"] = str(int(bucket["metageneration"]) + 1)
        bucket["updated"] = timestamp(call.cloud.pace.now())
        store.delete(_KIND, _key(row))
        store.put("bucket", name, bucket)
        store.put_policy(POLICY.format(bucket=name), row[_POLICY])
        call.cloud.objects.bucket_folder(name).mkdir(exist_ok=True)
    return bucket_json(call, bucket)


def keep(cloud: Context, bucket: Json) -> bool:
    """Keep a bucket that is deleted, in the transaction of its deletion; return whether its policy asks for it."""
    period = int((bucket.get("softDeletePolicy") or {}).get("retentionDurationSeconds") or 0)
    purge(cloud)
    if not period:
        return False
    store, now, name = cloud.store, cloud.pace.now(), bucket["name"]
    times = {"softDeleteTime": timestamp(now), "hardDeleteTime": timestamp(now + period)}
    policy = store.policy(POLICY.format(bucket=name)) or {"version": 1, "etag": "ACAB"}
    row = {"generation": next_generation(cloud)} | bucket | times | {_POLICY: policy}
    for key, object_row in store.rows(SOFT_DELETED, f"{name}/"):
        store.delete(SOFT_DELETED, key)
        store.put(SOFT_DELETED, _prefix(row) + key.removeprefix(f"{name}/"), object_row)
        row["hardDeleteTime"] = max(row["hardDeleteTime"], object_row["hardDeleteTime"], key=seconds)
    store.put(_KIND, _key(row), row)
    return True


def find(call: Call, name: str, generation: str) -> Json:
    """Return a soft-deleted bucket.

    Raises:
        ApiError: INVALID_ARGUMENT without a generation, NOT_FOUND.
    """
    if not generation:
        raise invalid("A soft-deleted bucket is named by its generation.", ("generation", "is required"))
    return call.row_of(_KIND, f"{name}\n{generation}", "The specified bucket does not exist.")


def list_deleted(cloud: Context, prefix: str) -> list[tuple[str, Json]]:
    """The soft-deleted buckets by their names and generations."""
    purge(cloud)
    return cloud.store.rows(_KIND, prefix)


def purge(cloud: Context) -> None:
    """Delete the buckets whose time has come; their objects' times have come too."""
    store, now = cloud.store, cloud.pace.now()
    for key, row in store.rows(_KIND):
        if seconds(row["hardDeleteTime"]) <= now:
            store.delete(_KIND, key)


def _key(row: Json) -> str:
    return f"{row['name']}\n{row['generation']}"  # no bucket's name has a line break


def _prefix(row: Json) -> str:
    """Beginning of the keys of its objects."""
    return f"{_key(row)}/"
