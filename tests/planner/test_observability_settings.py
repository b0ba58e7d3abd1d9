"""The section `observability`: off by default, and no setting in it without an effect."""

from typing import Any

import pytest

from bezel.planner import Plan, PlanError, make_plan

SETTINGS: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}


def plan(**observability: Any) -> Plan:
    made = make_plan({**SETTINGS, "observability": observability}, project="acme-llm", stack="l4-qat")
    assert isinstance(made, Plan)
    return made


def test_nothing_is_watched_unless_the_stack_file_asks_for_it() -> None:
    made = plan()
    assert "monitoring.googleapis.com" not in made.apis
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
        ({"alerts": True, "max_error_share": 1.5}, "observability.max_error_share", "out of range"),
        ({"alerts": True, "idle_hours": 48}, "observability.idle_hours", "out of range"),
        ({"alerts": True, "uptime": True}, "observability.uptime", "does not exist"),
    ],
)
def test_a_setting_that_cannot_be_or_has_no_effect_is_refused(wrong: dict[str, Any], key: str, why: str) -> None:
    with pytest.raises(PlanError) as refused:
        plan(**wrong)
    (problem,) = refused.value.problems
    assert problem.key == f"bezel:{key}"
    assert why in problem.consequence


def test_leases_have_no_alerts() -> None:
    lease: dict[str, Any] = {"model": "gemma-4-12b-it", "accelerator": "v6e-1", "region": "us-east5"}
    lease |= {"lease": {"zones": [{"zone": "us-east5-a"}]}}
    with pytest.raises(PlanError, match="bezel:observability"):
        make_plan({**lease, "observability": {"alerts": True}}, project="acme-llm", stack="v6e1")
