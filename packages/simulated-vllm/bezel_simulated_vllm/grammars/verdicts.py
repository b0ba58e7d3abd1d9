"""Verdicts on a constraint: refused with the library's words, or not judged; and a bound on the work for one."""

from __future__ import annotations

# Steps of the rules for one constraint. A schema of a hundred kilobytes takes some ten thousand.
_MOST_STEPS = 400_000


class RefusedError(Exception):
    """The library refuses the constraint; the text is the library's."""


class NotJudgedError(Exception):
    """What is known of the library does not tell whether it takes the constraint."""


class Work:
    """The work that may be spent on one constraint.

    Args:
        steps: how many steps there may be.
    """

    def __init__(self, steps: int = _MOST_STEPS) -> None:
        self._left = steps

    def spend(self, steps: int = 1) -> None:
        """Count steps.

        Raises:
            NotJudgedError: there are more than the bound.
        """
        self._left -= steps
        if self._left < 0:
            raise NotJudgedError("the constraint takes more steps than the bound")
