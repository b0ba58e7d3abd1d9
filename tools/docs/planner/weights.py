"""Tables of docs/weights.md, from the planner's table of loadings and the plan of one stack under each of them.

python -m tools.docs.planner.weights            the tables, as Markdown
python -m tools.docs.planner.weights --write    puts them into docs/weights.md
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bezel.engine.project.project import Project
from bezel.planner import LeasePlan, make_plan
from bezel.planner.base.deployment import MOUNT_FLAGS
from bezel.planner.base.money import figure
from bezel.planner.vllm.loading import LOADINGS
from bezel_catalog.quantities import GIB
from tools.docs.generated_sections import ROOT, put, table

if TYPE_CHECKING:
    from bezel.planner import Plan

STACK = "l4-qat"


def tables() -> str:
    """Tables of the loadings, their effect on one stack, and the flags of the mount."""
    plans = {name: _plan(name) for name in LOADINGS}
    loadings = [(f"`{name}`", loading.description, _options(plans[name])) for name, loading in LOADINGS.items()]
    figures = [(f"`{name}`", *_figures(plan), LOADINGS[name].speed_source) for name, plan in plans.items()]
    flags = [(f"`{flag}`", why) for flag, why in MOUNT_FLAGS.items()]
    return "\n".join(
        [
            table(("`weights.loading`", "what happens", "options of `vllm serve`"), loadings),
            f"For `{STACK}` ({plans['fuse'].model} on {plans['fuse'].service.accelerator}), estimated, not measured:\n",
            table(
                ("", "model argument", "host memory", "cold start", "USD per cold start", "the speed rests on"), figures
            ),
            "A mount has these flags of GCS FUSE:\n",
            table(("flag", "why"), flags),
        ]
    )


def _plan(loading: str) -> Plan:
    settings = Project(ROOT).configuration(STACK) | {"weights": {"loading": loading}}
    plan = make_plan(settings, project="my-project", stack=STACK)
    if isinstance(plan, LeasePlan):
        raise TypeError(f"{STACK} is a lease: its plan has no arguments of a service")
    return plan


def _options(plan: Plan) -> str:
    names = ("load-format", "model-loader-extra-config", "safetensors-load-strategy")
    shown = [word for word in plan.service.arguments if word.removeprefix("--").partition("=")[0] in names]
    return "<br>".join(f"`{word}`" for word in shown)


def _figures(plan: Plan) -> tuple[str, ...]:
    low, high = plan.start.seconds
    costs = [figure(plan.cost.start(seconds), 4) for seconds in plan.start.seconds]
    return (
        f"`{plan.service.weights.model}`",
        f"{plan.fit.host_needed_bytes / GIB:.1f} of {plan.service.memory_gib} GiB",
        f"{low:.0f} to {high:.0f} s",
        f"{costs[0]} to {costs[1]}",
    )


def main(flags: list[str]) -> None:
    """Print the tables, or write them into their document."""
    if "--write" not in flags:
        sys.stdout.write(tables())
        return
    put(ROOT / "docs" / "weights.md", "tools.docs.planner.weights", tables())


if __name__ == "__main__":
    main(sys.argv[1:])
