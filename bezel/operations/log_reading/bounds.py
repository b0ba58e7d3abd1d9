"""Bounds of a log: the begin as an age or a time, pages of older lines, and times in Logging's form. Pure."""

import re
from datetime import UTC, datetime

from bezel_base.errors import Problem, WrongValueError

_DURATION = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_PAGE = re.compile(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00))#(?P<shown>\d{1,5})")


class LogsError(WrongValueError):
    """A log cannot be chosen as asked."""


def since(text: str, now: float) -> str:
    """The begin of a log as RFC 3339, from an age or a time.

    Raises:
        LogsError: It is neither.
    """
    if match := _DURATION.fullmatch(text):
        return rfc3339(max(0.0, now - int(match[1]) * _UNITS[match[2]]))
    try:
        moment = datetime.fromisoformat(text)
        return rfc3339((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        repair = "give an age such as 10m, 2h or 3d, or a time such as 2026-11-01T00:00:00Z."
        raise LogsError(Problem("--since", text, "expected an age or a time.", repair)) from None


def page(text: str | None) -> tuple[str, int]:
    """The instant at which a page begins, and the number of its entries that were shown; ("", 0) for the first.

    Raises:
        LogsError: It is no page.
    """
    if text is None:
        return "", 0
    match = _PAGE.fullmatch(text)
    if match is None:
        repair = "take `older` of an earlier result, such as 2026-11-01T00:00:00Z#1."
        raise LogsError(Problem("--page", text, "expected a page of an earlier result.", repair))
    return match["time"], int(match["shown"])


def page_after(instant: str, shown: int) -> str | None:
    """The page that continues after some entries of an instant; None where the source has no times."""
    text = f"{instant}#{shown}"
    return text if _PAGE.fullmatch(text) else None


def rfc3339(moment: float) -> str:
    """A moment in Unix seconds as Logging writes it."""
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
