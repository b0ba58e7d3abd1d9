"""Bounds of the work that a caller's text can ask for: steps that are counted before they are done. Pure.

All APIs share one event loop, so that a request that computes for a minute stops every other one. Whatever a caller
writes as a program (a condition, a filter, a pattern) is evaluated against a `Work`: each part says how many steps it
is about to take, and is refused where they are more than what is left. A step is about a microsecond of one core.
"""


class TooMuchWorkError(Exception):
    """An evaluation would take more steps, or make a larger value, than it may; the text says which bound it was."""


class Work:
    """What one evaluation may still do.

    Attributes:
        most: Steps that it may take in all.
        spent: Steps that it has taken.
    """

    def __init__(self, most: int) -> None:
        """Allow `most` steps."""
        self.most = most
        self.spent = 0

    def spend(self, steps: int = 1) -> None:
        """Count steps that are about to be taken.

        Raises:
            TooMuchWorkError: They are more than what is left; nothing is counted then.
        """
        if self.spent + steps > self.most:
            raise TooMuchWorkError(f"it takes more than {self.most} steps")
        self.spent += steps
