"""Times in the claims of a token: NumericDates of RFC 7519, which are numbers of seconds since the epoch."""

from typing import TypeGuard

LATEST = 253_402_300_799
"""The end of the year 9999."""


def is_time(value: object) -> TypeGuard[int | float]:
    """Whether a claim is a time: no truth value, no text, no NaN, not infinite, not before 1970, not after 9999."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= LATEST  # false of NaN
