"""Comparison as a table of at most 120 columns, with its notes. An unknown figure is shown as unknown. Pure."""

import itertools
import textwrap
from collections.abc import Iterator, Sequence

from bezel.operations.compare.measured import ObservedFigure
from bezel.planner.assemble.compare import USERS, Row, load_of
from bezel.planner.base.money import UNKNOWN, Amount, Unpriced, text
from bezel.planner.cost.service_cost import NOT_INCLUDED
from bezel.planner.cost.token_cost import UTILISATION
from bezel.planner.vllm.model.pooling import does_pool
from bezel_catalog.architectures.layers import EncoderLayers
from bezel_catalog.quantities import GIB
from bezel_catalog.sizing.memory import MEMORY_BASIS
from bezel_catalog.sizing.pooled_speed import PooledEstimate
from bezel_catalog.sizing.roofline import DECODE_EFFICIENCY, PREFILL_EFFICIENCY, Estimate, Range, percent
from bezel_catalog.sizing.tpu_memory import TPU_MEMORY_BASIS, WITHOUT_CACHE_BASIS

COLUMNS = 120
_POOLED_DIGITS = 4
_HEADS = ("machine", "where", "fits", "longest", "USD/h", "one user", "the load", "USD/M out")
_POOLED_HEADS = ("machine", "where", "fits", "longest", "USD/h", "inputs/s", "tokens/s", "USD/M in")
_WIDTHS = (20, 18, 16, 8, 19, 10, 12, 13)


def table(
    name: str,
    context: int,
    rows: Sequence[Row],
    simulated: Sequence[ObservedFigure],
    measured: Sequence[ObservedFigure],
) -> Iterator[str]:
    """Lines of the comparison.

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
    yield f"{name}, context {context}{cache}; the load: {of_load}; {UTILISATION:.0%} utilisation"
    for checkpoint, mine in itertools.groupby(rows, key=lambda row: row.checkpoint):
        yield ""
        size = f"{checkpoint.weight_bytes / GIB:.2f} GiB of weights" + (" (derived)" if checkpoint.derived else "")
        yield f"{checkpoint.id}: {checkpoint.encoding}, {size}"
        yield _line(_POOLED_HEADS if does_pool(checkpoint) else _HEADS)
        for group, members in itertools.groupby(mine, key=lambda row: row.offer.group):
            yield f"  {group}"
            for row in members:
                yield _line(_cells(row))
    yield ""
    for note in [*_notes(rows), *_figure_lines("Simulated", simulated), *_figure_lines("Measured", measured)]:
        yield from textwrap.wrap(note, COLUMNS, subsequent_indent="  ", break_on_hyphens=False)


def _cells(row: Row) -> tuple[str, ...]:
    offer = row.offer
    hourly = UNKNOWN if isinstance(offer.hourly, Unpriced) else f"{text(offer.hourly, 4)} {offer.price_kind}"
    broken = "refused" if row.refused else row.breaks
    fits = f"no: {broken}" if broken else f"{_short(row.sequences)} at a time"
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
    return (offer.machine, offer.region or "-", fits, str(row.longest or "-"), hourly, *speed)


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
    yield f"Kinds: USD/h as marked (list price; derived: from another row). Fits, longest, {columns} are estimates."
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


def _line(cells: Sequence[str]) -> str:
    return ("    " + "".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))).rstrip()
