"""Gemma 4 checkpoints and their architectures: what memory and speed are computed from. Data: models.toml."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from bezel.catalog.records import NotInCatalogueError, read_toml


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of one size of Gemma 4: layer counts, heads, dimensions, window and context in tokens.

    Sliding layers keep the last `window` tokens, full layers all of them; each kind has its own number of key/value
    heads and its own head dimension. `attention_heads` is None where no source gives it. `experts` is 0 for a dense
    model; with experts, `intermediate_size` is that of the dense MLP beside them.
    """

    id: str
    model_type: str
    parameters: int
    active_parameters: int
    hidden_size: int
    intermediate_size: int
    sliding_layers: int
    full_layers: int
    sliding_kv_heads: int
    full_kv_heads: int
    sliding_head_dim: int
    full_head_dim: int
    window: int
    context: int
    vocabulary: int
    modalities: tuple[str, ...]
    as_of: str
    source: str
    attention_heads: int | None = None
    experts: int = 0
    active_experts: int = 0
    expert_intermediate_size: int = 0

    @property
    def layers(self) -> int:
        """All layers, sliding and full."""
        return self.sliding_layers + self.full_layers


@dataclass(frozen=True, slots=True)
class Model:
    """One published checkpoint. `weight_bytes` is what stays resident on the accelerator once it is loaded.

    `assistant` is the hub id of the draft model for multi-token prediction and `assistant_bytes` its size.
    """

    id: str
    architecture: Architecture
    hub_id: str
    encoding: str
    weight_bytes: int
    as_of: str
    source: str
    assistant: str | None = None
    assistant_bytes: int = 0

    @property
    def folder(self) -> str:
        """The folder of the checkpoint in a bucket, unless a stack names another: the hub id without its owner."""
        return self.hub_id.rsplit("/", 1)[-1]


@functools.cache
def _read() -> tuple[dict[str, Model], tuple[tuple[str, str], ...]]:
    data = read_toml("models.toml")
    shapes = {
        name: Architecture(id=name, modalities=tuple(row.pop("modalities")), **row)
        for name, row in data["architecture"].items()
    }
    found = {}
    for name, row in data["model"].items():
        shape = shapes[row.pop("architecture")]
        found[name] = Model(id=name, architecture=shape, **row)
    return found, tuple((row["pattern"], row["reason"]) for row in data["unservable"])


def models() -> dict[str, Model]:
    """Every checkpoint of the catalogue by id."""
    return _read()[0]


def model(name: str) -> Model:
    """The checkpoint of that id.

    Raises:
        NotInCatalogueError: no checkpoint has the id.
    """
    try:
        return models()[name]
    except KeyError:
        raise NotInCatalogueError("model", name, models()) from None


def unservable_form(name: str) -> str | None:
    """Why a published form of the weights, recognised by its name, is not served by vLLM here; None otherwise."""
    return next((reason for pattern, reason in _read()[1] if pattern in name.lower()), None)
