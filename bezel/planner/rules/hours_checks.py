"""Checks of a lease's hours: times that occur, in turn, and long enough for what Cloud Scheduler and Google need.

Cloud Scheduler sends a request again while it is refused (components/bezel_components/lease_hours.py): a start while
the last lease is still being deleted, an end while the machine is still being provisioned. So hours, and the time
between them, are longer than the last of these attempts; else one could come after the next change, and undo it. They
are also longer than any start (bezel.planner.rules.startup: half an hour).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from bezel.planner.base.hours import Window, spans
from bezel.planner.base.problems import setting
from bezel.planner.rules.cron_checks import check_times
from bezel_base.errors import Problem
from bezel_catalog.quantities import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.planner.base.settings import LeaseSettings

MIN_SPAN = timedelta(minutes=45)
"""Shortest hours, and shortest time between them: five attempts take 35 minutes (bezel_components.lease_hours)."""


def windows_of(lease: LeaseSettings) -> tuple[Window, ...]:
    """The hours as windows."""
    return tuple(Window(each.start, each.end, each.time_zone) for each in lease.hours)


def check_hours(lease: LeaseSettings) -> Iterator[Problem]:
    """Check the list `lease.hours` by itself and with the other terms."""
    if not lease.hours:
        return
    key = setting("lease.hours")
    problems = [
        problem
        for number, each in enumerate(lease.hours)
        for problem in check_times(f"{key}.{number}", each.time_zone, {"start": each.start, "end": each.end})
    ]
    yield from problems
    if not problems:
        yield from _durations(lease, key)
    if len(lease.zones) > 1:
        yield Problem(
            setting("lease.zones"),
            ", ".join(preference.zone for preference in lease.zones),
            f"with {key} Cloud Scheduler requests the leases: it cannot see whether another zone has granted one, and "
            "would lease twice.",
            "keep one zone; `bezel tpu find` shows where there is capacity.",
        )
    if lease.renew:
        repair = "remove renew, or the hours."
        yield Problem(setting("lease.renew"), "true", f"{key} already says when another lease is requested.", repair)


def _durations(lease: LeaseSettings, key: str) -> Iterator[Problem]:
    lengths = spans(windows_of(lease))
    if not lengths.in_turn or not lengths.inside:
        yield Problem(
            key,
            "; ".join(f"{each.start} to {each.end}" for each in lease.hours),
            "starts and ends do not follow each other: an end of one entry would return the leases of another, or a "
            "start would find them leased already.",
            "write an end after each start, and entries that do not overlap.",
        )
        return
    for name, durations, reason in (
        ("hours", lengths.inside, "a start that is repeated could lease a machine after the end."),
        ("time between hours", lengths.between, "an end that is repeated could return the next lease."),
    ):
        if durations and min(durations) < MIN_SPAN:
            yield Problem(key, f"{name}: {_text(min(durations))}", reason, f"make it {_text(MIN_SPAN)} or longer.")
    longest = max(lengths.inside)
    if longest.total_seconds() > lease.duration:
        yield Problem(
            setting("lease.duration"),
            duration_text(lease.duration),
            f"{key} last up to {_text(longest)}: the platform would end the lease before them.",
            f"set it to {_text(longest)} or more, at most 7d.",
        )


def _text(span: timedelta) -> str:
    return duration_text(round(span.total_seconds()))
