"""Expiration of secrets: the time that a caller sets as a timestamp or a duration, and the deletion at that time.

A secret whose time has come is deleted, with all its versions, before anyone reads it again. The time is the real
clock's, as all timestamps are.
"""

from datetime import datetime

from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json, seconds_of, timestamp
from bezel_localcloud.core.store import Store

FIELDS = frozenset({"expireTime", "ttl"})
_SOONEST = 60.0
_LATEST = 100 * 365.25 * 86_400


def expiration(body: Json, now: float) -> Json:
    """The `expireTime` that a body asks for; empty where it asks for none.

    Args:
        body: The caller's JSON.
        now: Unix seconds.

    Raises:
        ApiError: INVALID_ARGUMENT for both forms at once, or a time that is too near or too far.
    """
    fields = [field for field in sorted(FIELDS) if body.get(field)]
    if not fields:
        return {}
    if len(fields) > 1:
        text = "oneof field 'expiration' is already set. Cannot set 'ttl'."
        raise invalid(text, ("secret.ttl", "expireTime is set as well"))
    (field,) = fields
    moment = now + seconds_of(body[field], 0.0) if field == "ttl" else datetime.fromisoformat(body[field]).timestamp()
    if not _SOONEST <= moment - now <= _LATEST:
        text = "The expiration must be at least 60 seconds and at most 100 years from now."
        raise invalid(text, (f"secret.{'ttl' if field == 'ttl' else 'expire_time'}", str(body[field])))
    return {"expireTime": timestamp(moment)}


def delete_expired(store: Store, now: float) -> None:
    """Delete the secrets whose time has come."""
    expired = [name for name, secret in store.rows("secret") if _has_expired(secret, now)]
    if expired:
        with store.transaction():
            for name in expired:
                delete_secret(store, name)


def delete_secret(store: Store, name: str) -> None:
    """Delete a secret with all versions, within a transaction."""
    for version, _ in list(store.rows("secretVersion", f"{name}/versions/")):
        store.delete("secretVersion", version)
        store.put_payload(version, None)
    store.delete("secret", name)
    store.delete_policy(name)


def _has_expired(secret: Json, now: float) -> bool:
    moment = str(secret.get("expireTime") or "")
    return moment != "" and datetime.fromisoformat(moment).timestamp() <= now
