"""Section of docs/planner-accuracy.md on architectures: planned tokens, weights and refusals beside a real vLLM's.

Reads what tools/vllm/architectures/record.py recorded of a real vLLM, and peers.py of two public calculators, on the
same configurations. Leaves the document to tools.docs.planner.accuracy.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from bezel_catalog.architectures import read_architecture, weigh
from bezel_catalog.architectures.reading import UNKNOWN_CACHES
from bezel_catalog.architectures.registry import recorded_architectures
from bezel_catalog.sizing.cache_layout import CacheSettings, lay_out

RECORDED = Path(__file__).parents[3] / "packages" / "catalog" / "tests" / "architectures"
TOLERANCE = 0.02
_BLOCK, _LATENT_BLOCK = 128, 16
_DEFAULT = "default "
_REFUSAL = re.compile(
    r"not supported for now|was supported in vLLM until|install the plugin|does not dispatch through|"
    r"position_ids not found|for some but all layers is not supported"
)
_BYTES = {"BF16": 2, "F32": 4}

HEAD = """## Any architecture

Models made with transformers' own configuration classes, laid out by a real vLLM {vllm} on a CPU: 64 MiB of cache,
blocks of {block} tokens ({latent} for most compressed vectors), its own defaults for the rest. Two public calculators
were called as libraries on the same `config.json`: kvfit {kvfit} and hf-mem {hf_mem}; their tokens are the memory
divided by their bytes of a sequence of full length. They know no blocks, groups or steps in flight, so a difference of
a few percent on a tiny model may vanish on a large one. Figures in bold are off by more than {tolerance:.0%}.

{summary}

| model | class | vLLM | planned | kvfit | hf-mem |
|---|---|---|---|---|---|
"""

LATER = """
The same models, and those that only this release has, laid out by a real vLLM {vllm}:

| vLLM | layouts | planned within {tolerance:.0%} | laid out otherwise than by the first release |
|---|---|---|---|
| {first} | {first_count} | {first_close} | |
| {vllm} | {count} | {close} | {changed} |

{only} are models that {first} does not know, or not in that form. Of those laid out otherwise, two are classes with
compressed vectors to which {first} gives longer blocks on a CPU, and one is a Step 3.5 whose windows have key/value
heads of their own (`attention_other_setting`): {vllm} takes the model's, and a plan reserves those of {first}, which
are more. On GPUs alone, and planned by its source, {vllm} keeps a state more for each sequence of a gated delta net
where FlashInfer's kernel runs (`packages/catalog/bezel_catalog/sizing/state_checkpoints.py`).

Of the {listed} architectures in the registry of {vllm} that are no drafts, {measured} were laid out. Layers whose
cache no formula here describes are unknown, with the reason, and never taken for full attention:

| model type | reason |
|---|---|
{unknown}
Planned by their source alone, since no CPU build runs them: Kimi Linear and Kimi K3, Bailing V3, HY V4.
"""

REFUSALS = """
What vLLM does not start, for a reason of the model:

| model | vLLM | planned | kvfit | hf-mem |
|---|---|---|---|---|
"""

WEIGHTS = """
Weights: for {count} of these models the tensors that transformers saves are recorded. Planned bytes are the sum of
their bytes for {equal} of them, those of layers for multi-token prediction counted apart; hf-mem's are for {hf_mem}.
kvfit weighs only what it finds on a hub.

The configurations and vLLM's answers are in `packages/catalog/tests/architectures/layouts.json`, made by
`tools/vllm/architectures/record.py`; what the later release answers otherwise in `layouts-0.33.0.json`, made by
`later_release.py`; the calculators' in `peers.json` beside it, made by `peers.py`.

"""


def planned_tokens(row: dict[str, Any]) -> int | None:
    """Tokens that are planned for a recorded model, None where its layers are unknown."""
    architecture = read_architecture(row["config"])
    if architecture.unknown:
        return None
    latent = all(group["spec"] == "MLAAttentionSpec" for group in row["groups"])
    settings = CacheSettings(
        max_model_len=row["max_model_len"],
        in_flight=row["in_flight"],
        block_tokens=row["block"] if latent else row["arguments"].get("block_size", _BLOCK),
        prefix_caching=row["prefix_caching"],
        encoder_tokens=row["encoder_tokens"],
        hybrid=not row["hybrid_off"],
    )
    return lay_out(architecture, settings).tokens(row["memory"])


def peer_tokens(peer: dict[str, Any], name: str, row: dict[str, Any]) -> int | None:
    """Tokens by a calculator's bytes of a sequence, None where it refuses."""
    size = peer.get(name)
    return None if size is None else int(row["memory"] / size * row["max_model_len"]) if size else 0


def section() -> str:
    """The section."""
    content = json.loads((RECORDED / "layouts.json").read_text(encoding="utf-8"))
    peers = json.loads((RECORDED / "peers.json").read_text(encoding="utf-8"))
    rows, others = content["models"], peers["models"]
    laid_out = {name: row for name, row in rows.items() if "groups" in row}
    figures = {
        name: (
            row.get("tokens", 0),
            planned_tokens(row),
            peer_tokens(others[name], "kvfit", row),
            peer_tokens(others[name], "hf_mem", row),
        )
        for name, row in laid_out.items()
    }
    head = HEAD.format(
        vllm=content["vllm"].partition("+")[0],
        block=_BLOCK,
        latent=_LATENT_BLOCK,
        kvfit=peers["versions"]["kvfit"],
        hf_mem=peers["versions"]["hf-mem"],
        tolerance=TOLERANCE,
        summary=_summary(figures),
    )
    lines = [head]
    for name, (real, *estimates) in figures.items():
        if not name.startswith(_DEFAULT):
            cells = " | ".join(_cell(estimate, real) for estimate in estimates)
            lines.append(f"| {name} | `{laid_out[name]['class']}` | {real:,} | {cells} |\n")
    lines.append(_later(content))
    lines.append(REFUSALS)
    for name, row in rows.items():
        if "config" in row and _REFUSAL.search(row.get("error", "")):
            lines.append(_refusal_line(name, row, others[name]))
    return "".join([*lines, _weights(rows, others)])


def _later(content: dict[str, Any]) -> str:
    """The later release beside the first one."""
    later = json.loads((RECORDED / "layouts-0.33.0.json").read_text(encoding="utf-8"))
    first, changes = content["models"], later["models"]
    rows = {name: {**first.get(name, {}), **change} for name, change in changes.items()}
    rows = {name: row for name, row in rows.items() if row.get("groups") is not None}
    laid_out = {name: row for name, row in first.items() if "groups" in row}
    release = later["vllm"].partition("+")[0]
    architectures = recorded_architectures(release)
    listed = {name for name, kinds in architectures.items() if "draft" not in kinds}
    classes = {row["config"]["architectures"][0] for row in (*rows.values(), *laid_out.values())}
    moved = sum("tokens" in changes[name] for name in rows if name in laid_out)
    return LATER.format(
        vllm=release,
        first=content["vllm"].partition("+")[0],
        tolerance=TOLERANCE,
        first_count=len(laid_out),
        first_close=_count_close(laid_out),
        count=len(rows),
        close=_count_close(rows),
        changed=moved or "none",
        only=sum(name not in laid_out for name in rows),
        listed=len(listed),
        measured=len(listed & classes),
        unknown="".join(f"| `{kind}` | {reason} |\n" for kind, reason in UNKNOWN_CACHES.items()),
    )


def _count_close(rows: dict[str, dict[str, Any]]) -> int:
    planned = ((planned_tokens(row), row.get("tokens") or 0) for row in rows.values())
    return sum(value is not None and _is_close(value, real) for value, real in planned)


def _summary(figures: dict[str, tuple[int, int | None, int | None, int | None]]) -> str:
    """How many of the layouts each of them gives within the tolerance, and how many it refuses."""
    total = len(figures)
    defaults = sum(name.startswith(_DEFAULT) for name in figures)
    parts = []
    for place, label in ((1, "Planned here"), (2, "kvfit"), (3, "hf-mem")):
        values = [(row[place], row[0]) for row in figures.values()]
        close = sum(value is not None and _is_close(value, real) for value, real in values)
        refused = sum(value is None for value, _ in values)
        parts.append(f"{label}: {close} within {TOLERANCE:.0%}, {refused} without a figure.")
    return (
        f"{total} layouts: the {total - defaults} of the table, and {defaults} of classes at their default sizes.\n"
        + "\n".join(f"- {part}" for part in parts)
    )


def _is_close(value: int, real: int) -> bool:
    return value == real if not real else abs(value / real - 1) <= TOLERANCE


def _cell(value: int | None, real: int) -> str:
    if value is None:
        return "no figure"
    return f"{value:,}" if _is_close(value, real) else f"**{value:,}**"


def _refusal_line(name: str, row: dict[str, Any], peer: dict[str, Any]) -> str:
    reasons = read_architecture(row["config"]).unknown
    message = re.sub(r"\s+", " ", row["error"].partition(": ")[2]).replace("|", "/")
    cells = ["no figure" if peer.get(key) is None else "**a figure**" for key in ("kvfit", "hf_mem")]
    planned = f"refused: {reasons[0]}" if reasons else "**a figure**"
    return f"| {name} | {message[:110]} | {planned} | {cells[0]} | {cells[1]} |\n"


def _weights(rows: dict[str, Any], others: dict[str, Any]) -> str:
    listed = {name: row for name, row in rows.items() if "tensors" in row}
    equal = same = 0
    for name, row in listed.items():
        total = sum(_BYTES[kind] * math.prod(shape) for kind, shape in row["tensors"].values())
        weights = weigh(row["config"], row["tensors"])
        equal += weights.bytes + weights.draft_bytes + weights.skipped_bytes == total
        same += others[name].get("hf_mem_weights") == total
    return WEIGHTS.format(count=len(listed), equal=equal, hf_mem=same)
