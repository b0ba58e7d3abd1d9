"""Architectures of models: what each layer keeps of a sequence, and what the tensors of a checkpoint weigh.

Owns the reading of a `config.json` and of tensor headers, both given as values: no file of a model and no network here.
The rules follow vLLM 0.32.0, whose modules and names stand beside them. Leaves pages, blocks and tokens to
bezel_catalog.sizing.cache_layout. The readers are imported when they are first asked for: a plan of a catalogue's row
needs none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bezel_catalog.architectures.architecture import Architecture

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import ConfigError
    from bezel_catalog.architectures.reading import read_architecture
    from bezel_catalog.architectures.weights import TensorError, Weights, weigh

__all__ = ["Architecture", "ConfigError", "TensorError", "Weights", "read_architecture", "weigh"]

_MODULES = {
    "ConfigError": "configuration",
    "TensorError": "weights",
    "Weights": "weights",
    "read_architecture": "reading",
    "weigh": "weights",
}


def __getattr__(name: str) -> Any:
    """A reader, from its module.

    Raises:
        AttributeError: the package has no such name.
    """
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
