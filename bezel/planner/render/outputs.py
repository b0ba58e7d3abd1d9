"""Stack outputs of a plan, as plain values: fit, start, speed, drafts, cost, price of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.assemble.lease_plan import LeasePlan
from bezel.planner.base.money import figure

if TYPE_CHECKING:
    from bezel.planner.assemble.plan import Plan


def plan_output(plan: Plan | LeasePlan) -> dict[str, object]:
    """The plan's figures, each with its basis; an unknown price is "unknown"."""
    if isinstance(plan, LeasePlan):
        starts = [plan.cost.seconds(seconds) for seconds in plan.start.seconds]
    else:
        starts = [plan.cost.cold_start(seconds) for seconds in plan.start.seconds]
    output: dict[str, object] = {
        "fit": plan.fit.as_output(),
        "weights": plan.weights.as_output(),
        "start": plan.start.as_output(),
        "estimate": plan.estimate.as_output(),
        "cost": {
            **plan.cost.as_output(),
            "usd_per_cold_start": [figure(start, 4) for start in starts],
            **plan.token_cost.as_output(),
        },
    }
    if plan.gain:
        output["speculation"] = plan.gain.as_output()
    return output
