"""Protection of objects against deletion: a bucket's retention policy, an object's own retention, and holds. Pure."""

from datetime import UTC, datetime

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json, timestamp


def expiration(bucket: Json, row: Json) -> str:
    """The time from which an object may be deleted by its bucket's retention policy, "" for none or an unknown one."""
    period = int((bucket.get("retentionPolicy") or {}).get("retentionPeriod") or 0)
    if not period or row.get("eventBasedHold"):
        return ""
    return timestamp(seconds(row.get("_released") or row["timeCreated"]) + period)


def check_unprotected(bucket: Json, row: Json | None, now: float) -> None:
    """Check that an object may be deleted or overwritten.

    Raises:
        ApiError: 403, it is held or retained.
    """
    if row is None:
        return
    name = f"Object '{row['bucket']}/{row['name']}' is"
    for field, hold in (("temporaryHold", "Temporary"), ("eventBasedHold", "Event-Based")):
        if row.get(field):
            text = (
                f"{name} under active {hold} hold and cannot be deleted, overwritten or archived until hold is removed."
            )
            raise ApiError("PERMISSION_DENIED", text, reason="objectUnderActiveHold")
    times = [expiration(bucket, row), str((row.get("retention") or {}).get("retainUntilTime") or "")]
    until = max((time for time in times if time), key=seconds, default="")
    if until and seconds(until) > now:
        text = f"{name} subject to bucket's retention policy or object retention and cannot be deleted or overwritten"
        raise ApiError("PERMISSION_DENIED", f"{text} until {until}", reason="retentionPolicyNotMet")


def check_retention(bucket: Json, old: Json, new: Json, now: float, *, override: bool) -> None:
    """Check a change of an object's own retention; to shorten an unlocked one takes `overrideUnlockedRetention`.

    Raises:
        ApiError: INVALID_ARGUMENT, or 403 for a change that its mode does not allow.
    """
    before, after = old.get("retention") or {}, new.get("retention") or {}
    if before == after:
        return
    if not bucket.get("objectRetention"):
        raise invalid("Object retention is not enabled for the bucket.", ("retention", "is not enabled"))
    if after:
        if after.get("mode") not in {"Locked", "Unlocked"} or not after.get("retainUntilTime"):
            raise invalid("Retention needs a mode, Locked or Unlocked, and a retainUntilTime.", ("retention", "mode"))
        if seconds(after["retainUntilTime"]) <= now:
            raise invalid("retainUntilTime must be in the future.", ("retention.retainUntilTime", "is in the past"))
    shorter = not after or (before and seconds(after["retainUntilTime"]) < seconds(before["retainUntilTime"]))
    locked = before.get("mode") == "Locked"
    weaker = shorter or (locked and after.get("mode") != "Locked")
    if before and weaker and seconds(before["retainUntilTime"]) > now and (locked or not override):
        text = f"Object '{old['bucket']}/{old['name']}' has a retention that the request would shorten or remove"
        repair = "it is locked." if locked else "set overrideUnlockedRetention=true."
        raise ApiError("PERMISSION_DENIED", f"{text}: {repair}", reason="forbidden")


def seconds(time: str) -> float:
    """Unix seconds of a timestamp."""
    moment = datetime.fromisoformat(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
