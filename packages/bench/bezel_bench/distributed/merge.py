"""Merge of many machines' parts into one load, with their instants on one clock. Pure.

CLOCK_MONOTONIC begins anew on each machine, so every part is shifted by way of CLOCK_REALTIME, which the machines of a
platform synchronise. The accuracy is measured: each task reported a third clock (that of the storage of the
parts), so between any two tasks there is a widest possible disagreement, which is reported with the start. The merge
refuses a missing or incomplete part.
"""

import itertools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bezel_base.errors import UserError
from bezel_base.text.counting import format_count
from bezel_bench.client.workers import merge_measured
from bezel_bench.distributed.protocol import ClockOffset, Part
from bezel_bench.result.sample import INSTANTS, Measured

MAX_CLOCK_ERROR_NS: Final = 100_000_000
"""A clock that is certainly off by more (100 ms) would shift requests' times within the load, and the start."""


@dataclass(frozen=True)
class Skew:
    """Spread of the tasks' starts and clocks, in ns.

    Attributes:
        first_sends: Difference between the earliest and the latest task in the lateness of the first request.
        clocks: Widest possible disagreement of two tasks' clocks.
        drift: The largest correction of a clock during the load.
    """

    first_sends: int
    clocks: int
    drift: int

    def __str__(self) -> str:
        return (
            f"first requests {self.first_sends / 1e6:.2f} ms apart, clocks at most {self.clocks / 1e6:.0f} ms apart, "
            f"corrected by {self.drift / 1e6:.2f} ms meanwhile"
        )


@dataclass(frozen=True)
class Merged:
    """One load of many machines.

    Attributes:
        measured: The whole load, on the requested clock.
        by: The client that sent the first task's share, as it reported.
        notes: Notes for the reader, whole sentences.
    """

    measured: Measured
    skew: Skew
    by: dict[str, Any]
    notes: tuple[str, ...]


def merge(parts: Sequence[Part], tasks: int, realtime: int, monotonic: int) -> Merged:
    """Merge the parts of all tasks into one load. The parts' samples become those of the result.

    Args:
        parts: One a task, in any order.
        tasks: How many there should be.
        realtime: CLOCK_REALTIME (ns) of the machine whose clock the result is on,
        monotonic: and its CLOCK_MONOTONIC at the same moment.

    Raises:
        UserError: A part is missing or there twice, a request was sent twice, or a clock is off.
    """
    ordered = sorted(parts, key=lambda part: part.task)
    numbers = [part.task for part in ordered]
    if missing := sorted(set(range(tasks)) - set(numbers)):
        raise UserError(f"of {format_count(tasks, 'tasks')} {missing} have no part in the result: run it again.")
    if len(numbers) > tasks:
        raise UserError(f"a task has several parts in the result (parts of {numbers}): run it again.")
    for part in ordered:
        check_clock(part.task, part.clock)
    offset = realtime - monotonic
    measured = merge_measured([_shift(part, part.clock.realtime - part.clock.monotonic - offset) for part in ordered])
    for before, after in itertools.pairwise(measured.samples):
        if before.index == after.index:
            raise UserError(f"request {after.index} was sent by two tasks: their plans differ; run it again.")
    skew = _skew(ordered)
    notes = dict.fromkeys(note for part in ordered for note in part.notes)
    unlike = (
        [] if all(part.by == ordered[0].by for part in ordered) else ["The tasks ran on several kinds of machines."]
    )
    return Merged(
        measured, skew, ordered[0].by, (f"{format_count(tasks, 'tasks')} sent this load: {skew}.", *unlike, *notes)
    )


def check_clock(task: int, clock: ClockOffset) -> None:
    """Refuse a clock that is certainly off.

    Raises:
        UserError: The clock is off; the text gives the amount.
    """
    off = max(clock.low, -clock.high)
    if off > MAX_CLOCK_ERROR_NS:
        raise UserError(
            f"the clock of task {task} is at least {off / 1e6:.0f} ms off, so its requests cannot be ordered with the "
            "others: run it again, on other machines."
        )


def _shift(part: Part, shift: int) -> Measured:
    """Return a part's load with its instants shifted by `shift` ns; those not reached stay 0."""
    for sample in part.measured.samples:
        for name in INSTANTS:
            if at := getattr(sample, name):
                setattr(sample, name, at + shift)
        sample.chunks = array("q", [at + shift for at in sample.chunks])
    return replace(part.measured, began=part.measured.began + shift, ended=part.measured.ended + shift)


def _skew(parts: Sequence[Part]) -> Skew:
    sent = ([sample for sample in part.measured.samples if sample.sent] for part in parts)
    firsts = [min(samples, key=lambda sample: sample.planned) for samples in sent if samples]
    delays = [sample.sent - sample.planned for sample in firsts] or [0]
    clocks = [part.clock for part in parts]
    return Skew(
        max(delays) - min(delays),
        max(clock.high for clock in clocks) - min(clock.low for clock in clocks),
        max(abs(clock.drift) for clock in clocks),
    )
