"""Expiry of a stack: the label `expires-at` holds the last day, in UTC, on which it is needed, or `never`. Pure."""

from __future__ import annotations

from datetime import date

EXPIRY = "expires-at"
NEVER = "never"


def last_day(text: str) -> date | None:
    """The last day of an `expires-at`; None for `never`.

    Raises:
        ValueError: It is neither a date nor `never`.
    """
    return None if text == NEVER else date.fromisoformat(text)


def has_expired(text: str, today: date) -> bool:
    """Whether the last day of an `expires-at` is over on a day in UTC: it is not over on that day itself.

    Raises:
        ValueError: It is neither a date nor `never`.
    """
    day = last_day(text)
    return day is not None and day < today
