"""Files that a server of this machine serves, where they are those of the planned model: as `SERVER=vllm` starts one.

Another machine runs the same model then: what the machine has differs from the plan, what the model needs does not.
Reads configuration and headers of the folder that the server names, and no weights.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bezel.model_sources.places import FolderPlace
from bezel.model_sources.reading import read_description
from bezel.operations.context import Context
from bezel.operations.memory.reported import ReportedFigure
from bezel_base.errors import UserError
from bezel_catalog import Model
from bezel_catalog.architectures import ConfigError
from bezel_catalog.architectures.layers import FullLayers
from bezel_catalog.architectures.weights import TensorError, weigh
from bezel_catalog.quantities import GIB

_LABELS = ("id2label", "label2id", "num_labels")  # a row counts labels in place of their names


def served_weights(context: Context, stack: str, folder: str) -> tuple[Model, ReportedFigure] | None:
    """The planned model and the bytes of the tensors that a server loads of it, in GiB; None where it serves another.

    Args:
        context: The context.
        stack: Name of the stack.
        folder: The server's model argument.
    """
    model = _planned_model(context, stack)
    path = Path(folder)
    if model is None or not path.is_absolute() or not (path / "config.json").is_file():
        return None
    try:
        description = read_description(FolderPlace(path))
        if _without_labels(description.config) != _without_labels(model.config):
            return None
        size = weigh(description.config, description.tensors).resident_bytes
    except (UserError, ConfigError, TensorError):
        return None
    return model, ReportedFigure(size / GIB, f"the tensors in {folder} that vLLM loads")


def keeps_every_token(model: Model) -> bool:
    """Whether each layer with a KV cache keeps every token of a sequence.

    What windows, chunks and states take for a token depends on the tokens that a step computes and on the size of a
    block, which are those of the machine.
    """
    return all(isinstance(group, FullLayers) or not group.keeps_cache for group in model.architecture.cache)


def _planned_model(context: Context, stack: str) -> Model | None:
    """The project's own model that a stack file names, None for one of the catalogue or a program without one."""
    try:
        name = str(context.project.configuration(stack).get("model") or "")
        models = context.project.models()
    except UserError:
        return None
    return next((each for each in models.values() if name == each.id or each.is_named(name)), None)


def _without_labels(config: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(config))
    return {key: value for key, value in plain.items() if key not in _LABELS}
