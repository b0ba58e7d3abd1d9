"""Text of a new stack file: the chosen settings, each with what it means for this model on this machine. Pure."""

import json
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

from bezel.cli.new.choice import DEV, Choice
from bezel.planner import LeasePlan
from bezel.planner.base.money import Priced
from bezel.planner.base.problems import setting

SCHEMA = "stack.schema.json"
_MARGIN = Decimal("1.05")  # a limit that the next refresh of prices does not exceed at once


def stack_text(choice: Choice) -> str:
    """The content of the stack's file.

    Args:
        choice: Settings that have a plan.
    """
    return "".join(f"{line}\n" for line in _lines(choice))


def _lines(choice: Choice) -> Iterator[str]:
    values, plan = choice.configuration, choice.plan
    is_lease = isinstance(plan, LeasePlan)
    yield f"# yaml-language-server: $schema={SCHEMA}"
    while_paid = "it is leased" if is_lease else "an instance runs"
    yield f"# {values['model']} on {choice.accelerator}: {choice.price_text()} while {while_paid}."
    yield "# `.venv/bin/bezel plan STACK --all` shows each value and its origin, `.venv/bin/bezel explain NAME` a key."
    yield "config:"
    if choice.environment == DEV:
        yield "  # It chooses the limits in policies/. In each one but dev the service is protected from deletion."
    else:
        yield "  # The limits of dev in policies/ refuse this accelerator. The service is protected from deletion."
    for name in ("environment", "model", "accelerator", "region"):
        yield f"  {setting(name)}: {_scalar(values[name])}"
    if "weights" in values:
        yield "  # No hub has this form: the folder in the bucket holds your own copy."
        yield f"  {setting('weights')}:"
        yield from (f"    {name}: {_scalar(value)}" for name, value in values["weights"].items())
    if is_lease:
        yield "  # Zones in order of preference; a request waits in each for `patience` before the next one is tried."
        yield f"  {setting('lease')}:"
        yield "    zones:"
        yield from (f"      - zone: {_scalar(zone['zone'])}" for zone in values["lease"]["zones"])
    yield "  # Options of `vllm serve`: the longest request with its answer in tokens, and requests at a time."
    yield f"  {setting('vllm')}:"
    yield from (f"    {name}: {_scalar(value)}" for name, value in values["vllm"].items())
    if not is_lease:
        yield "  # Without traffic nothing runs and nothing is paid; the next request then waits for a start."
        yield "  # A second instance needs twice the max_hourly_usd below, a limit: a pipeline has its change approved."
        yield f"  {setting('scaling')}:"
        yield "    min_instances: 0"
        yield "    max_instances: 1"
    yield "  # A plan above this is refused."
    yield f"  {setting('cost')}:"
    yield from (f"    {name}: {amount}" for name, amount in _limits(choice).items())
    yield "  # Labels of everything that is deployed; `bezel ci expire` destroys what is over by its expires-at."
    yield f"  {setting('labels')}:"
    yield "    owner: ml-platform"
    yield "    expires-at: never"


def _limits(choice: Choice) -> Mapping[str, str]:
    cost = choice.plan.cost
    amounts = {"max_hourly_usd": cost.hourly_at_max}
    if isinstance(choice.plan, LeasePlan):
        amounts = {"max_lease_usd": choice.plan.cost.lease_at_max}
    return {name: str(_round_up(amount)) for name, amount in amounts.items() if isinstance(amount, Priced)}


def _round_up(amount: Priced) -> Decimal:
    return (amount.usd * _MARGIN).quantize(Decimal("0.01"), rounding=ROUND_CEILING)


def _scalar(value: Any) -> str:
    """A value of YAML that every reader takes for the same: names of the catalogue and numbers need no quotes."""
    text = str(value)
    return (
        text
        if isinstance(value, int | float) or (text.replace("-", "").isalnum() and not text.isdigit())
        else json.dumps(text)
    )
