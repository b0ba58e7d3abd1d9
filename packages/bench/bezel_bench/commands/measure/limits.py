"""Limits of time and money of sweeps, searches and comparisons, and of a figure: from the options, and as texts.

Owns the settings too that make the cells of such a command comparable. Leaves out what a limit ends
(`bezel_bench.sweep.measurement.budget`).
"""

import argparse
import math
from typing import Any

from bezel_base.errors import Problem, UserError
from bezel_bench.commands.measure.cell_runner import Variant
from bezel_bench.sweep.measurement.budget import Limits


def limits_of(options: argparse.Namespace, usd_per_hour: float | None) -> Limits:
    """The limits that the options set.

    Raises:
        UserError: One of them cannot be kept.
    """
    minutes, usd = options.max_minutes, options.max_usd
    for option, value in (("--max-minutes", minutes), ("--max-usd", usd)):
        if value is not None and not 0 < value < float("inf"):
            raise UserError(Problem(option, f"{value:g}", "nothing could be measured.", "give more than 0, or none."))
    if usd is not None and usd_per_hour is None and minutes is None:
        consequence = "the price of the server is unknown, so the limit cannot be kept."
        raise UserError(Problem("--max-usd", f"{usd:g}", consequence, "add --usd-per-hour or --max-minutes."))
    return Limits(seconds=None if minutes is None else minutes * 60, usd=usd, usd_per_hour=usd_per_hour)


def check_limits(options: argparse.Namespace, *, stacks: bool | None = None) -> None:
    """Refuse limits that cannot be kept, as far as this shows before the server's price is known.

    Args:
        options: The options.
        stacks: Whether a stack's plan may have the price; by default, whether the options name one.

    Raises:
        UserError: One of them cannot.
    """
    has_plan = bool(options.stack) if stacks is None else stacks
    limits_of(options, 0.0 if has_plan else options.usd_per_hour)


def amount(seconds: float, limits: Limits) -> str:
    """Format a time and its cost."""
    usd = limits.cost(seconds)
    return f"{seconds / 60:.1f} min" + ("" if usd is None else f" {usd:.2f} USD")


def amounts(seconds: float, limits: Limits) -> str:
    """Format the time and cost spent, and those left."""
    left = limits.seconds_left(seconds)
    ahead = "" if left is None else f"; at most {amount(max(0.0, left), limits)} left"
    return f"{amount(seconds, limits)}{ahead}"


def milliseconds_of(text: str) -> float:
    """The milliseconds of a time above 0: `500`, `500ms` or `0.5s`.

    Raises:
        ValueError: It is no such time.
    """
    number = text.removesuffix("ms")
    in_seconds = number == text and text.endswith("s")
    milliseconds = float(text[:-1]) * 1000 if in_seconds else float(number)
    if not 0 < milliseconds < math.inf:
        raise ValueError(text)
    return milliseconds


def settings_of(variant: Variant, options: argparse.Namespace) -> dict[str, Any]:
    """Settings of the server and of the requests that make cells comparable."""
    target, served = variant.reached.target, variant.server.manifest.served_by
    return {
        "url": target.url,
        "model": target.model,
        "endpoint": target.endpoint,
        "vllm_version": served.vllm_version,
        "max_model_len": variant.server.max_model_len,
        "kv_cache_tokens": variant.server.kv_cache_tokens,
        "deadline": options.deadline,
        "workers": options.workers,
    }
