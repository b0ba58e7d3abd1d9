"""Checks of a schedule of instances: times that occur, numbers that can be, and no entry without an effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.problems import setting
from bezel.planner.base.repairs import to_number
from bezel.planner.base.schedule import Entry, together
from bezel.planner.rules.cron_checks import check_times
from bezel_base.cron import parse_cron
from bezel_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bezel.planner.base.settings import Scaling

_MOST_OCCURRENCES = 96  # a day: what is set more often has no time to start an instance


def entries_of(scaling: Scaling) -> tuple[Entry, ...]:
    """The schedule as entries."""
    return tuple(Entry(each.cron, each.time_zone, each.min_instances) for each in scaling.schedule)


def check_schedule(scaling: Scaling) -> Iterator[Problem]:
    """Check the section `scaling.schedule`."""
    problems = list(_check_entries(scaling))
    yield from problems
    if not problems:
        yield from _check_simultaneous(entries_of(scaling))
    minima = [each.min_instances for each in scaling.schedule]
    if minima and max(minima) <= scaling.min_instances:
        yield Problem(
            setting("scaling.schedule"),
            f"at most {max(minima)}",
            f"{setting('scaling.min_instances')}={scaling.min_instances} runs at all times, so it has no effect.",
            "lower min_instances to what runs at all times, or remove the schedule.",
        )
    elif minima and min(minima) == max(minima):
        yield Problem(
            setting("scaling.schedule"),
            f"always {minima[0]}",
            "no entry lowers the minimum again, so it would cost the same as one that always runs.",
            f"add an entry with {{min_instances: {scaling.min_instances}}}, or set scaling.min_instances.",
        )


def _check_entries(scaling: Scaling) -> Iterator[Problem]:
    """Check each entry by itself."""
    for number, each in enumerate(scaling.schedule):
        key = setting(f"scaling.schedule.{number}")
        problems = list(check_times(key, each.time_zone, {"cron": each.cron}))
        yield from problems
        if not any(problem.key == f"{key}.cron" for problem in problems) and _occurs_too_often(each.cron):
            consequence = "it occurs more often than an instance can start."
            yield Problem(f"{key}.cron", each.cron, consequence, "write single hours and minutes.")
        if each.min_instances > scaling.max_instances:
            yield Problem(
                f"{key}.min_instances",
                each.min_instances,
                f"it is above max_instances={scaling.max_instances}; Cloud Run refuses it.",
                f"set it to {scaling.max_instances} or less, or "
                f"{to_number('raise', 'scaling.max_instances', each.min_instances)}.",
            )


def _occurs_too_often(cron: str) -> bool:
    fields = parse_cron(cron)
    return len(fields.minutes) * len(fields.hours) > _MOST_OCCURRENCES


def _check_simultaneous(entries: Sequence[Entry]) -> Iterator[Problem]:
    """Refuse entries that set different minima at one time: each is a job of its own, and either may be the last."""
    for number, each in enumerate(entries):
        for earlier, other in enumerate(entries[:number]):
            at = together(other, each) if other.minimum != each.minimum else None
            if at is not None:
                yield Problem(
                    setting(f"scaling.schedule.{number}"),
                    each.cron,
                    f"it occurs together with entry {earlier}, {other.cron}, e.g. at {at:%Y-%m-%d %H:%M} UTC, and sets "
                    "another minimum: which of the two holds afterwards is not defined.",
                    "move one of them by some minutes, or leave those days out of one.",
                )
                break
