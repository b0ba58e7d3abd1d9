"""Gemma 4 checkpoints and their architectures, from which memory and speed are computed. Data: models.toml."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from bezel_base.errors import Problem
from bezel_catalog.loader import DataFileError, find, make, read_toml


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of one size of Gemma 4: layer counts, heads, dimensions, window and context in tokens.

    Sliding layers keep the last `window` tokens, full layers all of them; each kind has its own number of key/value
    heads and its own head dimension. `sliding_layers` and `full_layers` are those with a KV cache of their own; the
    last `shared_kv_layers` read the caches of earlier ones and keep none. `experts` is 0 for a dense model; with
    experts, `intermediate_size` is that of the dense MLP beside them. `per_layer_embedding` is the width of
    the embedding that each layer looks up for itself, 0 where there is none. With `bidirectional_images`, tokens of one
    image attend to each other in both directions (`use_bidirectional_attention: vision` in config.json).
    """

    id: str
    model_type: str
    parameters: int
    active_parameters: int
    hidden_size: int
    intermediate_size: int
    attention_heads: int
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
    experts: int = 0
    active_experts: int = 0
    expert_intermediate_size: int = 0
    shared_kv_layers: int = 0
    per_layer_embedding: int = 0
    attention_k_eq_v: bool = False
    bidirectional_images: bool = False

    @property
    def layers(self) -> int:
        """All layers: sliding, full, and those that share a KV cache."""
        return self.sliding_layers + self.full_layers + self.shared_kv_layers

    @property
    def lookup_parameters(self) -> int:
        """Parameters of the per-layer embeddings: resident, but a step reads one row of them for each token."""
        return self.vocabulary * self.per_layer_embedding * self.layers

    @property
    def embedding_parameters(self) -> int:
        """Parameters that every encoding leaves in 16 bits: the tied embedding and the per-layer ones."""
        return self.vocabulary * self.hidden_size + self.lookup_parameters


@dataclass(frozen=True, slots=True)
class Model:
    """One checkpoint. `weight_bytes` are resident on the accelerator once the checkpoint is loaded.

    `hub_id` is None for an unpublished form: only a stack that names its own folder can serve it. `derived` is true
    where `weight_bytes` is arithmetic and not a measurement. `assistant` is the hub id of the draft model for
    multi-token prediction and `assistant_bytes` its size. `not_on` holds pairs of a machine ("tpu" or an accelerator's
    id) and the reason why the checkpoint does not run there.
    """

    id: str
    architecture: Architecture
    encoding: str
    weight_bytes: int
    as_of: str
    source: str
    hub_id: str | None = None
    assistant: str | None = None
    assistant_bytes: int = 0
    derived: bool = False
    not_on: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> str | None:
        """The folder of the checkpoint in a bucket, unless a stack names another: the hub id without its owner."""
        return self.hub_id.rsplit("/", 1)[-1] if self.hub_id else None

    def refused_on(self, machine: str) -> str | None:
        """Return why the checkpoint does not run on a machine ("tpu" or an accelerator's id); None if none is known."""
        return dict(self.not_on).get(machine)


@functools.cache
def _read() -> tuple[dict[str, Model], tuple[tuple[str, str], ...]]:
    data = read_toml("models.toml")
    shapes = {
        name: make(Architecture, f"models.toml: architecture {name}", row, id=name)
        for name, row in data["architecture"].items()
    }
    records = {}
    for name, row in data["model"].items():
        where, shape = f"models.toml: {name}", row.pop("architecture", None)
        if shape not in shapes:
            repair = f"choose one of {', '.join(shapes)}."
            raise DataFileError(Problem(f"{where}: architecture", shape, "no architecture has this name.", repair))
        not_on = tuple(row.pop("not_on", {}).items())
        records[name] = make(Model, where, row, id=name, architecture=shapes[shape], not_on=not_on)
    return records, tuple((row["pattern"], row["reason"]) for row in data["unservable"])


def models() -> dict[str, Model]:
    """Return every checkpoint of the catalogue by id."""
    return _read()[0]


def model(name: str) -> Model:
    """Return the checkpoint of that id.

    Raises:
        NotInCatalogueError: no checkpoint has the id.
    """
    return find("model", name, models())


def ids_by_hub_id() -> dict[str, str]:
    """Ids of the checkpoints by the name under which each is published."""
    return {checkpoint.hub_id: checkpoint.id for checkpoint in models().values() if checkpoint.hub_id}


def unservable_form(name: str) -> str | None:
    """Return why vLLM does not serve a published form of the weights, recognised by its name; None otherwise."""
    return next((reason for pattern, reason in _read()[1] if pattern in name.lower()), None)
