"""docs/address.md shows stack files that a plan takes, prices worked by hand, and the times of the failover."""

import re
from decimal import Decimal
from typing import Any

import yaml

from bezel.planner import LeasePlan, Plan, make_plan
from bezel.planner.address.failover import (
    EJECTION_SECONDS,
    FAILURES,
    READINESS,
    SWEEP_SECONDS,
    detection_seconds,
)
from bezel.planner.base.money import Amount, text, times, total
from tests.support.docs.markdown import ROOT, blocks
from tests.support.planner.l4_stack import L4

DOCUMENT = ROOT / "docs" / "address.md"
PAGE = DOCUMENT.read_text(encoding="utf-8")
TABLES = re.findall(r"<!-- prices -->\n\|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE)
SUM = re.compile(r"[\d.]+(?: [x+] [\d.]+)*")


def plan_of(example: str) -> Plan | LeasePlan:
    settings: dict[str, Any] = {key.removeprefix("bezel:"): value for key, value in yaml.safe_load(example).items()}
    base = {} if "lease" in settings else {key: L4[key] for key in ("model", "accelerator")}
    return make_plan(base | settings, project="acme-llm", stack="example")


def by_hand(expression: str) -> Decimal:
    assert SUM.fullmatch(expression), expression
    products = [part.split(" x ") for part in expression.split(" + ")]
    amount = Decimal(0)
    for factors in products:
        product = Decimal(1)
        for factor in factors:
            product *= Decimal(factor)
        amount += product
    return amount


def amounts(plan: Plan | LeasePlan) -> dict[str, Amount]:
    assert plan.address
    address = plan.address.cost
    if isinstance(plan, LeasePlan):
        cost = plan.cost
        return {
            "machines, an hour": cost.machines_hourly,
            "gateway, an hour": cost.gateway_hourly,
            "at most, an hour": cost.hourly_at_max,
            "at most, the lease": cost.lease_at_max,
        }
    return {
        "one instance, an hour": plan.cost.hourly,
        "address, an hour": address.hourly,
        "at most, an hour": plan.total.hourly_at_max,
        "without traffic, an hour": plan.total.hourly_at_min,
        "without traffic, a month": plan.total.monthly_without_traffic,
        **{
            f"100 GiB in and out of {region}": total(times(line.hourly, 100) for line in lines)
            for region, lines in address.data.items()
        },
    }


def test_prices_are_those_of_the_catalogue_and_of_the_hand() -> None:
    _, *examples = blocks(DOCUMENT, "yaml")
    assert len(examples) == len(TABLES) == 3
    for example, table in zip(examples, TABLES, strict=True):
        planned = amounts(plan_of(example))
        rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
        assert len(rows) == 4
        for name, expression, usd in rows:
            digits = len(usd.partition(".")[2])
            assert text(planned[name], digits) == usd, name
            assert round(by_hand(expression), digits) == Decimal(usd), name


def test_the_first_stack_file_is_planned_as_it_says() -> None:
    plan = plan_of(blocks(DOCUMENT, "yaml")[0])
    assert isinstance(plan, Plan)
    assert plan.address
    assert (plan.address.zone, plan.address.failover) == ("acme-example", "service health")
    assert [each.optional for each in plan.regions] == [False, True]
    assert [each.bucket for each in plan.regions] == ["acme-llm-models-us-east4", "acme-llm-models-europe-west4"]


def test_times_of_the_failover_are_those_of_the_resources() -> None:
    period, failures, last = (READINESS[name] for name in ("period_seconds", "failure_threshold", "timeout_seconds"))
    for sentence in (
        f"asks each instance every {period} s, and {failures} failures take it out",
        f"for at most {detection_seconds('service health')} s: {failures} x {period} s, and {last} s for the last",
        f"leaves a region out after {FAILURES} answers of 500 to 599 in a row",
        f"until each proxy saw {FAILURES} failures, and for {SWEEP_SECONDS} s more",
        f"comes back after {EJECTION_SECONDS} s, longer\neach time",
    ):
        assert sentence in PAGE
