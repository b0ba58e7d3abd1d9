"""Buckets that a stack's servers read their weights from: one, or a copy in each region. Pure."""

from bezel.planner import AnyPlan, Plan


def stack_buckets(plan: AnyPlan) -> tuple[str, ...]:
    """The buckets of a plan, the first region's first; () where its servers read none."""
    named = [each.bucket for each in plan.regions] if isinstance(plan, Plan) else [plan.weights.bucket]
    return tuple(dict.fromkeys(bucket for bucket in named if bucket))
