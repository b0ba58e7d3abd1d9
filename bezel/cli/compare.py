"""`bezel compare --model NAME`: prints the comparison as a table of at most 120 columns, or as JSON.

Leaves out how figures are computed: see bezel.planner.assemble.compare. An unknown figure is printed as unknown.
"""

import argparse
import itertools
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence

from bezel.catalog import Model, closest, unservable_form
from bezel.catalog.measurements import measured_memory, measured_speed
from bezel.errors import Problem, UserError
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
from bezel.planner.sizing.roofline import DECODE_EFFICIENCY, PREFILL_EFFICIENCY, Range, percent, rounded
from bezel.planner.sizing.tpu_memory import TPU_MEMORY_BASIS
from bezel.pulumi_engine.project import Project

Figure = dict[str, str]  # model, machine, text, kind and, where measured, source
COLUMNS = 120
_HEADS = ("machine", "where", "fits", "longest", "USD/h", "one user", "the load", "USD/M out")
_WIDTHS = (20, 18, 16, 8, 19, 10, 12, 13)


def print_comparison(_: Project, options: argparse.Namespace) -> int:
    """Print a family or checkpoint on every machine, on request with simulated figures; return the exit code.

    Raises:
        UserError: The model is unknown, or the context out of its range.
    """
    name, context = options.model, DEFAULT_CONTEXT if options.context is None else options.context
    models = checkpoints(name)
    _check(name, models, context)
    rows = [row for checkpoint in models for row in compare(checkpoint, context)]
    simulated = _simulated(rows, context) if options.simulate else []
    if options.json:
        sys.stdout.write(_json(name, context, rows, simulated))
    else:
        sys.stdout.writelines(f"{line}\n" for line in _text(name, context, rows, simulated))
    return 0


def _check(name: str, models: Sequence[Model], context: int) -> None:
    if not models:
        consequence = unservable_form(name) or "it is neither a model family nor a checkpoint of the catalogue."
        raise UserError(Problem("--model", name, consequence, one_of(families(), closest(name, families()))))
    limit = models[0].architecture.context
    if not MIN_CONTEXT <= context <= limit:
        consequence = f"{name} was made for {limit} tokens, and the compared load needs {MIN_CONTEXT}."
        raise UserError(Problem("--context", context, consequence, f"choose {MIN_CONTEXT} to {limit}."))


def _text(name: str, context: int, rows: Sequence[Row], simulated: Sequence[Figure]) -> Iterator[str]:
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
    for note in [*_notes(rows), *_listed("Simulated", simulated), *_listed("Measured", list(_measured(rows)))]:
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
        "Kinds: USD/h as marked (list price; derived: from another row). Fits, longest, one user, the load "
        "(output tokens/s) and USD/M out (a million output tokens) are estimates."
    )
    yield f"Memory of GPUs: {MEMORY_BASIS}."
    yield f"Memory of TPUs: {TPU_MEMORY_BASIS}."
    yield (
        f"Speed: roofline at {percent(DECODE_EFFICIENCY)} of the bandwidth and {percent(PREFILL_EFFICIENCY)} of the "
        "dense peak, no drafts; as many users at a time as the cache holds; traffic between several GPUs is not "
        "counted."
    )
    for reason, members in _grouped((row.refused, row.checkpoint.id) for row in rows if row.refused):
        yield f"Refused: {', '.join(members)} ({reason})."
    for reason, members in _grouped(
        (row.offer.hourly.reason, row.offer.machine) for row in rows if isinstance(row.offer.hourly, Unpriced)
    ):
        yield f"Unknown price of {', '.join(members)}: {reason.removeprefix('unpriced: ')}."
    yield f"Not included: {', '.join(NOT_INCLUDED)}; boot disks of other platforms and of TPUs."


def _listed(kind: str, figures: Sequence[Figure]) -> Iterator[str]:
    """Lines of the figures of one kind, each with its own load."""
    if figures:
        texts = (f"{row['model']} on {row['machine']}: {row['text']}" for row in figures)
        yield f"{kind}: {'; '.join(texts)}."


def _grouped(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    groups: dict[str, dict[str, None]] = {}
    for reason, name in pairs:
        groups.setdefault(reason.rstrip("."), {})[name] = None
    return ((reason, list(names)) for reason, names in groups.items())


def _simulated(rows: Sequence[Row], context: int) -> list[Figure]:
    """The simulated server's figures under the compared load, for the machines that it can simulate."""
    from bezel.cli.simulate import simulate

    figures = []
    for row in rows:
        if result := simulate(row, context):
            rate, verdict = result
            text = f"{rate:.0f} tokens/s of the load ({verdict} the estimate)"
            figures.append(_figure(row.checkpoint.id, row.offer.machine, "simulated", text))
    return figures


def _measured(rows: Sequence[Row]) -> Iterator[Figure]:
    """Valid measurements of the compared checkpoints, each at its own load."""
    names = {row.checkpoint.id for row in rows}
    for case in measured_speed():
        if case.model in names:
            load = f"{case.users} user{'s' * (case.users > 1)}, {case.output_tokens} tokens out"
            text = f"{case.tokens_per_second:g} tokens/s ({load})"
            yield _figure(case.model, case.machine, "measured", text) | {"source": case.source}
    for memory in measured_memory():
        if memory.model in names and memory.kv_tokens and not memory.disputed:
            text = f"{memory.kv_tokens} tokens of KV cache"
            yield _figure(memory.model, memory.machine, "measured", text) | {"source": memory.source}


def _figure(model: str, machine: str, kind: str, text: str) -> Figure:
    return {"model": model, "machine": machine, "text": text, "kind": kind}


def _json(name: str, context: int, rows: Sequence[Row], simulated: Sequence[Figure]) -> str:
    prompt, output = load_of(context)
    comparison = {
        "model": name,
        "context": context,
        "load": {"users": USERS, "prompt_tokens": prompt, "output_tokens": output, "utilisation": UTILISATION},
        "rows": [_row_json(row) for row in rows],
        "simulated": list(simulated),
        "measured": list(_measured(rows)),
        "not_included": list(NOT_INCLUDED),
    }
    return json.dumps(comparison, indent=2) + "\n"


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
