"""The section `observability`: off by default, and no setting in it without an effect."""

from typing import Any

import pytest

from bezel.planner import LeasePlan, Plan, PlanError, make_plan
from bezel.planner.render.summary import plan_summary
from tests.support.planner.v6e_stack import V6E4_MOE

SETTINGS: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}


ACCOUNT = "012345-6789AB-CDEF01"
KEPT = {"scaling": {"min_instances": 1}, "cost": {"max_idle_hourly_usd": 2}}


def plan(**observability: Any) -> Plan:
    made = make_plan({**SETTINGS, "observability": observability}, project="acme-llm", stack="l4-qat")
    assert isinstance(made, Plan)
    return made


def test_nothing_is_watched_unless_the_stack_file_asks_for_it() -> None:
    made = plan()
    assert "monitoring.googleapis.com" not in made.apis
    assert not any("Monitoring" in part for part in made.cost.not_included)


def test_an_uptime_check_needs_instances_that_run_and_all_networks() -> None:
    watched = {**SETTINGS, **KEPT, "observability": {"uptime": True}}
    made = make_plan(watched, project="acme-llm", stack="l4-qat")
    assert "monitoring.googleapis.com" in made.apis
    assert any("uptime checks" in part for part in made.cost.not_included)
    inside = {"access": {"ingress": "internal"}, "smoke": {"inside": True}}
    with pytest.raises(PlanError, match="checks come from the internet"):
        make_plan({**watched, **inside}, project="acme-llm", stack="l4-qat")


def test_a_budget_needs_its_api_alone_and_may_have_the_address() -> None:
    made = plan(budget=100, billing_account=ACCOUNT, email="team@example.com")
    assert "billingbudgets.googleapis.com" in made.apis
    assert "billingbudgets.googleapis.com" not in plan(alerts=True).apis
    assert not any("Monitoring" in part for part in made.cost.not_included)


@pytest.mark.parametrize("part", ["alerts", "dashboard"])
def test_what_is_watched_needs_its_api_and_alerts_have_an_unknown_price(part: str) -> None:
    made = plan(**{part: True})
    assert "monitoring.googleapis.com" in made.apis
    assert any("price unknown" in name for name in made.cost.not_included) == (part == "alerts")


@pytest.mark.parametrize(
    ("wrong", "key", "why"),
    [
        ({"alerts": True, "email": "nobody"}, "observability.email", "no mail can be sent"),
        ({"email": "a@example.com"}, "observability.email", "without alerts"),
        ({"dashboard": True, "max_cold_starts": 3}, "observability.max_cold_starts", "without alerts"),
        ({"alerts": True, "max_ttft_seconds": 2}, "observability.max_ttft_seconds", "without vLLM's figures"),
        ({"metrics": True, "max_tpot_seconds": 0.05}, "observability.max_tpot_seconds", "without alerts"),
        ({"max_ttft_seconds": 2}, "observability.max_ttft_seconds", "without alerts"),
        ({"alerts": True, "metrics": True, "max_ttft_seconds": 3000}, "observability.max_ttft_seconds", "out of range"),
        (
            {"alerts": True, "metrics": True, "max_tpot_seconds": 0.005},
            "observability.max_tpot_seconds",
            "out of range",
        ),
        ({"alerts": True, "metrics": True, "max_ttft_seconds": 0}, "observability.max_ttft_seconds", "out of range"),
        ({"alerts": True, "max_error_share": 1.5}, "observability.max_error_share", "out of range"),
        ({"alerts": True, "idle_hours": 48}, "observability.idle_hours", "out of range"),
        ({"alerts": True, "up_time": True}, "observability.up_time", "does not exist"),
        ({"uptime": True}, "observability.uptime", "would keep an instance running"),
        ({"budget": 100}, "observability.billing_account", "belongs to a billing account"),
        ({"alerts": True, "billing_account": ACCOUNT}, "observability.billing_account", "without a budget"),
        ({"dashboard": True, "currency": "EUR"}, "observability.currency", "without a budget"),
        ({"budget": 100, "billing_account": "mine"}, "observability.billing_account", "the form of this setting"),
        ({"budget": 0, "billing_account": ACCOUNT}, "observability.budget", "out of range"),
    ],
)
def test_a_setting_that_cannot_be_or_has_no_effect_is_refused(wrong: dict[str, Any], key: str, why: str) -> None:
    with pytest.raises(PlanError) as refused:
        plan(**wrong)
    (problem,) = refused.value.problems
    assert problem.key == f"bezel:{key}"
    assert why in problem.consequence


def lease_plan(**observability: Any) -> LeasePlan:
    made = make_plan({**V6E4_MOE, "observability": observability}, project="acme-llm", stack="moe")
    assert isinstance(made, LeasePlan)
    return made


def test_leases_have_alerts_a_dashboard_and_a_budget_with_apis_and_costs() -> None:
    watched = lease_plan(
        alerts=True,
        dashboard=True,
        email="team@example.com",
        max_error_share=0.1,
        budget=100,
        billing_account=ACCOUNT,
        currency="EUR",
    )
    assert watched.apis[-2:] == ("monitoring.googleapis.com", "billingbudgets.googleapis.com")
    assert any("price unknown" in part for part in watched.cost.not_included)
    assert "alerts of Cloud Monitoring" in plan_summary(watched)
    assert watched.cost.as_output()["not_included"] == list(watched.cost.not_included)


def test_leases_are_not_watched_unless_the_stack_file_asks_for_it() -> None:
    unwatched = lease_plan()
    assert not {"monitoring.googleapis.com", "billingbudgets.googleapis.com"} & set(unwatched.apis)
    assert "Cloud Monitoring" not in plan_summary(unwatched)
    assert not any("Monitoring" in part for part in lease_plan(dashboard=True).cost.not_included)


def test_settings_without_a_meaning_for_leases_are_refused_by_name() -> None:
    with pytest.raises(PlanError) as refused:
        lease_plan(uptime=True, max_cold_starts=3, idle_hours=5, email="nobody", budget=5)
    problems = {str(problem.key).removeprefix("bezel:observability."): problem for problem in refused.value.problems}
    assert set(problems) == {"uptime", "max_cold_starts", "idle_hours", "email", "billing_account"}
    for key, why in (("uptime", "ends by itself"), ("max_cold_starts", "starts a machine"), ("idle_hours", "the same")):
        assert why in problems[key].consequence
        assert problems[key].repair == "remove it."


@pytest.mark.parametrize(
    ("wrong", "key", "why"),
    [
        ({"dashboard": True, "max_error_share": 0.2}, "max_error_share", "without alerts"),
        ({"email": "a@example.com"}, "email", "without alerts"),
        ({"alerts": True, "currency": "EUR"}, "currency", "without a budget"),
    ],
)
def test_a_setting_of_leases_without_an_effect_is_refused(wrong: dict[str, Any], key: str, why: str) -> None:
    with pytest.raises(PlanError) as refused:
        lease_plan(**wrong)
    (problem,) = refused.value.problems
    assert problem.key == f"bezel:observability.{key}"
    assert why in problem.consequence


def test_a_value_of_leases_out_of_range_is_refused_for_both_reasons() -> None:
    with pytest.raises(PlanError) as refused:
        lease_plan(alerts=True, idle_hours=48)
    consequences = [(str(problem.key), problem.consequence) for problem in refused.value.problems]
    assert {key for key, _ in consequences} == {"bezel:observability.idle_hours"}
    assert len(consequences) == 2
