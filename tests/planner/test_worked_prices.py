"""Leases and tokens are priced as worked out by hand; a price row that is taken away closes the plan by its name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from bezel.planner import make_plan, plan_summary
from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.money import Priced, Unpriced, figure, lasting, times, total
from bezel.planner.cost.lease_cost import lease_cost
from bezel.planner.cost.service_cost import NOT_INCLUDED
from tests.support.planner.l4_stack import with_changes

ROOT = Path(__file__).parents[2]
HOUR = 3600
WITHOUT_ROWS = """
import csv, io, json, sys
from bezel_catalog import prices as table
from bezel_catalog.loader import DATA
from bezel.planner import PlanError, make_plan
from bezel.planner.cost.lease_cost import lease_cost
from bezel.planner.base.hardware import leased_hardware

file = DATA / "prices.csv"
rows = list(csv.reader(io.StringIO(file.read_text())))
told = {}
for gone in json.loads(sys.argv[1]):
    kept = [row for row in rows if row[:4] != gone]
    assert len(kept) == len(rows) - 1, gone
    with file.open("w", newline="") as written:
        csv.writer(written).writerows(kept)
    table.cache_clear()
    if gone[0] == "tpu":
        told[", ".join(gone)] = repr(
            lease_cost(leased_hardware()["v6e-4"], zone=gone[2] + "-a", provisioning=gone[3]).hourly
        )
        continue
    try:
        make_plan(json.loads(sys.argv[2]), project="p", stack="s")
    except PlanError as error:
        told[", ".join(gone)] = str(error)
print(json.dumps(told))
"""


@pytest.mark.parametrize(
    ("zone", "provisioning", "hours", "usd"),
    [
        ("us-east5-a", "flex-start", 1, "5.40"),
        ("us-east5-b", "flex-start", 4, "21.60"),
        ("europe-west4-a", "flex-start", 7 * 24, "907.20"),
        ("us-east5-a", "on-demand", 1, "10.80"),
        ("europe-west4-a", "on-demand", 1, "11.88"),
        ("us-east5-a", "spot", 1, "5.6132"),
    ],
)
def test_a_lease_of_four_chips_to_the_cent(zone, provisioning, hours, usd):
    cost = lease_cost(leased_hardware()["v6e-4"], zone=zone, provisioning=provisioning)
    assert lasting(cost.hourly, hours * HOUR) == Priced(Decimal(usd))


def test_flex_start_is_cheaper_than_spot():
    flex, spot = (
        lease_cost(leased_hardware()["v6e-1"], zone="us-east5-a", provisioning=kind).hourly
        for kind in ("flex-start", "spot")
    )
    assert flex.usd < spot.usd


def test_a_lease_where_no_price_is_known_is_unknown_and_names_the_row():
    cost = lease_cost(leased_hardware()["v6e-8"], zone="southamerica-west1-a", provisioning="flex-start")
    assert lasting(cost.hourly, HOUR) == Unpriced("tpu, v6e chip, southamerica-west1, flex-start")
    assert cost.as_output()["usd_per_hour"] == "unknown"


@pytest.mark.slow
def test_each_row_that_is_taken_away_closes_the_plan_and_names_itself(tmp_path):
    folders = {"bezel_base": "packages/base", "bezel_catalog": "packages/catalog", "bezel/planner": "."}
    for folder, place in folders.items():
        shutil.copytree(ROOT / place / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "bezel" / "__init__.py", tmp_path / "bezel")
    rows = [
        ["cloud-run", item, "us-east4", "instance-based"]
        for item in ("gpu nvidia-l4 no zonal redundancy", "vcpu", "memory")
    ] + [["tpu", "v6e chip", "us-east5", "flex-start"]]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ROWS, json.dumps(rows), json.dumps(with_changes({}))],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    messages = json.loads(done.stdout)
    assert list(messages) == [", ".join(row) for row in rows]
    for row, text in messages.items():
        assert row in text
    assert all("its price is unknown" in text and "Repair" in text for text in list(messages.values())[:3])


def test_the_plan_shows_every_amount_its_kind_and_what_is_left_out():
    plan = make_plan(
        with_changes(
            {
                "scaling": {"min_instances": 1, "max_instances": 2},
                "cost": {"max_hourly_usd": 3, "max_idle_hourly_usd": 1.05},
            }
        ),
        project="p",
        stack="s",
    )
    cost = plan.as_output()["cost"]
    assert cost["usd_per_hour_min_instances"] == 1.0465
    assert cost["usd_per_hour_all_instances"] == 2.093
    assert cost["usd_per_month_without_traffic"] == cost["usd_per_month_always_on"] == 763.96
    assert [line["kind"] for line in cost["lines"]] == ["derived", "list price", "list price"]
    assert cost["not_included"] == list(NOT_INCLUDED)
    low, high = plan.start.seconds
    assert cost["usd_per_cold_start"] == [round(1.04652 * low / HOUR, 4), round(1.04652 * high / HOUR, 4)]
    text = plan_summary(plan)
    for shown in ("derived", "list price", "2.0930 USD/h", "one start", "a million tokens in", "not included"):
        assert shown in text


def test_a_request_costs_its_seconds_and_half_the_utilisation_doubles_it():
    plan = make_plan(with_changes({}), project="p", stack="s")
    speed, tokens = plan.estimate, plan.token_cost
    hourly = float(plan.cost.hourly.usd)
    for fast_or_slow, rate in zip((0, 1), reversed(speed.tokens_per_second_served), strict=True):
        requests_per_hour = rate / speed.output_tokens * HOUR * tokens.utilisation
        of_a_request = (
            float(tokens.input[fast_or_slow].usd) * speed.prompt_tokens
            + float(tokens.output[fast_or_slow].usd) * speed.output_tokens
        ) / 1_000_000
        assert of_a_request * requests_per_hour == pytest.approx(hourly)
    assert tokens.utilisation == 0.5
    assert "50% of the paid time" in tokens.basis
    assert "8 users, 256 tokens in, 64 out" in tokens.basis


def test_sums_keep_every_reason_and_unknown_times_zero_stays_unknown():
    gone, lost = Unpriced("row a"), Unpriced("row b")
    assert total([Priced(Decimal(1)), gone, lost, gone]) == Unpriced("row a", "row b")
    assert total([Priced(Decimal(1), derived=True), Priced(Decimal(2))]) == Priced(Decimal(3), derived=True)
    assert total([]) == Priced(Decimal(0))
    assert times(gone, 0) == gone
    assert figure(gone, 2) == "unknown"
    assert figure(Priced(Decimal("0.005")), 2) == 0.01
