"""What can keep a copy from being made, for the user: what was found, what follows, what mends it."""

from __future__ import annotations

from bezel.rest import RestError


class WeightsError(RestError):
    """A copy or a listing that cannot be made; the text holds no token and no address that carries one."""

    def __init__(self, found: str, consequence: str, repair: str) -> None:
        super().__init__(f"{found}\n  Consequence: {consequence}\n  Repair: {repair}")


class WrongContentError(WeightsError):
    """Bytes that are not those that were promised."""


class StoppedError(RestError):
    """Another file failed, or the user wants no more: this one ends where it is, to be taken up again."""
