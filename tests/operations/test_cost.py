"""`bezel cost`: the plan's own amounts by name, with their sources; what has no price never costs 0."""

import shutil
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from bezel.operations.context import Context
from bezel.operations.cost.cost import Cost, CostArguments, cost
from bezel.operations.plan.plan import PlanArguments, plan, plan_of
from bezel.planner import PlanError, plan_summary
from bezel.planner.base.money import Priced, round_usd
from bezel.planner.cost.lease_cost import LeaseTotal
from bezel_base.errors import UserError

ROOT = Path(__file__).parents[2]


def costs(folder: Path, stack: str, more: str = "", **changed: object) -> Cost:
    for name in ("Pulumi.yaml", f"Pulumi.{stack}.yaml"):
        shutil.copy(ROOT / name, folder)
    file = folder / f"Pulumi.{stack}.yaml"
    file.write_text(file.read_text() + more)
    if changed:
        content = yaml.safe_load(file.read_text())
        content["config"] |= {f"bezel:{key}": value for key, value in changed.items()}
        file.write_text(yaml.safe_dump(content))
    return cost(Context(folder, {}, show=lambda _line: None), CostArguments(stack=stack))


def test_a_service_costs_what_its_plan_says(tmp_path: Path) -> None:
    report = costs(tmp_path, "l4-qat")
    planned = plan(Context(tmp_path, {}, show=lambda _line: None), PlanArguments(stack="l4-qat")).values["cost"]
    assert report.usd_per_hour is not None
    assert round_usd(report.usd_per_hour, 4) == str(planned["usd_per_hour"])
    assert (report.usd_per_hour_idle, report.usd_per_lease, report.lease_seconds) == (0, None, None)
    assert report.usd_per_hour_at_most is not None
    assert report.usd_per_month_at_most == report.usd_per_hour_at_most * 730
    assert report.usd_per_million_output_tokens is not None
    assert report.usd_per_million_output_tokens.low is not None
    low = round_usd(report.usd_per_million_output_tokens.low, 3)
    assert low == f"{planned['usd_per_million_output_tokens'][0]:.3f}"
    assert sum((line.usd_per_hour or 0) for line in report.lines) == pytest.approx(
        report.usd_per_hour, abs=Decimal("0.001")
    )
    assert all(line.source and line.as_of for line in report.lines)


def test_figures_over_time_and_a_door_are_named_beside_what_they_add_to(tmp_path: Path) -> None:
    plain = costs(tmp_path, "l4-qat")
    both = {"observability": {"metrics": True}, "access": {"keys": True}, "cost": {"max_hourly_usd": 2}}
    report = costs(tmp_path, "l4-qat", **both)
    assert (plain.usd_per_hour_of_door, plain.usd_of_samples) == (None, {})
    assert "door" not in plain.text() + str([line.item for line in plain.lines])
    assert report.usd_of_samples == {"month without traffic": 0, "month at most": Decimal("1.420656")}
    assert report.usd_per_hour is not None
    assert report.usd_per_hour_of_door is not None
    assert report.usd_per_hour_at_most == report.usd_per_hour + report.usd_per_hour_of_door
    assert report.usd_per_hour_idle == 0
    assert "vcpu of the collector" in [line.item for line in report.lines]
    assert "figures over time, month at most" in report.text()


def test_a_lease_costs_until_its_end_and_without_traffic_too(tmp_path: Path) -> None:
    report = costs(tmp_path, "v6e4-moe")
    assert report.usd_per_hour_idle == report.usd_per_hour
    assert report.lease_seconds == 14400
    assert report.usd_per_lease is not None
    assert report.usd_per_hour_at_most is not None
    assert report.usd_per_lease == pytest.approx(report.usd_per_hour_at_most * 4, abs=Decimal("0.01"))
    assert report.usd_per_month_at_most is None
    assert "per month" not in report.text()
    assert report.usd_per_hour_of_fallback is None
    assert "fallback" not in report.text()


def test_a_fallback_costs_while_it_serves_and_while_one_takes_over(tmp_path: Path) -> None:
    chosen = {"accelerator": "nvidia-l4", "region": "us-east4", "model": "gemma-4-12b-it-qat-w4a16"}
    report = costs(tmp_path, "v6e1-12b", fallback=chosen, cost={})
    # An L4 with 4 CPUs and 16 GiB, and the gateway's two instances.
    assert report.usd_per_hour_of_fallback == pytest.approx(Decimal("1.2283"), abs=Decimal("0.0001"))
    assert report.usd_per_hour_at_most is not None
    assert report.usd_per_hour_in_a_change == pytest.approx(
        report.usd_per_hour_at_most + Decimal("1.0465"), abs=Decimal("0.0001")
    )
    assert "per hour of the fallback   1.23 USD" in report.text()


SCHEDULE = """
  bezel:scaling: {schedule: [{cron: 0 8 * * 1-5, min_instances: 1}, {cron: 0 18 * * 1-5, min_instances: 0}]}
"""


def test_a_month_of_a_schedule_or_of_hours_is_shown_with_what_it_saves(tmp_path: Path) -> None:
    (tmp_path / "service").mkdir()
    (tmp_path / "lease").mkdir()
    service = costs(tmp_path / "service", "l4-qat", SCHEDULE, cost={"max_hourly_usd": 2, "max_idle_hourly_usd": 2})
    assert service.usd_per_hour is not None
    month = service.usd_per_hour * 730
    assert service.usd_per_month_without_traffic == pytest.approx(month * 50 / 168, abs=Decimal("0.1"))
    assert service.usd_per_month_saved == pytest.approx(month * 118 / 168, abs=Decimal("0.1"))

    hours = {"zones": [{"zone": "us-east5-a"}], "hours": [{"start": "0 8 * * 1-5", "end": "0 12 * * 1-5"}]}
    lease = costs(tmp_path / "lease", "v6e1-12b", lease=hours)
    assert lease.usd_per_month_without_traffic == pytest.approx(Decimal("1.35") * 730 * 20 / 168, abs=Decimal("0.1"))
    assert "saved per month" in lease.text()


def test_without_a_schedule_or_hours_nothing_is_saved(tmp_path: Path) -> None:
    report = costs(tmp_path, "v6e1-12b")
    assert (report.usd_per_month_without_traffic, report.usd_per_month_saved) == (None, None)
    assert "month" not in report.text()


def test_a_missing_price_row_is_refused_and_never_costs_0(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    stack = yaml.safe_load((ROOT / "Pulumi.v6e4-moe.yaml").read_text())
    stack["config"]["bezel:lease"]["zones"] = [{"zone": "southamerica-west1-a", "patience": "30m"}]
    (tmp_path / "Pulumi.far.yaml").write_text(yaml.safe_dump(stack))
    with pytest.raises(PlanError, match="Missing price row: tpu, v6e chip, southamerica-west1"):
        cost(Context(tmp_path, {}, show=lambda _line: None), CostArguments(stack="far"))


def test_a_stack_without_a_file_has_no_cost(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    with pytest.raises(UserError, match="STACK"):
        cost(Context(tmp_path, {}), CostArguments(stack="none"))


# All but the one that has no price.
STACKS = sorted({path.name.split(".")[1] for path in ROOT.glob("Pulumi.?*.yaml")} - {"gce-l4x8"} - {"yaml"})


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_cost_and_plan_show_the_same_amounts(stack: str, tmp_path: Path) -> None:
    """Both round the same exact amount once: 1.046520 x 730 h is 763.96, of 1.0465 USD/h it would be 763.94."""
    report = costs(tmp_path, stack)
    made, _ = plan_of(Context(tmp_path, {}, show=lambda _line: None), stack)
    shown = plan_summary(made)
    of = made.cost
    if isinstance(of, LeaseTotal):
        amounts = {report.usd_per_lease: (of.lease_at_max, 2), report.usd_per_hour_at_most: (of.hourly_at_max, 4)}
    else:
        amounts = {
            report.usd_per_hour: (of.hourly, 4),
            report.usd_per_month_at_most: (of.monthly_at_max, 2),
            report.usd_per_month_without_traffic: (of.monthly_without_traffic, 2),
        }
    for amount, (planned, digits) in amounts.items():
        assert amount == exact_of(planned), "not rounded before it is shown"
        assert amount is not None
        assert round_usd(amount, digits) in shown or of.max_instances > 1
    for ends, planned_ends in (
        (report.usd_per_million_input_tokens, made.token_cost.input),
        (report.usd_per_million_output_tokens, made.token_cost.output),
    ):
        assert ends is not None
        assert (ends.low, ends.high) == tuple(map(exact_of, planned_ends))


def exact_of(amount: object) -> Decimal:
    assert isinstance(amount, Priced)
    return amount.usd


@pytest.mark.parametrize("stack", STACKS)
def test_kind_of_a_price_is_stated_once(stack: str, tmp_path: Path) -> None:
    text = costs(tmp_path, stack).text()
    assert "derived: derived" not in text
    assert "list price: pricing page" in text or "list price: Cloud Billing Catalog" in text


def test_regions_and_their_address_are_summed_and_shown_each(tmp_path: Path) -> None:
    regions, address = ["us-east4", "europe-west4"], {"domain": "llm.acme.example"}
    report = costs(tmp_path, "l4-qat", region="", regions=regions, address=address, cost={"max_hourly_usd": 9})
    near, far = report.regions
    assert (near.region, far.region) == tuple(regions)
    assert report.address is not None
    parts = (near.usd_per_hour_at_most, far.usd_per_hour_at_most, report.address.usd_per_hour)
    assert all(parts)
    assert report.usd_per_hour_at_most == sum(part or 0 for part in parts)
    assert (report.usd_per_hour, report.usd_per_hour_idle) == (near.usd_per_hour, report.address.usd_per_hour)
    assert {line.region for line in report.lines} == {*regions, None}
    assert set(report.address.usd_per_gib) == set(regions)
    assert "per hour at most in europe-west4" in report.text()
    one = costs(tmp_path, "l4-qat")
    assert (one.regions, one.address) == ((), None)
    assert one.usd_per_hour == near.usd_per_hour


def test_address_of_leases_costs_with_and_without_traffic(tmp_path: Path) -> None:
    address = {"domain": "llm.acme.example"}
    report = costs(tmp_path, "v6e4-moe", address=address, cost={"max_hourly_usd": 6})
    plain = costs(tmp_path, "v6e4-moe")
    assert report.address is not None
    for name in ("usd_per_hour_at_most", "usd_per_hour_idle"):
        assert getattr(report, name) - getattr(plain, name) == report.address.usd_per_hour
    assert len(report.lines) == len(plain.lines) + 1
    assert report.regions == ()
