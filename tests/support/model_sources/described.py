"""A tiny model of a project as its description, and the settings of a stack that serves it."""

from collections.abc import Mapping
from typing import Any

from bezel.model_sources.description import Description
from tests.support.model_sources.tiny import LLAMA, bert_tensors, llama_tensors

SETTINGS: dict[str, object] = {
    "model": "ours",
    "accelerator": "nvidia-l4",
    "region": "us-east4",
    "weights": {"path": "ours"},
}


def description_of(config: Mapping[str, Any] = LLAMA, *, pooling_module: bool = False) -> Description:
    """The description of a tiny BERT or Llama with this configuration, read from a folder."""
    return Description(
        source="folder ours",
        hub_id="",
        commit="",
        revision="",
        config=dict(config),
        generation={},
        processor={},
        tokenizer={"files": ["tokenizer.json"]},
        tensors=bert_tensors() if config["model_type"] == "bert" else llama_tensors(),
        read_bytes=0,
        weight_file_bytes=0,
        pooling_module=pooling_module,
    )
