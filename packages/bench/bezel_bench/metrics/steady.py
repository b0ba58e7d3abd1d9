"""Steady part of a load: warm-up and cool-down are cut by one rule, from the samples alone.

The rule of `steady_window`:

1. It begins when every request is complete that was sent before both the first response and the last user's first
   request: requests started together came in step, and met a server that was not yet full.
2. It begins later where a longer cut lowers the standard error of the mean of e2e by 30 % or more (MSER-5 over the
   requests in the order of their ends; K. P. White Jr., An effective truncation heuristic, Simulation 69(6), 1997), up
   to half of the remainder: a server that compiled, or filled its caches, at first.
3. It ends when the last request is sent: from then on fewer and fewer run. In a closed loop it ends at the last
   response before that with which the number of responses inside is a multiple of the users: users come in step, and
   an end between two rounds would count a part of the users for the whole time of a round.

A request counts where its response ended inside. A load too short for this, or one whose level changes on purpose,
counts whole and is marked so.
"""

from dataclasses import dataclass

import numpy as np

from bezel_base.text.counting import format_count
from bezel_bench.result.columns import Columns, Flags, Floats, Ints

# With fewer batches of five the minimum of MSER is chance.
_BATCHES = 20
_BATCH = 5
# Largest remaining share of the squared standard error after a cut: even runs show smaller gains by chance.
_GAIN = 0.5


@dataclass(frozen=True, slots=True)
class Steady:
    """The part that counts: instants in nanoseconds, and the rule in words.

    `cut` is whether anything was cut: otherwise no steady state is claimed.
    """

    begins: int
    ends: int
    rule: str
    cut: bool

    @property
    def seconds(self) -> float:
        """Return its length."""
        return (self.ends - self.begins) / 1e9

    def counts(self, columns: Columns) -> Flags:
        """Return which requests ended inside."""
        done = columns["done"]
        inside: Flags = (done > self.begins) & (done <= self.ends)
        return inside | (done == self.begins) if not self.cut else inside

    def share(self, begins: Ints, ends: Ints) -> Floats:
        """Return the part of each span that is inside, 0 to 1; an instant is inside or not."""
        shares = np.zeros(len(ends))
        # Of the other ones it is 0: most, where this is a section of a load.
        rows = np.flatnonzero((ends > self.begins) & (np.minimum(begins, ends) <= self.ends))
        begins, ends = begins[rows], ends[rows]
        inside = np.minimum(ends, self.ends) - np.maximum(begins, self.begins)
        length = ends - begins
        shares[rows] = np.where(length > 0, np.maximum(inside, 0) / np.maximum(length, 1), ends <= self.ends)
        return shares


def steady_window(columns: Columns, began: int, ended: int, *, users: int, changing: bool = False) -> Steady:
    """Return the part of a load that counts.

    Args:
        columns: All of its requests.
        began: The start of the clock, in nanoseconds.
        ended: The end of the last response.
        users: Users of a closed loop; 0 where requests were planned by the clock.
        changing: The level changed on purpose (stages, a replayed trace): there is no steady state.
    """
    whole = Steady(began, max(ended, began), "", cut=False)
    if changing:
        return _because(whole, "the load changes on purpose")
    good = columns.successes
    if len(good) == 0:
        return _because(whole, "no request succeeded")
    together = int(good["done"][0]) - 1
    if users:
        together = max(together, _last_first(columns["user"], columns["sent"]))
    early = good["sent"] <= together
    begins, ends = int(good["done"][early].max()), int(columns["sent"].max())
    needed = max(users, 2)
    inside = (good["done"] > begins) & (good["done"] <= ends)
    if inside.sum() < needed:
        return _because(
            whole,
            f"too few responses to cut the ends off ({len(good)} of "
            f"{format_count(users, 'users') if users else 'no fixed number of users'})",
        )
    rule = "from the last response to the requests that started together to the sending of the last request"
    if more := _truncation((good["done"] - good["sent"])[inside]):
        later = inside & (good["done"] > int(good["done"][inside][more - 1]))
        if later.sum() >= needed:
            begins, inside = int(good["done"][inside][more - 1]), later
            rule += f"; {more} more responses cut at the beginning, which differ from the later ones (MSER-5)"
    if users:
        # In the order of their ends.
        answers = good["done"][inside]
        ends = int(answers[len(answers) // users * users - 1])
        rule += f", in whole rounds of {users} responses" if users > 1 else ""
    return Steady(begins, ends, rule, cut=True)


def _last_first(users: Ints, sent: Ints) -> int:
    """Return the sending of the first request of the user who began last."""
    numbers = users - users.min()
    firsts = np.full(int(numbers.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(firsts, numbers, sent)
    return int(firsts[np.bincount(numbers) > 0].max())


def _because(whole: Steady, reason: str) -> Steady:
    return Steady(whole.begins, whole.ends, f"nothing is cut: {reason}", cut=False)


def _truncation(values: Ints) -> int:
    """Return how many of the first values MSER-5 drops, at most half."""
    batches = len(values) // _BATCH
    if batches < _BATCHES:
        return 0
    means = values[: batches * _BATCH].reshape(batches, _BATCH).mean(axis=1)
    means = means - means.mean()  # for exactness: the sums of squares below are differences
    left = np.arange(batches, 0, -1)
    sums, squares = np.cumsum(means[::-1])[::-1], np.cumsum(means[::-1] ** 2)[::-1]
    error = (squares - sums**2 / left) / left**2
    best = int(np.argmin(error[: batches // 2 + 1]))
    return best * _BATCH if error[best] <= _GAIN * error[0] else 0
