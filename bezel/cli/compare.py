"""`bezel compare --model NAME`: prints the comparison as a table of at most 120 columns, or as JSON.

Leaves out how figures are computed: see bezel.planner.assemble.compare. An unknown figure is printed as unknown.
"""

from __future__ import annotations

import itertools
import json
import sys
import textwrap
from typing import TYPE_CHECKING

from bezel.catalog import closest, unservable_form
from bezel.catalog.measurements import measured_memory, measured_speed
from bezel.errors import shown
from bezel.planner.assemble.compare import (
    DEFAULT_CONTEXT,
    MIN_CONTEXT,
    USERS,
    Row,
    checkpoints,
    compare,
    families,
    load_of,
)
from bezel.planner.base.money import UNKNOWN, Unpriced, figure, text
from bezel.planner.base.problems import one_of
from bezel.planner.base.quantities import GIB
from bezel.planner.cost.service_cost import NOT_INCLUDED
from bezel.planner.cost.token_cost import UTILISATION
from bezel.planner.sizing.memory import MEMORY_BASIS
from bezel.planner.sizing.roofline import DECODE_EFFICIENCY, PREFILL_EFFICIENCY, percent, rounded
from bezel.planner.sizing.tpu_memory import TPU_MEMORY_BASIS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bezel.catalog import Model
    from bezel.planner.sizing.roofline import Range

Told = dict[str, str]  # model, machine, text, kind and, where measured, source
COLUMNS = 120
_HEADS = ("machine", "where", "fits", "longest", "USD/h", "one user", "the load", "USD/M out")
_WIDTHS = (20, 18, 16, 8, 19, 10, 12, 13)


def print_comparison(name: str, *, context: int | None, simulated: bool, as_json: bool) -> int:
    """Print a family or checkpoint on every machine, on request with simulated figures; return the exit code."""
    found = checkpoints(name)
    problem = _problem(name, found, context)
    if problem:
        sys.stderr.write(f"bezel: {problem}\n")
        return 1
    length = DEFAULT_CONTEXT if context is None else context
    rows = [row for checkpoint in found for row in compare(checkpoint, length)]
    seen = _simulated(rows, length) if simulated else []
    sys.stdout.write(_json(name, length, rows, seen) if as_json else "\n".join(_text(name, length, rows, seen)) + "\n")
    return 0


def _problem(name: str, found: Sequence[Model], context: int | None) -> str | None:
    if not found:
        reason = unservable_form(name) or "it is neither a model family nor a checkpoint of the catalogue."
        return f"--model {shown(name)}\n   {reason}\n   Repair: {one_of(families(), closest(name, families()))}"
    most = found[0].architecture.context
    if context is not None and not MIN_CONTEXT <= context <= most:
        return (
            f"--context {context}\n   {name} was made for {most} tokens, and the compared load needs {MIN_CONTEXT}."
            f"\n   Repair: choose {MIN_CONTEXT} to {most}."
        )
    return None


def _text(name: str, context: int, rows: Sequence[Row], seen: Sequence[Told]) -> Iterator[str]:
    prompt, output = load_of(context)
    yield (
        f"{name}, context {context}, 16-bit KV cache; the load: {USERS} users, {prompt} tokens in, {output} out; "
        f"{UTILISATION:.0%} utilisation"
    )
    for checkpoint, mine in itertools.groupby(rows, key=lambda row: row.checkpoint):
        yield ""
        size = f"{checkpoint.weight_bytes / GIB:.2f} GiB of weights" + (" (derived)" if checkpoint.derived else "")
        yield f"{checkpoint.id}: {checkpoint.encoding}, {size}"
        yield _line(_HEADS)
        for group, members in itertools.groupby(mine, key=lambda row: row.offer.group):
            yield f"  {group}"
            for row in members:
                yield _line(_cells(row))
    yield ""
    for note in [*_notes(rows), *_told("Simulated", seen), *_told("Measured", list(_measured(rows)))]:
        yield from textwrap.wrap(note, COLUMNS, subsequent_indent="  ", break_on_hyphens=False)


def _cells(row: Row) -> tuple[str, ...]:
    offer = row.offer
    hourly = UNKNOWN if isinstance(offer.hourly, Unpriced) else f"{text(offer.hourly, 4)} {offer.price_kind}"
    broken = "refused" if row.refused else row.breaks
    fits = f"no: {broken}" if broken else f"{row.sequences} at a time"
    speed = ("-", "-", "-")
    if row.speed and row.tokens:
        speed = (
            _range(row.speed.tokens_per_second_alone),
            _range(row.speed.tokens_per_second_served),
            UNKNOWN
            if isinstance(row.tokens.output[0], Unpriced)
            else "-".join(text(end, 2) for end in row.tokens.output),
        )
    return (offer.machine, offer.region or "-", fits, str(row.longest or "-"), hourly, *speed)


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    yield (
        "Kinds: USD/h as it says (list price; derived: concluded from another row). Fits, longest, one user, the load "
        "(output tokens/s) and USD/M out (a million output tokens) are estimates."
    )
    yield f"Memory of GPUs: {MEMORY_BASIS}."
    yield f"Memory of TPUs: {TPU_MEMORY_BASIS}."
    yield (
        f"Speed: roofline at {percent(DECODE_EFFICIENCY)} of the bandwidth and {percent(PREFILL_EFFICIENCY)} of the "
        "dense peak, no drafts; as many users at a time as the cache holds; nothing counted for the traffic between "
        "several GPUs."
    )
    for reason, mine in _grouped((row.refused, row.checkpoint.id) for row in rows if row.refused):
        yield f"Refused: {', '.join(mine)} ({reason})."
    for reason, mine in _grouped(
        (row.offer.hourly.reason, row.offer.machine) for row in rows if isinstance(row.offer.hourly, Unpriced)
    ):
        yield f"Unknown price of {', '.join(mine)}: {reason.removeprefix('unpriced: ')}."
    yield f"Not included: {', '.join(NOT_INCLUDED)}; boot disks of other platforms and of TPUs."


def _told(kind: str, figures: Sequence[Told]) -> Iterator[str]:
    """Lines of the figures of one kind, each with its own load."""
    if figures:
        each = [f"{one['model']} on {one['machine']}: {one['text']}" for one in figures]
        yield f"{kind}: {'; '.join(each)}."


def _grouped(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, dict[str, None]] = {}
    for reason, name in pairs:
        found.setdefault(reason.rstrip("."), {})[name] = None
    for reason, names in found.items():
        yield reason, list(names)


def _simulated(rows: Sequence[Row], context: int) -> list[Told]:
    """The simulated server's figures under the compared load, for the machines that it can simulate."""
    from bezel.cli.simulate import simulate

    told: list[Told] = []
    for row in rows:
        found = simulate(row, context)
        if found:
            text = f"{found.tokens_per_second:.0f} tokens/s of the load ({found.verdict} the estimate)"
            told.append({"model": row.checkpoint.id, "machine": row.offer.machine, "text": text, "kind": "simulated"})
    return told


def _measured(rows: Sequence[Row]) -> Iterator[Told]:
    """Valid measurements of the compared checkpoints, each at its own load."""
    names = {row.checkpoint.id for row in rows}
    for case in measured_speed():
        if case.model in names:
            load = f"{case.users} user{'s' * (case.users > 1)}, {case.output_tokens} tokens out"
            told = f"{case.tokens_per_second:g} tokens/s ({load})"
            yield {
                "model": case.model,
                "machine": case.machine,
                "text": told,
                "kind": "measured",
                "source": case.source,
            }
    for row in measured_memory():
        if row.model in names and row.kv_tokens and not row.disputed:
            told = f"{row.kv_tokens} tokens of KV cache"
            yield {"model": row.model, "machine": row.machine, "text": told, "kind": "measured", "source": row.source}


def _json(name: str, context: int, rows: Sequence[Row], seen: Sequence[Told]) -> str:
    prompt, output = load_of(context)
    told = {
        "model": name,
        "context": context,
        "load": {"users": USERS, "prompt_tokens": prompt, "output_tokens": output, "utilisation": UTILISATION},
        "rows": [_row_json(row) for row in rows],
        "simulated": list(seen),
        "measured": list(_measured(rows)),
        "not_included": list(NOT_INCLUDED),
    }
    return json.dumps(told, indent=2) + "\n"


def _row_json(row: Row) -> dict[str, object]:
    offer, speed, tokens = row.offer, row.speed, row.tokens
    price = {"value": figure(offer.hourly, 4), "kind": offer.price_kind, "source": offer.source}
    if isinstance(offer.hourly, Unpriced):
        price["reason"] = offer.hourly.reason
    return {
        "model": row.checkpoint.id,
        "machine": offer.machine,
        "group": offer.group,
        "deployable": not offer.group.startswith("other"),
        "where": offer.region,
        "fits": {"value": not (row.refused or row.breaks), "kind": "estimate", "because": row.refused or row.breaks},
        "sequences_at_a_time": {"value": row.sequences, "kind": "estimate"},
        "longest_context": {"value": row.longest, "kind": "estimate"},
        "usd_per_hour": price,
        "users_at_a_time": {"value": speed.batch if speed else None, "kind": "estimate"},
        "tokens_per_second_alone": _estimated(rounded(speed.tokens_per_second_alone, 1) if speed else None),
        "tokens_per_second_load": _estimated(rounded(speed.tokens_per_second_served, 1) if speed else None),
        "usd_per_million_input_tokens": _estimated([figure(end, 3) for end in tokens.input] if tokens else None),
        "usd_per_million_output_tokens": _estimated([figure(end, 3) for end in tokens.output] if tokens else None),
    }


def _estimated(value: Sequence[float | str] | None) -> dict[str, object]:
    known = value is not None and UNKNOWN not in value
    return {"value": value if known else None, "kind": "estimate" if known else UNKNOWN}


def _range(values: Range) -> str:
    return f"{values[0]:.0f}-{values[1]:.0f}"


def _line(cells: Sequence[str]) -> str:
    return ("    " + "".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))).rstrip()
