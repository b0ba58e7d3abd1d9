"""What is paid for without traffic is refused where a stack is to scale to zero, and allowed where it says so."""

import pytest

from bezel.planner import make_plan
from tests.support.planner.l4_stack import problems_of, with_changes

ONE = {"scaling": {"min_instances": 1}}
TO_ZERO = "lower `bezel:scaling.min_instances` to 0, or raise `bezel:cost.max_idle_hourly_usd` to 1.05"


@pytest.mark.parametrize(
    ("changes", "why", "repair"),
    [
        (
            ONE,
            "without traffic it costs 1.0465 USD per hour, 763.96 per month; dev scales to zero",
            f"{TO_ZERO}, or set the environment to prod.",
        ),
        (
            {**ONE, "environment": "prod", "cost": {"max_idle_hourly_usd": 1}},
            "bezel:cost.max_idle_hourly_usd is 1",
            f"{TO_ZERO}.",
        ),
    ],
)
def test_more_than_may_be_paid_without_traffic_is_refused(changes, why, repair):
    (problem,) = problems_of(changes)
    assert (problem.key, problem.value) == ("bezel:scaling.min_instances", "1")
    assert why in problem.consequence
    assert problem.repair == repair


@pytest.mark.parametrize(
    "changes",
    [{}, {**ONE, "environment": "prod"}, {**ONE, "cost": {"max_idle_hourly_usd": 1.05}}],
    ids=["none runs", "prod has no limit of its own", "as much as may be"],
)
def test_what_may_be_paid_without_traffic_is_planned(changes):
    assert make_plan(with_changes(changes), project="bezel-local", stack="l4-qat")
