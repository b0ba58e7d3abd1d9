"""Cost of a lease so far and at its end; an unknown price is unknown, never 0. Pure."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from bezel.leases.clock import rfc3339
from bezel.planner.base.money import round_usd

UNKNOWN = "unknown"


def cost_of(
    hourly_usd: float | None,
    *,
    active_at: float | None,
    ends_at: float | None,
    run_seconds: float | None,
    now: float,
) -> dict[str, Any]:
    """Cost of a lease's accelerators, in USD.

    Args:
        hourly_usd: Price of an hour in its zone; None without a price row.
        active_at: Start of billing, unix seconds.
        ends_at: End of its run duration.
        run_seconds: Its run duration; None without an end.
        now: The time of the calculation.
    """
    so_far: float | str = UNKNOWN
    at_end: float | str = UNKNOWN
    if hourly_usd is not None:
        until = now if ends_at is None else min(now, ends_at)
        so_far = 0.0 if active_at is None else _cents(hourly_usd, max(0.0, until - active_at))
        if run_seconds is not None:
            at_end = _cents(hourly_usd, run_seconds)
    return {
        "usd_per_hour": UNKNOWN if hourly_usd is None else hourly_usd,
        "so_far_usd": so_far,
        "at_end_usd": at_end,
        "as_of": rfc3339(now),
    }


def _cents(hourly_usd: float, seconds: float) -> float:
    return float(round_usd(Decimal(repr(hourly_usd)) * Decimal(repr(seconds)) / 3600, 2))
