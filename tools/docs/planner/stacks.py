"""Table of all stacks in docs/stacks.md, from the plan of each stack file.

python -m tools.docs.planner.stacks            the table, as Markdown
python -m tools.docs.planner.stacks --write    puts it into docs/stacks.md
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bezel.engine.project.project import Project
from bezel.planner import LeasePlan, PlanError, make_plan
from bezel.planner.base.money import Priced, text
from bezel_base.text.markdown import table_row
from bezel_catalog.quantities import duration_text
from bezel_catalog.sizing.pooled_speed import PooledEstimate
from bezel_catalog.sizing.tpu_memory import TpuFit
from tools.docs.generated_sections import ROOT, put

if TYPE_CHECKING:
    from bezel.planner import AnyPlan

COLUMNS = (
    "stack",
    "model",
    "accelerator, where",
    "context",
    "KV cache",
    "sequences of that length that fit",
    "memory left for KV",
    "tokens/s alone",
    "tokens/s together (users)",
    "USD per hour",
)


def table() -> str:
    """One row for each stack, in the order of their names; memory and speed are the planner's estimates."""
    project = Project(ROOT)
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    for stack in project.stacks():
        configuration = project.configuration(stack)
        try:
            rows.append(_row(make_plan(configuration, project="my-project", stack=stack, models=project.models())))
        except PlanError:
            # The only reason allowed for a stack file of ours: the user has to add its price.
            start = (f"`{stack}`", f"`{configuration['model']}`", str(configuration["accelerator"]))
            rows.append((*start, *("-" for _ in COLUMNS[4:]), "unknown: refused until you add the row"))
    return "".join(f"{table_row(cells)}\n" for cells in rows)


def _row(plan: AnyPlan) -> tuple[str, ...]:
    fit, speed, options = plan.fit, plan.estimate, plan.settings.vllm
    if isinstance(plan, LeasePlan):
        terms, price = plan.terms, plan.cost.machines_hourly
        count = f"{len(terms.names)} x " if len(terms.names) > 1 else ""
        where = f"{count}{terms.hardware.id}, {' or '.join(zone.zone for zone in terms.zones)}"
        per = f", {text(plan.cost.machines_lease, 2)} for {duration_text(plan.cost.run_seconds)}"
    else:
        price, per = plan.cost.hourly, ""
        where = f"{plan.service.accelerator}, {plan.service.region}"
    if isinstance(speed, PooledEstimate):
        raise TypeError(f"{plan.stack} pools: the table has no columns for inputs a second")
    derived = isinstance(price, Priced) and price.derived
    drafts = f", drafts {_range(plan.gain.alone, 1)} x" if plan.gain else ""
    return (
        f"`{plan.stack}`",
        f"`{plan.model}`",
        where,
        str(fit.max_model_len),
        "bf16" if isinstance(fit, TpuFit) else str(options.get("kv-cache-dtype", "bf16")),
        str(fit.full_context_sequences),
        f"{fit.kv_available_bytes / 1024**3:.2f} GiB",
        _range(speed.tokens_per_second_alone) + drafts,
        f"{_range(speed.tokens_per_second_batched)} ({speed.batch})",
        text(price, 4) + (" (derived)" if derived else "") + per,
    )


def _range(values: tuple[float, float], digits: int = 0) -> str:
    return f"{values[0]:.{digits}f} to {values[1]:.{digits}f}"


def main(flags: list[str]) -> None:
    """Print the table, or put it into its document."""
    if "--write" not in flags:
        sys.stdout.write(table())
        return
    put(ROOT / "docs" / "stacks.md", "tools.docs.planner.stacks", table())


if __name__ == "__main__":
    main(sys.argv[1:])
