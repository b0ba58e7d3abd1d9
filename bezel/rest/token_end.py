"""End of a JSON Web Token, read from it without verification: its own server minted it a moment ago."""

import base64
import json

_LATEST = 253_402_300_799
"""The end of the year 9999, in seconds since the epoch."""


def end_of(token: str) -> float | None:
    """Return the `exp` claim of a token, in seconds since the epoch; None where it states no time.

    A NumericDate of RFC 7519 is a number; a text, a truth value, NaN and infinity are none, and would keep a token in
    use for ever.
    """
    try:
        part = token.split(".")[1]
        end = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["exp"]
    except (LookupError, ValueError, TypeError, RecursionError):
        return None
    is_number = isinstance(end, int | float) and not isinstance(end, bool)
    return float(end) if is_number and 0 < end <= _LATEST else None  # false of NaN
