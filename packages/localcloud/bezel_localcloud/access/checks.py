"""Checks of one request: who sent it, and which permissions it was tested for, as the request log shows them.

The request log begins a record, and tokens and policies add to it as long as the request is handled. What services test
for accounts of others, such as a bucket's agent for a key, is left out: no caller lacks it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Checks:
    """The checks of a request.

    Attributes:
        caller: E-mail of its account, or the federated principal; "" without credentials.
        permissions: Each tested permission of the caller, and whether a policy grants it.
    """

    caller: str = ""
    permissions: dict[str, bool] = field(default_factory=dict)

    def of(self, *, granted: bool) -> list[str]:
        """The permissions that were granted, or those that were denied."""
        return sorted(name for name, allowed in self.permissions.items() if allowed is granted)


_current: ContextVar[Checks | None] = ContextVar("checks", default=None)


@contextmanager
def record_checks() -> Iterator[Checks]:
    """Record the checks of the request that is handled in the block."""
    checks = Checks()
    token = _current.set(checks)
    try:
        yield checks
    finally:
        _current.reset(token)


def note_caller(caller: str) -> None:
    """Record whose token a request has."""
    if checks := _current.get():
        checks.caller = str(caller)


def note_permission(caller: str | None, permission: str, *, granted: bool) -> None:
    """Record a test of the caller's permission; one that is granted on any resource counts as denied if one is not."""
    checks = _current.get()
    if checks is not None and (caller or "") == checks.caller:
        checks.permissions[permission] = granted and checks.permissions.get(permission, True)
