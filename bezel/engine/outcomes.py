"""Outcomes of the pipeline's commands: their exit codes, and the form of what they report."""

from enum import IntEnum
from typing import Protocol

from bezel_base.errors import UserError


class Exit(IntEnum):
    """Exit code of `bezel ci ...`. Usage errors are 2 in every command of bezel."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    DRIFTED = 4
    LOCKED = 5


class RefusedError(UserError):
    """A policy, the price or the review refuses the change."""

    exit_code = Exit.REFUSED


class LockedError(UserError):
    """Another run holds the stack's lock."""

    exit_code = Exit.LOCKED


class Report(Protocol):
    """Result of a command: one content in three forms."""

    def as_json(self) -> dict[str, object]:
        """The content as JSON: what another command of the pipeline reads."""

    def text(self) -> str:
        """The content for a terminal, ending with a newline."""

    def markdown(self) -> str:
        """The content for the forge: a comment, an issue or a run's summary, ending with a newline."""
