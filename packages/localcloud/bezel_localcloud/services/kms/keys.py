"""Keys of Cloud KMS as rows: their versions, what time does to them, and their key material.

Time is heeded when a key is used or shown: a version that is scheduled for destruction is destroyed for good, and a key
whose rotation is due gets a new primary version (one, however long localcloud was off).
"""

import os
from datetime import UTC, datetime

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.routing.context import Context

RING, KEY, VERSION = "keyRing", "cryptoKey", "cryptoKeyVersion"
"""Kinds of rows."""
ALGORITHM = "GOOGLE_SYMMETRIC_ENCRYPTION"
_DAY, _LONGEST_ROTATION, _LONGEST_DESTRUCTION = 86_400.0, 876_000 * 3600.0, 120 * 86_400.0
_MATERIAL, _FINGERPRINT = 32, 35  # bytes


def find_key(cloud: Context, name: str) -> Json:
    """Return a key as the API shows it.

    Raises:
        ApiError: NOT_FOUND.
    """
    row = current(cloud, name)
    return public_fields(row) | primary_of(cloud, row)


def current(cloud: Context, name: str) -> Json:
    """Return the row of a key after what was due.

    Raises:
        ApiError: NOT_FOUND.
    """
    with cloud.store.transaction():
        row = cloud.store.get(KEY, name)
        if row is None:
            raise ApiError("NOT_FOUND", f"CryptoKey {name} not found.")
        now = cloud.pace.now()
        for version_name, version in cloud.store.rows(VERSION, f"{name}/"):
            if version["state"] == "DESTROY_SCHEDULED" and seconds(version["destroyTime"]) <= now:
                destroyed = {key: value for key, value in version.items() if key != "destroyTime"}
                destroyed |= {"state": "DESTROYED", "destroyEventTime": version["destroyTime"]}
                cloud.store.put(VERSION, version_name, destroyed)
                cloud.store.put_payload(version_name, None)
        due, period = row.get("nextRotationTime"), duration(row.get("rotationPeriod") or "0s")
        if due and seconds(due) <= now:
            row["_primary"] = add_version(cloud, row)["name"]
            if period:
                row["nextRotationTime"] = timestamp(seconds(due) + period * ((now - seconds(due)) // period + 1))
            else:
                del row["nextRotationTime"]
            cloud.store.put(KEY, name, row)
        return row


def primary_of(cloud: Context, row: Json) -> Json:
    """The field of a key that shows its primary version."""
    version = cloud.store.get(VERSION, row.get("_primary", ""))
    return {"primary": public_fields(version)} if version else {}


def find_version(cloud: Context, key: str, number: str) -> Json:
    """Return the row of a version.

    Raises:
        ApiError: NOT_FOUND.
    """
    current(cloud, key)
    name = f"{key}/cryptoKeyVersions/{number}"
    row = cloud.store.get(VERSION, name)
    if row is None:
        raise ApiError("NOT_FOUND", f"CryptoKeyVersion {name} not found.")
    return row


def versions_of(cloud: Context, key: str) -> list[Json]:
    """The rows of all versions of a key, in the order of their numbers."""
    rows = [row for _, row in cloud.store.rows(VERSION, f"{key}/cryptoKeyVersions/")]
    return sorted(rows, key=lambda row: int(row["name"].rpartition("/")[2]))


def add_version(cloud: Context, key: Json, state: str = "ENABLED") -> Json:
    """Store a new version of a key, with random key material, and return its row."""
    name, now = key["name"], timestamp(cloud.pace.now())
    numbers = [int(row["name"].rpartition("/")[2]) for row in versions_of(cloud, name)]
    version = {
        "name": f"{name}/cryptoKeyVersions/{max(numbers, default=0) + 1}",
        "state": state,
        "createTime": now,
        "generateTime": now,
        "protectionLevel": "SOFTWARE",
        "algorithm": ALGORITHM,
        "_fingerprint": os.urandom(_FINGERPRINT).hex(),
    }
    cloud.store.put(VERSION, version["name"], version)
    cloud.store.put_payload(version["name"], os.urandom(_MATERIAL))
    return version


def check_enabled(version: Json) -> None:
    """Check that a version can be used.

    Raises:
        ApiError: FAILED_PRECONDITION.
    """
    if version["state"] != "ENABLED":
        text = f"{version['name']} is not enabled, current state is: {version['state']}."
        violation = {"type": "KEY_NOT_ENABLED", "subject": version["name"], "description": text}
        detail = {"@type": "type.googleapis.com/google.rpc.PreconditionFailure", "violations": [violation]}
        raise ApiError("FAILED_PRECONDITION", text, [detail])


def check_durations(fields: Json, now: float) -> None:
    """Check the rotation and the time of destruction that a caller sets.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    period, due = fields.get("rotationPeriod"), fields.get("nextRotationTime")
    if period and not _DAY <= duration(period) <= _LONGEST_ROTATION:
        text = "The rotation period must be at least 24 hours and at most 876,000 hours."
        raise invalid(text, ("crypto_key.rotation_period", period))
    if period and not due:
        text = "If rotation_period is set, next_rotation_time must also be set."
        raise invalid(text, ("crypto_key.next_rotation_time", "is required"))
    if due and seconds(due) <= now:
        raise invalid("next_rotation_time must be in the future.", ("crypto_key.next_rotation_time", due))
    kept = fields.get("destroyScheduledDuration")
    if kept and not _DAY <= duration(kept) <= _LONGEST_DESTRUCTION:
        text = "The destroy scheduled duration must be at least 24 hours and at most 120 days."
        raise invalid(text, ("crypto_key.destroy_scheduled_duration", kept))


def public_fields(row: Json) -> Json:
    """A row without what only localcloud needs."""
    return {key: value for key, value in row.items() if not key.startswith("_")}


def duration(text: str) -> float:
    """Seconds of a duration such as "86400s", whose form the router has checked."""
    return float(text.removesuffix("s"))


def seconds(time: str) -> float:
    """Unix seconds of a timestamp."""
    moment = datetime.fromisoformat(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
