"""Checks of a stack's alerts: an address that can be one, and no setting without an effect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.errors import Problem
from bezel.planner.base.problems import setting
from bezel.planner.base.settings import Observability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.planner.base.settings import Settings

_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_OF_ALERTS = ("email", "max_error_share", "max_cold_starts", "idle_hours")


def check_observability(settings: Settings) -> Iterator[Problem]:
    """Check the section `observability` of a Cloud Run service."""
    chosen, default = settings.observability, Observability()
    if chosen.email is not None and not _ADDRESS.fullmatch(chosen.email):
        yield Problem(
            setting("observability.email"),
            chosen.email,
            "no mail can be sent to it.",
            "write an e-mail address, e.g. team@example.com.",
        )
    for name in _OF_ALERTS if not chosen.alerts else ():
        if getattr(chosen, name) != getattr(default, name):
            yield Problem(
                setting(f"observability.{name}"),
                str(getattr(chosen, name)),
                "without alerts it has no effect.",
                f"add `{setting('observability')}: {{alerts: true}}`, or remove it.",
            )
