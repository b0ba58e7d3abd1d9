"""Checks of a stack's alerts, uptime check and budget: values that can be, and no setting without an effect.

Owns what has no meaning for leases, too: their machines do not start with requests, and end by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.members import EMAIL
from bezel.planner.base.problems import setting
from bezel.planner.base.settings import Observability
from bezel_base.errors import NOT_SET, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bezel.planner.base.settings import Settings

_OF_METRICS = ("max_ttft_seconds", "max_tpot_seconds")
_OF_ALERTS = ("max_error_share", "max_cold_starts", "idle_hours", *_OF_METRICS)
_OF_BUDGETS = ("billing_account", "currency")
# Settings without a meaning for leases -> why.
_NOT_OF_LEASES = {
    "uptime": "a lease ends by itself, and each check after its end would fail",
    "max_cold_starts": "no request starts a machine, and starts of the gateway cost nothing",
    "idle_hours": "a lease costs the same with and without requests, until it ends",
}


def unwatchable(settings: Settings, unread: Iterable[str]) -> dict[str, tuple[bool, str]]:
    """Settings that have no meaning for leases: key -> (whether it is set, why).

    Args:
        settings: with defaults in place of values that cannot be read.
        unread: the keys of these values; they are set as well.
    """
    chosen, default, keys = settings.observability, Observability(), {*unread}
    return {
        f"observability.{name}": (
            getattr(chosen, name) != getattr(default, name) or setting(f"observability.{name}") in keys,
            why,
        )
        for name, why in _NOT_OF_LEASES.items()
    }


def check_observability(settings: Settings, *, leased: bool = False) -> Iterator[Problem]:
    """Check the section `observability`.

    Args:
        settings: of the stack.
        leased: whether the stack leases machines; `unwatchable` has what it cannot set.
    """
    chosen, default = settings.observability, Observability()
    of_alerts = [name for name in _OF_ALERTS if not (leased and name in _NOT_OF_LEASES)]
    if chosen.email is not None and not EMAIL.fullmatch(chosen.email):
        yield Problem(
            setting("observability.email"),
            chosen.email,
            "no mail can be sent to it.",
            "write an e-mail address, e.g. team@example.com.",
        )
    alerts, budget = "alerts: true", "budget: AMOUNT"
    both = "alerts: true, metrics: true"
    without = {name: ("vLLM's figures", both) for name in _OF_METRICS if not chosen.metrics}
    without |= {name: ("alerts", both if name in without else alerts) for name in of_alerts if not chosen.alerts}
    without |= {name: ("a budget", budget) for name in _OF_BUDGETS if chosen.budget is None}
    without |= {} if chosen.alerts or chosen.budget is not None else {"email": ("alerts or a budget", alerts)}
    for name, (needed, key) in without.items():
        if getattr(chosen, name) != getattr(default, name):
            yield Problem(
                setting(f"observability.{name}"),
                str(getattr(chosen, name)),
                f"without {needed} it has no effect.",
                f"add `{setting('observability')}: {{{key}}}`, or remove it.",
            )
    if chosen.budget is not None and chosen.billing_account is None:
        yield Problem(
            setting("observability.billing_account"),
            NOT_SET,
            "a budget belongs to a billing account.",
            "add it: `gcloud billing accounts list` shows the ids.",
        )
    if chosen.uptime and not leased:
        yield from _uptime(settings)


def check_objectives(settings: Settings, *, pools: bool) -> Iterator[Problem]:
    """Refuse latencies of tokens for a model that pools, whose answers have none."""
    for name in _OF_METRICS if pools else ():
        if (value := getattr(settings.observability, name)) is not None:
            yield Problem(
                setting(f"observability.{name}"),
                str(value),
                "the model pools: its answers have no tokens, so the alert would never open.",
                "remove it.",
            )


def _uptime(settings: Settings) -> Iterator[Problem]:
    key = setting("observability.uptime")
    if not settings.scaling.min_instances:
        yield Problem(
            key,
            "true",
            "the service scales to zero, and a check every five minutes would keep an instance running, at its price.",
            f"set {setting('scaling.min_instances')} to 1 or more, or remove it: alerts report what callers meet.",
        )
    if settings.access.ingress != "all":
        yield Problem(
            key,
            "true",
            f"checks come from the internet, which {setting('access.ingress')}={settings.access.ingress} keeps out.",
            "remove it, or allow all networks: a caller needs an identity either way.",
        )
