"""Comparison of servers: the same prompts to each, in turns, and the differences beyond chance.

Owns the order of the runs and the arithmetic of differences. Leaves out how an arm is reached or started, and how a
load is measured (`Measure`, which gets the arm's name in `CellWanted.variant`).

The unit is a round: every arm once, with the same prompts. Requests of one run wait for each other and are not
independent draws; rounds are. A difference is one of logarithms within a round, its interval Student's over the
rounds, and as several figures of several arms are compared, each interval is widened for all of them together
(Bonferroni).
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from bezel.bench.metrics.statistics import t_quantile
from bezel.bench.result.document import Cell, Finding
from bezel.bench.sweep.cell_request import CellWanted
from bezel.bench.sweep.journal import Taken
from bezel.bench.sweep.run_once import INTERRUPTED, LostError, Once
from bezel.errors import UserError

FIGURES = ("output_tokens_per_second", "tpot_p50", "ttft_p50", "e2e_p50")
CONFIDENCE = 0.95
ROUNDS = 6
LEAST_ROUNDS = 3
LEAST_OUTPUT = 128


@dataclass(frozen=True)
class Comparison:
    """Plan of a comparison.

    Attributes:
        arms: Names; the others are compared with the first.
        wanted: The load of every run.
        rounds: The number of measurements of each arm.
    """

    arms: tuple[str, ...]
    wanted: CellWanted
    rounds: int = ROUNDS


@dataclass(frozen=True)
class Compared:
    """Outcome of a comparison.

    Attributes:
        cells: The measured cells.
        again: The ids of cells that were begun more than once.
        ended: The reason for an end before the last round; "" after it.
    """

    cells: list[Cell]
    again: list[str]
    ended: str = ""

    @property
    def notes(self) -> list[str]:
        """Return notes on the comparison's course for the reader."""
        notes = [f"The comparison ended early: {self.ended}."] if self.ended else []
        if self.again:
            notes.append(
                "Begun again, as the first attempt gave nothing, and with other prompts than the rest of the round: "
                f"{', '.join(self.again)}. Chance orders the arms, so that this widens an interval and moves none."
            )
        return notes


@dataclass(frozen=True)
class Difference:
    """Difference of one figure between an arm and the first one, as a share of the first one's.

    Attributes:
        change: 0.05 is 5 % more; None where it could not be measured.
        low: Lower end of the interval of all comparisons together, with `high` the upper.
        rounds: The rounds in which both arms have the figure.
    """

    arm: str
    figure: str
    change: float | None
    low: float | None
    high: float | None
    rounds: int

    @property
    def shown(self) -> bool:
        """Whether the arms differ beyond chance."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def checked(plan: Comparison) -> Comparison:
    """Return the plan, if it can detect a difference.

    Raises:
        UserError: It cannot; the text gives all reasons.
    """
    wrong = []
    if plan.wanted.output_tokens < LEAST_OUTPUT:
        wrong.append(
            f"answers of {plan.wanted.output_tokens} tokens: what differs between servers (drafts accepted, time for a "
            f"token) shows while tokens are generated, and one-token answers use no draft at all. Take {LEAST_OUTPUT} "
            "or more"
        )
    if len(plan.arms) < 2 or len(set(plan.arms)) < len(plan.arms):
        wrong.append(f"arms {', '.join(plan.arms) or '(none)'}: a comparison needs two or more, each once")
    if plan.rounds < LEAST_ROUNDS:
        wrong.append(f"{plan.rounds} rounds: chance cannot be told from {plan.rounds}. Take {LEAST_ROUNDS} or more")
    if wrong:
        raise UserError("nothing was measured:\n   " + "\n   ".join(wrong))
    return plan


def compare(plan: Comparison, once: Once, show: Callable[[str], None]) -> Compared:
    """Measure every arm once a round, in a random order for each round.

    The order follows from the seed alone: a comparison resumed after a kill has the same one. All arms of a round
    get the same prompts, except one that was begun before: its server may hold some of them in its cache.

    Args:
        plan: A checked plan.
        once: Measures loads on the arm that their `variant` names, and stores earlier measurements.
        show: Receives the load to be measured.
    """
    chances = random.Random(plan.wanted.seed)  # noqa: S311 - an order
    known = once.answered
    taken: list[Taken] = []
    ended = ""
    for turn, arm in ((turn, arm) for turn in range(plan.rounds) for arm in chances.sample(plan.arms, len(plan.arms))):
        wanted = replace(plan.wanted, variant=arm, repeat=turn, run=str(turn))
        one = known.get(wanted.id)
        if one is None:
            show(f"round {turn + 1} of {plan.rounds}, {arm}")
            estimate = _estimate(taken, arm)
            if why := once.keeps_out(estimate):
                ended = f"the limits allow no further turn: {arm} takes {why}"
                break
            try:
                one = once.measure(wanted, estimate)
            except (KeyboardInterrupt, LostError) as error:
                ended = str(error) or INTERRUPTED
                break
            if one.cut:
                ended = f"{one.cell.id} was cut off: the limit of {once.limits.told()} is reached"
                break
        taken.append(one)
    cells = [one.cell for one in taken]
    return Compared(cells, [cell.id for cell in cells if once.ledger.begun[cell.id] > 1], ended)


def _estimate(taken: Sequence[Taken], arm: str) -> float | None:
    """Return the most seconds that an arm's turn takes, from its own earlier ones, else from all; None before any."""
    own = [one.seconds for one in taken if one.cell.variant == arm]
    return max(own or [one.seconds for one in taken], default=None)


def differences(plan: Comparison, cells: Sequence[Cell], figures: Sequence[str] = FIGURES) -> list[Difference]:
    """Return the differences by figure and arm, over the rounds in which both arms are ok."""
    by_arm = {
        arm: {cell.repeat: cell for cell in cells if cell.variant == arm and cell.state == "ok"} for arm in plan.arms
    }
    comparisons = len(figures) * (len(plan.arms) - 1)
    share = 1 - (1 - CONFIDENCE) / 2 / comparisons
    first, *others = plan.arms
    found = []
    for figure in figures:
        for arm in others:
            changes = [
                math.log(theirs / ours)
                for turn in sorted(by_arm[first].keys() & by_arm[arm].keys())
                if (ours := by_arm[first][turn].value(figure)) and (theirs := by_arm[arm][turn].value(figure))
            ]
            if len(changes) < LEAST_ROUNDS:
                found.append(Difference(arm, figure, None, None, None, len(changes)))
                continue
            middle = fmean(changes)
            half = t_quantile(share, len(changes) - 1) * stdev(changes) / math.sqrt(len(changes))
            low, high = math.expm1(middle - half), math.expm1(middle + half)
            found.append(Difference(arm, figure, math.expm1(middle), low, high, len(changes)))
    return found


def conclude(plan: Comparison, cells: Sequence[Cell]) -> list[Finding]:
    """Return a comparison's findings for the reader: differences, then the acceptance of drafts."""
    ids = {arm: [cell.id for cell in cells if cell.variant == arm and cell.state == "ok"] for arm in plan.arms}
    findings = [
        Finding(
            name="difference" if one.shown else "no_difference_shown",
            text=_told(plan.arms[0], one),
            numbers={
                "arm": one.arm,
                "compared_with": plan.arms[0],
                "figure": one.figure,
                "change": one.change,
                "low": one.low,
                "high": one.high,
                "rounds": one.rounds,
                "confidence": CONFIDENCE,
            },
            cells=[*ids[plan.arms[0]], *ids[one.arm]],
        )
        for one in differences(plan, cells)
    ]
    for arm in plan.arms:
        accepted = [cell.acceptance for cell in cells if cell.variant == arm and cell.acceptance]
        if not accepted:
            continue
        shares = [fmean(shares) for shares in zip(*accepted, strict=False)]
        told = ", ".join(f"{share:.0%}" for share in shares)
        numbers: dict[str, int | float | str | None] = {"arm": arm}
        numbers |= {f"position_{place}": share for place, share in enumerate(shares, 1)}
        text = f"{arm}: of its drafts the tokens at positions 1, 2, ... were accepted in {told}."
        findings.append(Finding(name="acceptance", text=text, numbers=numbers, cells=ids[arm]))
    return findings


def _told(first: str, one: Difference) -> str:
    if one.change is None or one.low is None or one.high is None:
        return f"{one.figure}, {one.arm} against {first}: {one.rounds} rounds with both figures are too few to compare."
    span = f"{one.low:+.1%} to {one.high:+.1%} over {one.rounds} rounds"
    if one.shown:
        return f"{one.figure}: {one.arm} has {one.change:+.1%} against {first} ({span})."
    return f"{one.figure}, {one.arm} against {first}: no difference shown ({span}; a smaller one may exist)."
