"""Words for a key: its limits, its state, and whose it is. Pure."""

from datetime import datetime

from bezel_door.key_file import Key

NO_TEAM = "(no team)"


def limits_text(key: Key) -> str:
    """What a key may do, in words."""
    limits = (
        (key.requests_per_minute, "requests/min"),
        (key.tokens_per_minute, "tokens/min"),
        (key.tokens_per_day, "tokens/day"),
    )
    parts = [f"{number:,} {what}" for number, what in limits if number is not None]
    parts += [f"{', '.join(key.models)} alone"] if key.models else []
    return ", ".join(parts) or "without limits"


def state_text(key: Key, now: datetime) -> str:
    """Whether a key is admitted, and until when."""
    if key.revoked is not None and key.revoked <= now:
        return f"revoked {key.revoked:%Y-%m-%d}"
    if key.expires is None:
        return "active"
    word = "expired" if key.expires <= now else "active until"
    return f"{word} {key.expires:%Y-%m-%d %H:%M}"


def is_admitted(key: Key, now: datetime) -> bool:
    """Whether the door admits a key at a time."""
    return all(end is None or end > now for end in (key.expires, key.revoked))


def team_of(key: Key | None) -> str:
    """Whose a key is; a key that is not listed any more has no team."""
    return (key.team if key else "") or NO_TEAM
