"""Architectures of models: what each layer keeps of a sequence, and what the tensors of a checkpoint weigh.

Owns the reading of a `config.json` and of tensor headers, both given as values: no file and no network here. The rules
follow vLLM 0.32.0, whose modules and names stand beside them. Leaves pages, blocks and tokens to
bezel_catalog.sizing.cache_layout.
"""

from bezel_catalog.architectures.architecture import Architecture
from bezel_catalog.architectures.reading import ConfigError, read_architecture
from bezel_catalog.architectures.weights import Weights, weigh

__all__ = ["Architecture", "ConfigError", "Weights", "read_architecture", "weigh"]
