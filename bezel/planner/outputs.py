"""What a stack's outputs say of its plan, as plain values: fit, start, speed, drafts, cost, the price of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.money import figure

if TYPE_CHECKING:
    from bezel.planner.plan import Plan


def plan_output(plan: Plan) -> dict[str, object]:
    """The plan's figures, each with what it rests on; an unknown price says "unknown"."""
    output: dict[str, object] = {
        "fit": plan.fit.as_output(),
        "weights": plan.service.weights.as_output(),
        "start": plan.start.as_output(),
        "estimate": plan.estimate.as_output(),
        "cost": {
            **plan.cost.as_output(),
            "usd_per_cold_start": [figure(plan.cost.cold_start(seconds), 4) for seconds in plan.start.seconds],
            **plan.token_cost.as_output(),
        },
    }
    if plan.gain:
        output["speculation"] = plan.gain.as_output()
    return output
