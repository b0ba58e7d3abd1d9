"""Rows of a catalogue for an architecture: its groups of layers as tables, or Gemma 4's counts in short.

Owns both directions: a row that `architecture_row` makes is read to the same architecture by `read_row`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from bezel_base.errors import NOT_SET, Problem
from bezel_catalog.architectures import layers as kinds
from bezel_catalog.architectures.architecture import Architecture
from bezel_catalog.architectures.layers import FullLayers, Layers, SharedLayers, SlidingLayers
from bezel_catalog.loader import DataFileError, make

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS: dict[str, type[Layers]] = {
    kind.kind: kind
    for kind in (
        kinds.FullLayers,
        kinds.SlidingLayers,
        kinds.ConvolutionLayers,
        kinds.ChunkedLayers,
        kinds.CrossLayers,
        kinds.LatentLayers,
        kinds.StateLayers,
        kinds.SharedLayers,
        kinds.EncoderLayers,
        kinds.PlainLayers,
        kinds.UnknownLayers,
    )
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Counts:
    """Gemma 4's layers in short: those that slide, those that keep everything, and those that share."""

    sliding_layers: int
    full_layers: int
    sliding_kv_heads: int
    full_kv_heads: int
    sliding_head_dim: int
    full_head_dim: int
    window: int
    shared_kv_layers: int = 0

    def groups(self) -> tuple[Layers, ...]:
        """The same as groups of layers; those that share a cache are taken for sliding ones, as most of them are."""
        sliding, full = (self.sliding_kv_heads, self.sliding_head_dim), (self.full_kv_heads, self.full_head_dim)
        groups = (
            SlidingLayers(count=self.sliding_layers, kv_heads=sliding[0], head_dim=sliding[1], window=self.window),
            FullLayers(count=self.full_layers, kv_heads=full[0], head_dim=full[1]),
            SharedLayers(count=self.shared_kv_layers, kv_heads=sliding[0], head_dim=sliding[1]),
        )
        return tuple(group for group in groups if group.count)


def read_row(where: str, name: str, row: Mapping[str, Any]) -> Architecture:
    """The architecture of a row.

    Args:
        where: file and row, for the message.
        name: id of the architecture.
        row: the row; its layers are in `cache`, a list of tables with a `kind` each, or in Gemma 4's counts.

    Raises:
        DataFileError: the row does not fit; the message names every field that does not.
    """
    fields = dict(row)
    if "cache" in fields:
        groups = _read_groups(where, fields.pop("cache"))
    else:
        names = {field.name for field in dataclasses.fields(_Counts)}
        counts = {key: fields.pop(key) for key in tuple(fields) if key in names}
        groups = make(_Counts, where, counts).groups()
    return make(Architecture, where, fields, id=name, cache=groups)


def architecture_row(architecture: Architecture) -> dict[str, Any]:
    """The row of an architecture, without its id: plain values, fields at their defaults left out."""
    row: dict[str, Any] = {}
    for field in dataclasses.fields(architecture):
        value = getattr(architecture, field.name)
        if field.name in ("id", "cache") or value == field.default:
            continue
        row[field.name] = list(value) if isinstance(value, tuple) else value
    row["cache"] = [group_row(group) for group in architecture.cache]
    return row


def group_row(group: Layers) -> dict[str, Any]:
    """The table of a group of layers."""
    row: dict[str, Any] = {"kind": group.kind}
    for field in dataclasses.fields(group):
        value = getattr(group, field.name)
        if value == field.default:
            continue
        row[field.name] = [_array_row(array) for array in value] if isinstance(value, tuple) else value
    return row


def _array_row(array: kinds.StateArray) -> dict[str, int]:
    return {
        field.name: value
        for field in dataclasses.fields(array)
        if (value := getattr(array, field.name)) != field.default
    }


def _read_groups(where: str, tables: object) -> tuple[Layers, ...]:
    if not isinstance(tables, list) or not tables:
        raise DataFileError(Problem(f"{where}: cache", tables, "expected a list of tables.", "correct the value."))
    return tuple(_read_group(f"{where}: cache {number}", table) for number, table in enumerate(tables, 1))


def _read_group(where: str, table: object) -> Layers:
    if not isinstance(table, dict) or table.get("kind") not in KINDS:
        kind = table.get("kind", NOT_SET) if isinstance(table, dict) else table
        repair = f"choose one of {', '.join(KINDS)}."
        raise DataFileError(Problem(f"{where}: kind", kind, "no layers are of this kind.", repair))
    fields = {key: value for key, value in table.items() if key != "kind"}
    kind = KINDS[table["kind"]]
    if kind is not kinds.StateLayers:
        return make(kind, where, fields)
    arrays = fields.pop("arrays", None)
    if not isinstance(arrays, list) or not all(isinstance(array, dict) for array in arrays):
        raise DataFileError(Problem(f"{where}: arrays", arrays, "expected a list of tables.", "correct the value."))
    return make(kind, where, fields, arrays=tuple(make(kinds.StateArray, f"{where}: arrays", row) for row in arrays))
