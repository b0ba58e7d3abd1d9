"""Comparison of a family or checkpoint on every machine: memory, price, estimated speed. Asks no cloud.

Leaves out how figures are computed: see bezel.planner.assemble.compare.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.compare.measured import ObservedFigure, measured_figures, simulated_figures
from bezel.operations.compare.table import alone_of, load_rate, table
from bezel.operations.context import Context
from bezel.operations.results import Result
from bezel.planner.assemble.compare import (
    DEFAULT_CONTEXT,
    USERS,
    Row,
    checkpoints,
    families,
    load_of,
    shortest_context,
)
from bezel.planner.assemble.compare import compare as rows_of
from bezel.planner.base.money import UNKNOWN, Unpriced, figure
from bezel.planner.base.problems import one_of
from bezel.planner.cost.service_cost import NOT_INCLUDED
from bezel.planner.cost.token_cost import POOLED_DIGITS, UTILISATION
from bezel.planner.vllm.model.pooling import does_pool
from bezel_base.errors import Problem, UserError
from bezel_base.terminal.blocks import Block
from bezel_catalog import Model, closest_record, ids_by_hub_id, unservable_form
from bezel_catalog.models import using_models
from bezel_catalog.project_models import read_project_models
from bezel_catalog.sizing.pooled_speed import PooledEstimate
from bezel_catalog.sizing.roofline import Range, round_range

Kind = Literal["estimate", "list price", "derived", "unknown"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CompareArguments(Arguments):
    """Which model, and for which requests."""

    model: Annotated[str, Reach.INSIDE, Option("NAME")] = Field(
        max_length=200, description="a model family or a checkpoint, e.g. gemma-4-12b"
    )
    context: Annotated[int | None, Reach.INSIDE, Option("TOKENS")] = Field(
        default=None, description=f"longest request that must fit, in tokens (default: {DEFAULT_CONTEXT})"
    )
    simulate: Annotated[bool, Reach.INSIDE] = Field(
        default=False, description="add the throughput of the simulated server under this load"
    )


class Load(_Part):
    """The load that speed and cost of tokens are estimated for."""

    users: int
    prompt_tokens: int
    output_tokens: int = Field(description="0 for a model that pools: it generates none")
    utilisation: float = Field(description="share of the time that the machine serves")


class Fit(_Part):
    """Whether the checkpoint runs there."""

    value: bool
    kind: Kind = "estimate"
    because: str | None = Field(description="what is too large, or why it is refused; null where it fits")


class Count(_Part):
    """A number of sequences, tokens or users."""

    value: int | None
    kind: Kind = "estimate"


class SourcedPrice(_Part):
    """A price in USD."""

    value: float | str | None
    kind: Kind
    source: str
    reason: str | None = Field(default=None, description="why the price is unknown")


class Span(_Part):
    """Both ends of an estimate; null where it does not fit, or where a price is unknown."""

    value: tuple[float | str, ...] | None
    kind: Kind


class Machine(_Part):
    """One checkpoint on one machine."""

    model: str
    machine: str
    group: str
    deployable: bool = Field(description="whether Bezel deploys there")
    where: str | None = Field(description="region of the price")
    fits: Fit
    sequences_at_a_time: Count = Field(description="sequences of the compared context that the KV cache holds")
    longest_context: Count = Field(description="longest context, in tokens, of which one sequence fits")
    usd_per_hour: SourcedPrice
    users_at_a_time: Count = Field(description="users who decode together; of a model that pools, inputs of a step")
    tokens_per_second_alone: Span | None = Field(
        description="output tokens per second of one user; null for a model that pools"
    )
    tokens_per_second_load: Span = Field(
        description="output tokens per second of the load; of a model that pools, tokens of its inputs"
    )
    inputs_per_second: Span | None = Field(description="inputs per second of a model that pools; null for others")
    usd_per_million_input_tokens: Span
    usd_per_million_output_tokens: Span | None = Field(description="null for a model that pools: it generates none")


class Comparison(Result):
    """A model on every machine."""

    model: str
    context: int = Field(description="longest request that must fit, in tokens")
    load: Load
    rows: tuple[Machine, ...]
    simulated: tuple[ObservedFigure, ...]
    measured: tuple[ObservedFigure, ...]
    not_included: tuple[str, ...] = Field(description="costs that no row has")
    blocks: tuple[Any, ...] = Field(exclude=True, repr=False)

    def page(self) -> tuple[Block, ...]:
        """The tables, then the notes."""
        return self.blocks


def compare(context: Context, arguments: CompareArguments) -> Comparison:
    """A family or checkpoint on every machine; one of the project's own models too.

    Raises:
        UserError: The model is unknown, or the context out of its range.
    """
    with using_models(read_project_models(context.folder)):
        return _comparison(arguments)


def _comparison(arguments: CompareArguments) -> Comparison:
    name = arguments.model
    models = checkpoints(name)
    context = arguments.context or _default_context(models)
    _check(name, models, context)
    rows = [row for checkpoint in models for row in rows_of(checkpoint, context)]
    of_simulation = tuple(simulated_figures(rows, context)) if arguments.simulate else ()
    of_measurements = tuple(measured_figures(rows))
    prompt, output = load_of(context, pools=does_pool(models[0]))
    return Comparison(
        model=name,
        context=context,
        load=Load(users=USERS, prompt_tokens=prompt, output_tokens=output, utilisation=UTILISATION),
        rows=tuple(_machine(row) for row in rows),
        simulated=of_simulation,
        measured=of_measurements,
        not_included=tuple(NOT_INCLUDED),
        blocks=tuple(table(name, context, rows, of_simulation, of_measurements)),
    )


def _default_context(models: Sequence[Model]) -> int:
    """The compared context without a choice: an encoder's own where that is shorter."""
    if models and does_pool(models[0]):
        return min(DEFAULT_CONTEXT, models[0].architecture.context)
    return DEFAULT_CONTEXT


def _check(name: str, models: Sequence[Model], context: int) -> None:
    if not models:
        consequence = unservable_form(name) or "it is neither a model family nor a checkpoint of the catalogue."
        near = closest_record(name, families(), ids_by_hub_id())
        raise UserError(Problem("--model", name, consequence, one_of(families(), near)))
    shortest, limit = shortest_context(models[0]), models[0].architecture.context
    if not shortest <= context <= limit:
        consequence = f"{name} was made for {limit} tokens, and the compared load needs {shortest}."
        repair = f"choose {shortest} to {limit}." if shortest <= limit else "compare a model with a longer context."
        raise UserError(Problem("--context", context, consequence, repair))


def _machine(row: Row) -> Machine:
    offer, speed, tokens, pools = row.offer, row.speed, row.tokens, does_pool(row.checkpoint)
    pooled = speed if isinstance(speed, PooledEstimate) else None
    output = tokens.output if tokens else None
    unpriced = offer.hourly.reason if isinstance(offer.hourly, Unpriced) else None
    return Machine(
        model=row.checkpoint.id,
        machine=offer.machine,
        group=offer.group,
        deployable=offer.group != "other platforms, for comparison only",
        where=offer.region or None,
        fits=Fit(value=not (row.refused or row.breaks), because=row.refused or row.breaks),
        sequences_at_a_time=Count(value=row.sequences),
        longest_context=Count(value=row.longest),
        usd_per_hour=SourcedPrice(
            value=figure(offer.hourly, 4), kind=offer.price_kind, source=offer.source, reason=unpriced
        ),
        users_at_a_time=Count(value=speed.batch if speed else None),
        tokens_per_second_alone=None if pools else _span(_round_ends(alone_of(speed))),
        tokens_per_second_load=_span(_round_ends(load_rate(speed))),
        inputs_per_second=_span(_round_ends(pooled.inputs_per_second if pooled else None)) if pools else None,
        usd_per_million_input_tokens=_span(
            [figure(end, POOLED_DIGITS if pools else 3) for end in tokens.input] if tokens else None
        ),
        usd_per_million_output_tokens=None if pools else _span([figure(end, 3) for end in output] if output else None),
    )


def _round_ends(values: Range | None) -> list[float] | None:
    return None if values is None else round_range(values, 1)


def _span(value: Sequence[float | str] | None) -> Span:
    if value is None or UNKNOWN in value:
        return Span(value=None, kind="unknown")
    return Span(value=tuple(value), kind="estimate")
