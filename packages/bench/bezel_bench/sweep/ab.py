"""Comparison of servers: the same prompts to each, in turns, and the differences beyond chance.

Owns the order of the runs and the arithmetic of differences. Leaves out how an arm is reached or started, and how a
load is measured (`Measure`, which gets the arm's name in `CellRequest.variant`).

The unit is a round: every arm once, with the same prompts. Requests of one run wait for each other and are not
independent draws; rounds are. A difference is one of logarithms within a round; its middle and interval are those of
the trimmed mean over the rounds, so that a few slow runs neither hide a difference nor show one. As several figures of
several arms are compared, each interval is widened for all of them together (Bonferroni).
"""

import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from statistics import fmean

from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.text.counting import format_count
from bezel_bench.metrics.statistics import of_trimmed
from bezel_bench.result.document import Cell, Finding, Numbers
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.measurement.journal import Taken
from bezel_bench.sweep.measurement.run_once import INTERRUPTED, LostError, Once
from bezel_bench.sweep.measurement.second_try import describe_unmeasured, is_disturbed

FIGURES = ("output_tokens_per_second", "tpot_p50", "ttft_p50", "e2e_p50")
CONFIDENCE = 0.95
ROUNDS = 10  # with fewer, one slow run in ten hides a difference of 10 % (docs/sweeps.md)
MIN_ROUNDS = 3
MIN_OUTPUT = 128


@dataclass(frozen=True)
class ComparisonPlan:
    """Plan of a comparison.

    Attributes:
        arms: Names; the others are compared with the first.
        request: The load of every run.
        rounds: The number of measurements of each arm.
    """

    arms: tuple[str, ...]
    request: CellRequest
    rounds: int = ROUNDS


@dataclass(frozen=True)
class ComparisonOutcome:
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
    def unmeasured_text(self) -> str:
        """Return the turns that the client or its machine disturbed, in words; "" where there are none."""
        return describe_unmeasured(self.cells)

    @property
    def notes(self) -> list[str]:
        """Return notes on the comparison's course for the reader."""
        notes = [f"The comparison ended early: {self.ended}."] if self.ended else []
        if self.unmeasured_text:
            notes.append(f"Not measured, and tried anew by the next run of the same command: {self.unmeasured_text}.")
        if self.again:
            notes.append(
                "Repeated after a first attempt without a result, with other prompts than the rest of the round: "
                f"{', '.join(self.again)}. The order of the arms is random, so this widens intervals and shifts none."
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
    def is_shown(self) -> bool:
        """Whether the arms differ beyond chance."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def check_comparison(plan: ComparisonPlan) -> ComparisonPlan:
    """Return the plan, if it can detect a difference.

    Raises:
        UserError: It cannot; it lists all reasons.
    """
    problems = []
    if plan.request.output_tokens < MIN_OUTPUT:
        consequence = (
            "servers differ while they generate tokens (accepted drafts, time for a token), and a one-token response "
            "uses no draft."
        )
        repair = f"request {MIN_OUTPUT} or more."
        problems.append(Problem("--output-tokens", plan.request.output_tokens, consequence, repair))
    if len(plan.arms) < 2 or len(set(plan.arms)) < len(plan.arms):
        repair = "name two or more arms, each once."
        problems.append(Problem("arms", ", ".join(plan.arms) or NOT_SET, "there is nothing to compare.", repair))
    if plan.rounds < MIN_ROUNDS:
        consequence = "so few rounds cannot separate a difference from chance."
        problems.append(Problem("--rounds", plan.rounds, consequence, f"choose {MIN_ROUNDS} or more."))
    if problems:
        raise UserError(*problems, title="Nothing was measured")
    return plan


def compare(plan: ComparisonPlan, once: Once, show: Callable[[str], None]) -> ComparisonOutcome:
    """Measure every arm once a round, in a random order for each round.

    The order follows from the seed alone: a comparison resumed after a kill has the same one. All arms of a round
    get the same prompts, except one that was begun before: its server may hold some of them in its cache. A turn that
    the client or its machine disturbed is repeated once.

    Args:
        plan: A checked plan.
        once: Measures loads on the arm that their `variant` names, and stores earlier measurements.
        show: Receives the load to be measured.
    """
    chances = random.Random(plan.request.seed)  # noqa: S311 - an order
    earlier = once.conclusive_runs
    taken: list[Taken] = []
    ended = ""
    disturbed: dict[str, Taken] = {}
    waiting = deque((turn, arm) for turn in range(plan.rounds) for arm in chances.sample(plan.arms, len(plan.arms)))
    while waiting:
        turn, arm = waiting.popleft()
        request = replace(plan.request, variant=arm, repeat=turn, run=str(turn))
        measured = earlier.get(request.id)
        if measured is None:
            show(f"round {turn + 1} of {plan.rounds}, {arm}")
            estimate = _estimate(taken, arm)
            if why := once.keeps_out(estimate):
                ended = f"the limits allow no further turn: {arm} needs {why}"
                break
            try:
                measured = once.measure(request, estimate)
            except (KeyboardInterrupt, LostError) as error:
                ended = str(error) or INTERRUPTED
                break
            if measured.cut:
                ended = f"{measured.cell.id} was cut off: the limit of {once.limits.describe()} is reached"
                break
        if is_disturbed(measured.cell) and request.id not in disturbed:
            # A second try, once the other arms of the round have had their turns.
            disturbed[request.id] = measured
            waiting.insert(sum(later == turn for later, _ in waiting), (turn, arm))
            continue
        taken.append(measured)
    again = {measured.cell.id for measured in taken}
    taken += [measured for name, measured in disturbed.items() if name not in again]  # no time was left for them
    cells = [measured.cell for measured in taken]
    return ComparisonOutcome(cells, [cell.id for cell in cells if once.ledger.begun[cell.id] > 1], ended)


def _estimate(taken: Sequence[Taken], arm: str) -> float | None:
    """Return the most seconds that an arm's turn takes, from its own earlier ones, else from all; None before any."""
    arm_seconds = [run.seconds for run in taken if run.cell.variant == arm]
    return max(arm_seconds or [run.seconds for run in taken], default=None)


def differences(plan: ComparisonPlan, cells: Sequence[Cell], figures: Sequence[str] = FIGURES) -> list[Difference]:
    """Return the differences by figure and arm, over the rounds in which both arms are ok."""
    by_arm = {
        arm: {cell.repeat: cell for cell in cells if cell.variant == arm and cell.state == "ok"} for arm in plan.arms
    }
    comparisons = len(figures) * (len(plan.arms) - 1)
    share = 1 - (1 - CONFIDENCE) / 2 / comparisons
    first, *others = plan.arms
    compared = []
    for figure, arm in product(figures, others):
        changes = [
            math.log(theirs / ours)
            for turn in sorted(by_arm[first].keys() & by_arm[arm].keys())
            if (ours := by_arm[first][turn].value(figure)) and (theirs := by_arm[arm][turn].value(figure))
        ]
        change = low = high = None
        if len(changes) >= MIN_ROUNDS:
            change, low, high = (math.expm1(shift) for shift in of_trimmed(changes, share))
        compared.append(Difference(arm, figure, change, low, high, len(changes)))
    return compared


def conclude(plan: ComparisonPlan, cells: Sequence[Cell]) -> list[Finding]:
    """Return a comparison's findings for the reader: differences, then the acceptance of drafts."""
    ids = {arm: [cell.id for cell in cells if cell.variant == arm and cell.state == "ok"] for arm in plan.arms}
    findings = [
        Finding(
            name="difference" if difference.is_shown else "no_difference_shown",
            text=_sentence(plan.arms[0], difference),
            numbers={
                "arm": difference.arm,
                "compared_with": plan.arms[0],
                **asdict(difference),
                "confidence": CONFIDENCE,
            },
            cells=[*ids[plan.arms[0]], *ids[difference.arm]],
        )
        for difference in differences(plan, cells)
    ]
    for arm in plan.arms:
        accepted = [cell.acceptance for cell in cells if cell.variant == arm and cell.acceptance]
        if not accepted:
            continue
        shares = [fmean(shares) for shares in zip(*accepted, strict=False)]
        percentages = ", ".join(f"{share:.0%}" for share in shares)
        numbers: Numbers = {"arm": arm, **{f"position_{place}": share for place, share in enumerate(shares, 1)}}
        text = f"{arm}: the draft tokens at positions 1, 2, ... were accepted in {percentages}."
        findings.append(Finding(name="acceptance", text=text, numbers=numbers, cells=ids[arm]))
    return findings


def _sentence(first: str, shift: Difference) -> str:
    pair = f"{shift.figure}, {shift.arm} against {first}"
    if shift.change is None or shift.low is None or shift.high is None:
        return f"{pair}: too few rounds have both figures to compare ({shift.rounds})."
    span = f"{shift.low:+.1%} to {shift.high:+.1%} over {format_count(shift.rounds, 'rounds')}"
    if shift.is_shown:
        return f"{shift.figure}: {shift.arm} has {shift.change:+.1%} against {first} ({span})."
    return f"{pair}: no difference shown ({span}; a smaller one may exist)."
