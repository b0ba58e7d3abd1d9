"""Attention backends of vLLM and what each serves of Gemma 4. Data: vllm/start_relations/attention_backends.json.

The data are what the classes of the release answered (tools/vllm/recorders/attention_backends.py).
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_catalog.loader import DATA

if TYPE_CHECKING:
    from collections.abc import Mapping

RELEASE = "0.32.0"


@dataclass(frozen=True, slots=True)
class AttentionBackend:
    """One backend.

    `missing` is vLLM's reason why it has no class of that name, "" where it has one. `refuses` are its reasons against
    a layer, by compute capability ("8.9", "9.0", "12.0"), input ("text" or "images": tokens of one image attend to each
    other in both directions) and layer ("window" or "full"). Values of options are recorded for a backend that serves
    some Gemma 4 on some device, and empty for others: types of the KV cache by capability and input, block sizes of
    which a multiple is taken, types of numbers; `batch_invariant`, `dcp` and `pcp` are whether it has that mode.
    """

    name: str
    missing: str
    refuses: Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]
    kv_cache_dtypes: Mapping[str, Mapping[str, tuple[str, ...]]]
    block_sizes: tuple[int, ...]
    dtypes: tuple[str, ...]
    batch_invariant: bool
    dcp: bool
    pcp: bool


@functools.cache
def attention_backends() -> Mapping[str, AttentionBackend]:
    """Return the backends by name."""
    rows = json.loads((DATA / "vllm" / "start_relations" / "attention_backends.json").read_text(encoding="utf-8"))
    return {name: _read(name, row) for name, row in rows.items()}


def _read(name: str, row: Mapping[str, Any]) -> AttentionBackend:
    return AttentionBackend(
        name=name,
        missing=row.get("missing", ""),
        refuses={
            capability: {inputs: _lists(layers) for inputs, layers in by_input.items()}
            for capability, by_input in row.get("refuses", {}).items()
        },
        kv_cache_dtypes={where: _lists(by_input) for where, by_input in row.get("kv_cache_dtypes", {}).items()},
        block_sizes=tuple(row.get("block_sizes", ())),
        dtypes=tuple(row.get("dtypes", ())),
        batch_invariant=row.get("batch_invariant", False),
        dcp=row.get("dcp", False),
        pcp=row.get("pcp", False),
    )


def _lists(row: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(values) for name, values in row.items()}
