"""Errors of copies and listings, for the user: the cause, its consequence, and the repair."""

from bezel.rest import RestError


class WeightsError(RestError):
    """A copy or a listing that cannot be made; the text holds no token and no address that carries one."""


class WrongContentError(WeightsError):
    """The content differs from the size or hash that the source reported."""


class StoppedError(RestError):
    """Another file failed, or the user interrupted the copy: this file stops where it is and can be resumed."""
