"""Outcomes of commands that run the engine: their exit codes, and the errors that have codes of their own."""

from enum import IntEnum

from bezel_base.errors import UserError


class Exit(IntEnum):
    """Exit code of commands that change stacks. Usage errors are 2 in every command of bezel."""

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
