"""Formatting of numbers and names for a reader. An unknown value is printed as "unknown". Pure."""

import math

UNKNOWN = "unknown"
# State of a cell -> words, and a mark where there is no room for a word.
_STATES = {
    "ok": ("ok", ""),
    "failed": ("failed", "x"),
    "infeasible": ("infeasible", "-"),
    "client_limited": ("limited by the client", "C"),
    "busy_machine": ("measured on a busy machine", "B"),
    "saturated": ("saturated: its queue grew", "S"),
    "queueing": ("queueing before the server", "Q"),
    "not_asked": ("not requested", "?"),
}
STATES = {state: label for state, (label, _) in _STATES.items()}
MARKS = {state: mark for state, (_, mark) in _STATES.items() if mark}


def number(value: float | None) -> str:
    """Format with three significant digits, all digits above 1000; "unknown" for None."""
    if value is None:
        return UNKNOWN
    size = abs(value)
    if size >= 99.95 or value == int(value):
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.995 else f"{value:.3g}"


def compact(value: float) -> str:
    """Format with at most four characters, for a cell or a tick: 940, 1.2k, 35k, 0.12."""
    size = abs(value)
    for limit, unit in ((999.5e6, "G"), (999.5e3, "M"), (999.5, "k")):
        if size >= limit:
            scaled = value / {"G": 1e9, "M": 1e6, "k": 1e3}[unit]
            return f"{scaled:.1f}".removesuffix(".0") + unit if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return f"{value:.0f}" if size >= 99.5 else f"{value:.2g}" if size < 0.995 else f"{value:.3g}"


def percent(share: float) -> str:
    """Format a share as per cent; one above 0 never reads as 0 %, one below 1 never as 100 %."""
    if share == 0 or share == 1:
        return f"{share:.0%}".replace("%", " %")
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{share * 100:.3g} %"


def span(low: float | None, high: float | None) -> str:
    """Format an interval's two ends; empty without an interval."""
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def shorten(text: str, limit: int) -> str:
    """Return `text`, or its beginning with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def rounded_up(value: float) -> float:
    """Return the next of 1, 2, 5 x 10^n that is not below a positive value."""
    base: float = 10.0 ** math.floor(math.log10(value))
    return next(base * step for step in (1.0, 2.0, 5.0, 10.0) if base * step >= value * (1 - 1e-9))
