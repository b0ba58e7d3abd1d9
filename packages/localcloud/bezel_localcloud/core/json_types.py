"""JSON shapes that every Google API shares: objects, timestamps, durations, and the omission of zero values."""

import base64
import re
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

# Maps with values of the user: an empty string in them is not dropped.
_USER_MAPS = frozenset({"labels", "annotations", "limits", "nodeSelector"})
# Members of a oneof, of which protobuf knows whether they were set: their zero is a value.
_WITH_PRESENCE = frozenset({"maxRetries"})


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC with microseconds, as Google prints it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def whole_seconds(seconds: float) -> str:
    """RFC 3339 in UTC without fractions of a second, rounded down."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(duration: str | None, default: float) -> float:
    """Seconds of a protobuf JSON duration such as "3600s" or "1.5s".

    Raises:
        ValueError: If the text is not a duration.
    """
    if not duration:
        return default
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)s", duration)
    if match is None:
        msg = f"{duration!r} is not a duration such as '300s'"
        raise ValueError(msg)
    return float(match.group(1))


def without_zeros(message: Json) -> Json:
    """The message in protobuf's JSON form: false, 0, "", null and empty lists are absent, empty messages stay."""
    pruned = {key: item if key in _USER_MAPS else _prune(item) for key, item in message.items()}
    return {key: item for key, item in pruned.items() if item not in (None, 0, "", []) or key in _WITH_PRESENCE}


def _prune(value: Any) -> Any:
    if isinstance(value, dict):
        return without_zeros(value)
    return [_prune(item) for item in value] if isinstance(value, list) else value


def b64(data: bytes) -> str:
    """Standard base64 text of some bytes."""
    return base64.b64encode(data).decode()
