"""Figures beside a comparison's estimates: of the simulated server, and of measurements, each at its own load."""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bezel.planner.assemble.compare import Row
from bezel_catalog.measurements import measured_memory, measured_speed


class ObservedFigure(BaseModel):
    """A figure that is no estimate of the planner's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(description="id of the checkpoint")
    machine: str
    text: str = Field(description="the figure with its unit and its load")
    kind: Literal["simulated", "measured"]
    source: str | None = Field(default=None, description="source of a measurement")


def simulated_figures(rows: Sequence[Row], context: int) -> list[ObservedFigure]:
    """The simulated server's figures under the compared load, for the machines that it can simulate."""
    from bezel.operations.compare.simulation import simulate  # half a second, which a table alone does not need

    figures = []
    for row in rows:
        if result := simulate(row, context):
            rate, verdict = result
            text = f"{rate:.0f} tokens/s of the load ({verdict} the estimate)"
            figures.append(
                ObservedFigure(
                    model=row.checkpoint.id, machine=row.offer.machine, text=text, kind="simulated", source=None
                )
            )
    return figures


def measured_figures(rows: Sequence[Row]) -> Iterator[ObservedFigure]:
    """Valid measurements of the compared checkpoints."""
    names = {row.checkpoint.id for row in rows}
    for case in measured_speed():
        if case.model in names:
            load = f"{case.users} user{'s' * (case.users > 1)}, {case.output_tokens} tokens out"
            text = f"{case.tokens_per_second:g} tokens/s ({load})"
            yield ObservedFigure(model=case.model, machine=case.machine, text=text, kind="measured", source=case.source)
    for memory in measured_memory():
        if memory.model in names and memory.kv_tokens and not memory.disputed:
            text = f"{memory.kv_tokens} tokens of KV cache"
            yield ObservedFigure(
                model=memory.model, machine=memory.machine, text=text, kind="measured", source=memory.source
            )
