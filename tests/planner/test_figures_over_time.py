"""`observability.metrics`: off it changes nothing; on, the plan has a collector, its samples and their price."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bezel.planner import LeasePlan, Plan, make_plan
from bezel.planner.base.money import Priced
from bezel.planner.render.short_summary import short_blocks
from bezel.planner.render.summary import plan_summary
from bezel.resource_cost.stack_cost import StateResource, stack_cost
from bezel_base.terminal.layout import lay_out
from bezel_catalog.vllm.kept_series import KEPT_SERIES, RECORDED_SAMPLES, SAMPLES_ABOUT_A_SCRAPE, samples_of_scrape
from tests.support.operations.scraped_text import count_samples
from tests.support.planner.l4_stack import L4, with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_plan, with_lease_changes
from tests.support.policies.harness import SERVICE, service

KEPT = {"observability": {"metrics": True}}
RECORDED = Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm"
SERIES = re.compile(r"(?P<name>[a-z_:]\w*(?::\w+)?)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")


def plan_with(**changes: Any) -> Plan:
    plan = make_plan(with_changes({"cost": {"max_hourly_usd": 9}, **changes}), project="acme-llm", stack="l4-qat")
    assert isinstance(plan, Plan)
    return plan


def short(plan: Plan | LeasePlan) -> str:
    return "\n".join(lay_out(short_blocks(plan)))


def test_nothing_of_figures_is_planned_unless_the_stack_file_asks() -> None:
    plan = plan_with()
    assert plan.metrics is None
    assert "monitoring.googleapis.com" not in plan.apis
    assert "metrics" not in plan.as_output()
    assert plan_summary(plan) == plan_summary(plan_with(observability={"metrics": False}))
    for text in (plan_summary(plan), short(plan)):
        assert "collector" not in text
        assert "igures over time" not in text


def test_each_instance_pays_for_its_collector_in_every_region() -> None:
    without, plan = plan_with(), plan_with(**KEPT)
    metrics = plan.metrics
    assert metrics is not None
    assert (metrics.cpu, metrics.memory_gib, metrics.interval_seconds) == (1, 1, 30)
    assert metrics.image.name.endswith("cloud-run-gmp-sidecar:1.9.2@" + metrics.image.digest)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", metrics.image.digest)
    assert "monitoring.googleapis.com" in plan.apis
    for fact in ("1 vCPU, 1 GiB in each instance", "passed its startup probe", "roles/monitoring.metricWriter"):
        assert fact in plan_summary(plan)
    of_collector = Decimal("0.000018") * 3600 + Decimal("0.000002") * 3600
    assert plan.cost.hourly == Priced(without.cost.hourly.usd + of_collector, derived=True)  # type: ignore[union-attr]
    assert plan.cost.monthly_without_traffic == without.cost.monthly_without_traffic
    regions = plan_with(**KEPT, region="", regions=["us-east4", "europe-west4"], scaling={"max_instances": 3})
    assert len({len(each.cost.lines) for each in regions.regions}) == 1
    assert len(regions.regions[0].cost.lines) == len(without.cost.lines) + 2


def test_a_preview_of_both_containers_has_the_price_of_the_plan() -> None:
    plan = plan_with(**KEPT)
    assert plan.metrics is not None
    inputs = service()
    inputs["template"]["containers"][0]["resources"]["limits"] |= {"cpu": "4", "memory": "16Gi"}
    limits = {"cpu": str(plan.metrics.cpu), "memory": f"{plan.metrics.memory_gib}Gi"}
    plain = stack_cost([StateResource("it", SERVICE, inputs)])
    collector = {"image": plan.metrics.image.name, "resources": {"limits": limits}}
    inputs["template"]["containers"].append(collector)
    shown = stack_cost([StateResource("it", SERVICE, inputs)])
    assert isinstance(shown.hourly, Priced)
    assert shown.hourly.usd == plan.cost.hourly_at_max.usd  # type: ignore[union-attr]
    assert (plain.samples, shown.samples) == (None, plan.metrics.cost.usd(plan.server_hours["month at most"]))


def test_samples_are_bounded_and_priced_for_the_instances_of_a_month() -> None:
    plan = plan_with(
        **KEPT,
        environment="prod",
        scaling={"min_instances": 1, "max_instances": 4},
        region="",
        regions=["us-east4", "europe-west4"],
    )
    assert plan.metrics is not None
    # Beside each scrape two samples about the target, and eight a minute of the collector about itself.
    assert plan.metrics.samples_per_instance_hour == (samples_of_scrape() + 2) * 120 + 8 * 60
    assert plan.server_hours == {"month without traffic": 2 * 730, "month at most": 8 * 730}
    assert plan.metrics.cost.millions(Decimal(8 * 730)) == Decimal("140.8608")
    assert plan.metrics.cost.usd_of_samples(Decimal(8 * 730)) == Priced(Decimal("8.451648"))
    # Three reads a minute, of which 10,000 of a month are free.
    assert plan.metrics.cost.usd_of_reads(Decimal(8 * 730)) == Priced((Decimal(180 * 8 * 730) - 10_000) * 3 / 1_000_000)
    assert plan.metrics.cost.usd_of_reads(Decimal(55)) == Priced(Decimal(0))
    assert plan.as_output()["metrics"]["samples"]["month at most"] == {  # type: ignore[index]
        "millions_at_most": 140.861,
        "usd_at_most": 11.58,
    }
    assert "140.9 million samples, 11.58 USD with reads of their configuration" in short(plan)
    for fact in (
        "140.9 million samples, 8.45 USD",
        "1,051,200 of its secret, 3.12 USD",
        "0.06 USD a month each beyond 6",
    ):
        assert fact in plan_summary(plan)
    zero = plan_with(**KEPT)
    assert zero.server_hours["month without traffic"] == 0


def test_a_schedule_counts_the_hours_of_its_mean() -> None:
    hours = [{"cron": "0 0 * * *", "min_instances": 2}, {"cron": "0 12 * * *", "min_instances": 0}]
    plan = plan_with(
        **KEPT, scaling={"max_instances": 2, "schedule": hours}, cost={"max_idle_hourly_usd": 9, "max_hourly_usd": 9}
    )
    assert float(plan.server_hours["month without traffic"]) == pytest.approx(730)


def test_leased_machines_pay_for_samples_alone_by_their_hours() -> None:
    without = lease_plan()
    plan = lease_plan(V6E4_MOE | KEPT)
    assert plan.metrics is not None
    assert (plan.metrics.cpu, plan.cost.hourly_at_max) == (0, without.cost.hourly_at_max)
    assert "monitoring.googleapis.com" in plan.apis
    assert plan.server_hours == {"leases": 4}
    assert "on each machine, in its price" in plan_summary(plan)
    assert plan.metrics.cost.highest == samples_of_scrape() * 120
    assert plan.metrics.cost.usd_of_reads(Decimal(10**6)) == Priced(Decimal(0))
    assert "its secret" not in plan_summary(plan)
    windows = {"zones": [{"zone": "us-east5-a"}], "count": 2, "duration": "6h"}
    windows["hours"] = [{"start": "0 8 * * *", "end": "0 14 * * *"}]
    leased = lease_plan(with_lease_changes(V6E4_MOE | KEPT, lease=windows))
    assert leased.server_hours == {"month of leases": 365}


def test_a_fallback_keeps_its_figures_where_its_lease_does() -> None:
    fallback = {
        "accelerator": "nvidia-l4",
        "region": "us-east4",
        "model": "gemma-4-12b-it-qat-w4a16",
        "accept_shorter_context": True,
    }
    for kept in (True, False):
        plan = lease_plan(V6E4_MOE | {"fallback": fallback, "observability": {"metrics": kept}})
        assert plan.fallback is not None
        assert (plan.fallback.plan.metrics is not None) == kept
        assert ("vcpu of the collector" in [line.item for line in plan.fallback.cost.lines]) == kept


def test_kept_families_have_the_labels_and_buckets_of_a_recorded_server() -> None:
    labels: dict[str, set[str]] = defaultdict(set)
    buckets: Counter[str] = Counter()
    for line in (RECORDED / "metrics-mtp.txt").read_text().splitlines():
        if not line.startswith("#") and (match := SERIES.fullmatch(line)):
            name = match["name"].removesuffix("_bucket")
            labels[name] |= set(re.findall(r'(\w+)="', match["labels"] or ""))
            buckets[name] += match["name"].endswith("_bucket")
    for each in KEPT_SERIES:
        assert labels[each.name] - {"le"} == {*each.labels}, each.name
        grows = each.name == "vllm:request_generation_tokens"  # its buckets end at the length of the model
        assert buckets[each.name] == each.buckets or (grows and 0 < buckets[each.name] < each.buckets), each.name


def test_samples_that_localcloud_counts_are_those_of_the_plan() -> None:
    """Of a server under a mixed load as many as recorded, with its kinds alone; of none more than most."""
    recorded = (Path(__file__).parent / "data/metrics_mixed_load.txt").read_text()
    kinds = "".join(f"# TYPE {each.name} {each.kind}\n" for each in KEPT_SERIES)
    assert count_samples(kinds + re.sub(r"(?m)^#.*\n", "", recorded)) == RECORDED_SAMPLES + SAMPLES_ABOUT_A_SCRAPE
    for name in ("metrics.txt", "metrics-mtp.txt", "metrics-ngram.txt"):
        text = (RECORDED / name).read_text()
        number = count_samples(text[text.index("# HELP") :])
        assert SAMPLES_ABOUT_A_SCRAPE + 15 < number < samples_of_scrape(), name


def test_the_stack_of_these_tests_keeps_no_figures() -> None:
    assert "observability" not in L4
