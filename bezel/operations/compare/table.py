"""Comparison as tables with their notes. An unknown figure is shown as unknown. Pure."""

import itertools
from collections.abc import Iterator, Sequence

from bezel.operations.compare.measured import ObservedFigure
from bezel.planner.assemble.compare import USERS, Row, load_of
from bezel.planner.base.money import UNKNOWN, Amount, Unpriced, text
from bezel.planner.cost.service_cost import NOT_INCLUDED
from bezel.planner.cost.token_cost import UTILISATION
from bezel.planner.vllm.model.pooling import does_pool
from bezel_base.terminal.blocks import Block, Line, Role, Table
from bezel_catalog.architectures.layers import EncoderLayers
from bezel_catalog.quantities import GIB
from bezel_catalog.sizing.memory import MEMORY_BASIS
from bezel_catalog.sizing.pooled_speed import PooledEstimate
from bezel_catalog.sizing.roofline import DECODE_EFFICIENCY, PREFILL_EFFICIENCY, Estimate, Range, percent
from bezel_catalog.sizing.tpu_memory import TPU_MEMORY_BASIS, WITHOUT_CACHE_BASIS

_POOLED_DIGITS = 4
# What machines are compared by comes first: the last columns move below the rows of a narrow terminal.
_HEADS = ("machine", "at a time", "USD/h", "one user", "the load", "USD/M out", "price", "where", "longest")
_POOLED_HEADS = ("machine", "at a time", "USD/h", "inputs/s", "tokens/s", "USD/M in", "price", "where", "longest")


def table(
    name: str,
    context: int,
    rows: Sequence[Row],
    simulated: Sequence[ObservedFigure],
    measured: Sequence[ObservedFigure],
) -> Iterator[Block]:
    """The comparison: its load, a table for each checkpoint, the notes.

    Args:
        name: Model family or checkpoint.
        context: Longest request that must fit, in tokens.
        rows: A row for each checkpoint and machine.
        simulated: Figures of the simulated server.
        measured: Measurements.
    """
    pools = does_pool(rows[0].checkpoint)
    prompt, output = load_of(context, pools=pools)
    of_load = f"inputs of {prompt} tokens" if pools else f"{USERS} users, {prompt} tokens in, {output} out"
    cache = "" if pools and not _keeps_cache(rows) else ", 16-bit KV cache"
    yield Line(f"{name}, context {context}{cache}; the load: {of_load}; {UTILISATION:.0%} utilisation")
    for checkpoint, mine in itertools.groupby(rows, key=lambda row: row.checkpoint):
        size = f"{checkpoint.weight_bytes / GIB:.2f} GiB of weights" + (" (derived)" if checkpoint.derived else "")
        yield Line()
        yield Line(f"{checkpoint.id}: {checkpoint.encoding}, {size}", Role.HEADING)
        cells: list[Sequence[object] | Line] = []
        for group, members in itertools.groupby(mine, key=lambda row: row.offer.group):
            cells += [Line(f"  {group}"), *map(_cells, members)]
        yield Table(_POOLED_HEADS if does_pool(checkpoint) else _HEADS, cells, indent=4)
    yield Line()
    notes = [*_notes(rows), *_figure_lines("Simulated", simulated), *_figure_lines("Measured", measured)]
    yield from map(Line, notes)


def _cells(row: Row) -> tuple[str, ...]:
    offer = row.offer
    is_priced = not isinstance(offer.hourly, Unpriced)
    hourly = text(offer.hourly, 4) if is_priced else UNKNOWN
    broken = "refused" if row.refused else row.breaks
    fits = f"no: {broken}" if broken else _short(row.sequences)
    speed = ("-", "-", "-")
    if isinstance(row.speed, PooledEstimate) and row.tokens:
        speed = (
            _range(row.speed.inputs_per_second),
            _range(row.speed.tokens_per_second),
            _price(row.tokens.input, _POOLED_DIGITS),
        )
    elif isinstance(row.speed, Estimate) and row.tokens and row.tokens.output:
        speed = (
            _range(row.speed.tokens_per_second_alone),
            _range(row.speed.tokens_per_second_served),
            _price(row.tokens.output, 2),
        )
    kind = offer.price_kind if is_priced else "-"
    return (offer.machine, fits, hourly, *speed, kind, offer.region or "-", str(row.longest or "-"))


def alone_of(speed: Estimate | PooledEstimate | None) -> Range | None:
    """Output tokens a second of one user; None where there is no estimate, or a model that pools."""
    return speed.tokens_per_second_alone if isinstance(speed, Estimate) else None


def load_rate(speed: Estimate | PooledEstimate | None) -> Range | None:
    """Tokens a second of the load: of outputs, or of the inputs of a model that pools; None without an estimate."""
    if speed is None:
        return None
    return speed.tokens_per_second_served if isinstance(speed, Estimate) else speed.tokens_per_second


def _price(ends: tuple[Amount, Amount], digits: int) -> str:
    return UNKNOWN if isinstance(ends[0], Unpriced) else "-".join(text(end, digits) for end in ends)


def _keeps_cache(rows: Sequence[Row]) -> bool:
    return not all(isinstance(group, EncoderLayers) for row in rows for group in row.checkpoint.architecture.cache)


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    columns = "one user, the load (output tokens/s) and USD/M out (a million output tokens)"
    if does_pool(rows[0].checkpoint):
        columns = "inputs/s, tokens/s (of the inputs) and USD/M in (a million input tokens)"
    yield "At a time: sequences of the context that fit; no: what does not fit. Longest: one such sequence, in tokens."
    yield f"Kinds: USD/h as its price says (derived: from another row). At a time, longest, {columns} are estimates."
    yield f"Memory of GPUs: {MEMORY_BASIS}."
    yield f"Memory of TPUs: {TPU_MEMORY_BASIS if _keeps_cache(rows) else WITHOUT_CACHE_BASIS}."
    batch = "as many users at a time as the cache holds"
    if does_pool(rows[0].checkpoint):
        batch = "every step full of inputs; tokenising and HTTP are not counted, and may be slower than a small model"
    yield (
        f"Speed: roofline at {percent(DECODE_EFFICIENCY)} of the bandwidth and {percent(PREFILL_EFFICIENCY)} of the "
        f"dense peak, no drafts; {batch}; traffic between several GPUs is not counted."
    )
    for reason, members in _names_by_reason((row.refused, row.checkpoint.id) for row in rows if row.refused):
        yield f"Refused: {', '.join(members)} ({reason})."
    for reason, members in _names_by_reason(
        (row.offer.hourly.reason, row.offer.machine) for row in rows if isinstance(row.offer.hourly, Unpriced)
    ):
        yield f"Unknown price of {', '.join(members)}: {reason}."
    yield f"Not included: {', '.join(NOT_INCLUDED)}; boot disks of other platforms and of TPUs."


def _figure_lines(kind: str, figures: Sequence[ObservedFigure]) -> Iterator[str]:
    """Lines of the figures of one kind, each with its own load."""
    if figures:
        texts = (f"{row.model} on {row.machine}: {row.text}" for row in figures)
        yield f"{kind}: {'; '.join(texts)}."


def _names_by_reason(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    groups: dict[str, dict[str, None]] = {}
    for reason, name in pairs:
        groups.setdefault(reason.rstrip("."), {})[name] = None
    return ((reason, list(names)) for reason, names in groups.items())


def _range(values: Range) -> str:
    return "-".join(map(_short, values))


def _short(number: float) -> str:
    """A number of at most five characters, so that every column holds two of them."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= 100 * size or (unit == "M" and number >= size):
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"
