"""Confirmations of plans: a token for one plan and one caller, with a short life, that is of use once.

Owns issuing and taking tokens. The key and the plans that wait are in the memory of one process: a token of another
process, or of one that was restarted, is worth nothing, and nothing is left on a disk. Leaves out what a plan depends
on (`basis`): that is compared again before anything is changed.
"""

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn

from bezel.engine.outcomes import RefusedError
from bezel.operations.changes.plan import Plan
from bezel_base.errors import Problem

LIFE_SECONDS = 600.0
"""Seconds in which a plan can be confirmed."""
MOST_PLANS = 100
"""Plans that may wait at once; the oldest is dropped for a new one."""


class ConfirmationError(RefusedError):
    """A plan is not confirmed; nothing was changed.

    Attributes:
        reason: `unknown`, `late`, `caller`, `other` (another operation or target), `name` or `refused`.
    """

    def __init__(self, problem: Problem, reason: str) -> None:
        super().__init__(problem)
        self.reason = reason


@dataclass(frozen=True)
class Offer:
    """A plan that can be confirmed.

    Attributes:
        plan: The plan.
        token: Confirms it, for the caller that it was offered to.
        expires_at: The end of its life, in UTC.
    """

    plan: Plan
    token: str
    expires_at: datetime


@dataclass(frozen=True)
class _Waiting:
    plan: Plan
    caller: str
    until: float


@dataclass
class Confirmations:
    """Plans of one process that wait for their confirmation. Used by several threads.

    Attributes:
        now: The time, unix seconds.
        seconds: Life of a token.
    """

    now: Callable[[], float] = time.time
    seconds: float = LIFE_SECONDS
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _waiting: dict[str, _Waiting] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def offer(self, plan: Plan, caller: str) -> Offer:
        """A token for a plan.

        Args:
            plan: The plan, as it is shown.
            caller: Who may confirm it, e.g. a session's id.

        Raises:
            ConfirmationError: The plan itself is refused.
        """
        if plan.refusals:
            _refuse(
                "refused", plan.target, f"the plan is refused: {'; '.join(plan.refusals)}", "change that, plan again."
            )
        until = self.now() + self.seconds
        number = secrets.token_hex(16)
        token = f"{number}.{self._sign(number, plan, caller, until)}"
        with self._lock:
            self._drop_late()
            while len(self._waiting) >= MOST_PLANS:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[number] = _Waiting(plan, caller, until)
        return Offer(plan, token, datetime.fromtimestamp(until, UTC))

    def take(
        self, token: str, caller: str, *, name: str = "", operation: str | None = None, target: str | None = None
    ) -> Plan:
        """The plan that a token confirms. The token is worth nothing afterwards.

        Args:
            token: The token.
            caller: Who confirms.
            name: The name that the plan asks for again.
            operation: The operation that the caller means; any by default.
            target: The stack, secret or lease that the caller means; any by default.

        Raises:
            ConfirmationError: Another caller, operation or target, too late, or used already.
        """
        number = token.partition(".")[0]
        with self._lock:
            entry = self._waiting.get(number)
            if entry is None:
                again = "plan again: a token is of use once, for ten minutes, in the process that gave it."
                _refuse("unknown", "", "no plan waits for this confirmation", again)
            signature = self._sign(number, entry.plan, caller, entry.until)
            if not hmac.compare_digest(token.encode(), f"{number}.{signature}".encode()):
                _refuse(
                    "caller", entry.plan.target, "the token was given to another caller, or was altered", "plan again."
                )
            if self.now() > entry.until:
                del self._waiting[number]
                _refuse("late", entry.plan.target, "the plan was to be confirmed within ten minutes", "plan again.")
            meant = (operation or entry.plan.operation, target or entry.plan.target)
            if meant != (entry.plan.operation, entry.plan.target):
                planned = f"{entry.plan.operation} {entry.plan.target}"
                _refuse("other", meant[1], f"the token confirms {planned}", f"plan {meant[0]} {meant[1]}.")
            check_name(entry.plan, name)
            del self._waiting[number]
            return entry.plan

    def _sign(self, number: str, plan: Plan, caller: str, until: float) -> str:
        bound = json.dumps([number, plan.digest, plan.operation, plan.target, caller, until])
        return hmac.new(self._key, bound.encode(), hashlib.sha256).hexdigest()

    def _drop_late(self) -> None:
        now = self.now()
        self._waiting = {number: entry for number, entry in self._waiting.items() if entry.until >= now}


def check_name(plan: Plan, name: str) -> None:
    """Refuse a confirmation that does not repeat the name that the plan asks for.

    Raises:
        ConfirmationError: It does not.
    """
    if plan.confirm_name is not None and name != plan.confirm_name:
        _refuse(
            "name", plan.target, "it destroys something, so its name has to be repeated", f"name {plan.confirm_name}."
        )


def _refuse(reason: str, key: str, consequence: str, repair: str) -> NoReturn:
    raise ConfirmationError(Problem(key or "TOKEN", None, f"{consequence}; nothing was changed.", repair), reason)
