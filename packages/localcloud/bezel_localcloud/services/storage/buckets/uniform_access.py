"""Access of a bucket by its policy alone: `uniformBucketLevelAccess`, or by its former name `bucketPolicyOnly`.

Google shows both names, with the same content, and `publicAccessPrevention` in every bucket; rows keep the newer name.
"""

from datetime import datetime

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.routing.router import Call

_NAME, _FORMER = "uniformBucketLevelAccess", "bucketPolicyOnly"
_PREVENTION = {"inherited", "enforced", "unspecified"}
_LOCK_SECONDS = 90 * 86_400.0  # after which it cannot be turned off; source: the page on uniform bucket-level access


def is_uniform(bucket: Json) -> bool:
    """Whether only the policy of a bucket counts, not those of its objects."""
    return bool((_of(bucket).get(_NAME) or {}).get("enabled"))


def under_one_name(settings: Json, before: Json) -> Json:
    """A caller's settings with uniform access under its newer name only.

    A client that has read a bucket, changed one name and sends both sends the other as it was, so the change counts.

    Args:
        settings: The settings.
        before: The bucket's row, {} for a new bucket.

    Raises:
        ApiError: INVALID_ARGUMENT for an unknown value of `publicAccessPrevention`.
    """
    configuration = settings.get("iamConfiguration")
    if not configuration:
        return settings
    prevention = configuration.get("publicAccessPrevention")
    if prevention is not None and prevention not in _PREVENTION:
        text = f"Invalid value for 'publicAccessPrevention': {prevention!r}. Use 'inherited' or 'enforced'."
        raise invalid(text, ("iamConfiguration.publicAccessPrevention", str(prevention)))
    asked = [bool(configuration[name]["enabled"]) for name in (_NAME, _FORMER) if "enabled" in _at(configuration, name)]
    rest = {key: value for key, value in configuration.items() if key not in {_NAME, _FORMER}}
    if asked:
        rest[_NAME] = {"enabled": next((value for value in asked if value != is_uniform(before)), asked[0])}
    elif configuration.get(_NAME, ()) is None:  # null: back to the default
        rest[_NAME] = None
    return settings | {"iamConfiguration": rest}


def with_lock(bucket: Json, before: Json, now: float) -> Json:
    """The `iamConfiguration` of a row: with the time at which uniform access becomes permanent.

    Raises:
        ApiError: INVALID_ARGUMENT where it was turned off after that time.
    """
    configuration, old = dict(_of(bucket)), _at(_of(before), _NAME)
    locked = old.get("lockedTime") or timestamp(now + _LOCK_SECONDS)
    if not is_uniform(bucket):
        if old.get("lockedTime") and datetime.fromisoformat(locked).timestamp() <= now:
            text = f"Uniform bucket-level access of bucket '{bucket['name']}' is locked since {locked}."
            raise ApiError("INVALID_ARGUMENT", text)
        configuration.pop(_NAME, None)
        return configuration
    return configuration | {_NAME: {"enabled": True, "lockedTime": locked}}


def bucket_json(call: Call, row: Json) -> Json:
    """JSON of a bucket: the whole `iamConfiguration`, and a link at the address that the client used."""
    configuration = _of(row)
    access = _at(configuration, _NAME) or {"enabled": False}
    prevention = configuration.get("publicAccessPrevention") or "inherited"
    shown = {
        _FORMER: access,
        _NAME: access,
        "publicAccessPrevention": "inherited" if prevention == "unspecified" else prevention,
    }
    return {key: value for key, value in row.items() if not key.startswith("_")} | {
        "iamConfiguration": configuration | shown,
        "selfLink": f"{call.base}/storage/v1/b/{row['name']}",
    }


def _of(bucket: Json) -> Json:
    return bucket.get("iamConfiguration") or {}


def _at(configuration: Json, name: str) -> Json:
    return configuration.get(name) or {}
