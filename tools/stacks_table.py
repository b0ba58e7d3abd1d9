"""The table of all stacks in docs/stacks.md, out of the plan of each stack file.

python tools/stacks_table.py            the table, as Markdown
python tools/stacks_table.py --write    puts it into docs/stacks.md
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from made_sections import ROOT, put

sys.path.insert(0, str(ROOT))

from bezel.ops.project import Project
from bezel.planner import make_plan
from bezel.planner.money import Priced, text

if TYPE_CHECKING:
    from bezel.planner import Plan

COLUMNS = (
    "stack",
    "model",
    "accelerator, region",
    "context",
    "KV cache",
    "sequences of that length that fit",
    "memory left for KV",
    "tokens/s alone",
    "tokens/s together (users)",
    "USD per hour",
)


def table() -> str:
    """One row a stack, in the order of their names; memory and speed are the planner's estimates."""
    project = Project(ROOT)
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    for stack in project.stacks():
        plan = make_plan(project.configuration(stack), project="my-project", stack=stack)
        rows.append(_row(plan))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(plan: Plan) -> tuple[str, ...]:
    fit, speed, options = plan.fit, plan.estimate, plan.settings.vllm
    price = plan.cost.hourly
    derived = isinstance(price, Priced) and price.derived
    drafts = f", drafts {_range(plan.gain.alone, 1)} x" if plan.gain else ""
    return (
        f"`{plan.stack}`",
        f"`{plan.model}`",
        f"{plan.service.accelerator}, {plan.service.region}",
        str(fit.max_model_len),
        str(options.get("kv-cache-dtype", "bf16")),
        str(fit.full_context_sequences),
        f"{fit.kv_available_bytes / 1024**3:.2f} GiB",
        _range(speed.tokens_per_second_alone) + drafts,
        f"{_range(speed.tokens_per_second_batched)} ({speed.batch})",
        text(price, 4) + (" (derived)" if derived else ""),
    )


def _range(values: tuple[float, float], digits: int = 0) -> str:
    return f"{values[0]:.{digits}f} to {values[1]:.{digits}f}"


def main(flags: list[str]) -> None:
    """Print the table, or put it into its document."""
    if "--write" not in flags:
        sys.stdout.write(table())
        return
    put(ROOT / "docs" / "stacks.md", "tools/stacks_table.py", table())


if __name__ == "__main__":
    main(sys.argv[1:])
