"""Recorder of the request models of an installed vLLM: what its API server validates in a body, and its architectures.

    PYTHON request_recorder.py FILE     PYTHON: the interpreter of the installed vLLM

Writes FILE, gzipped JSON. Runs in vLLM's own environment and imports nothing of bezel. vLLM's published document
(/openapi.json) names the fields, types and bounds of the same models, but not which values are converted, which lists
are read only later, nor the names of a union's branches in an error; pydantic's schema behind that document says so. A
function in it (a validator) is recorded by name: what it does is written in bezel_simulated_vllm.api.validation. A
model that the release does not have is left out. The architectures are those of its registry of models.
"""

from __future__ import annotations

import functools
import gzip
import importlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# The bodies of the endpoints that the simulated server serves and parts of messages, by our own names.
MODELS = {
    "chat": ("vllm.entrypoints.openai.chat_completion.protocol", "ChatCompletionRequest"),
    "completion": ("vllm.entrypoints.openai.completion.protocol", "CompletionRequest"),
    "responses": ("vllm.entrypoints.openai.responses.protocol", "ResponsesRequest"),
    "messages": ("vllm.entrypoints.anthropic.protocol", "AnthropicMessagesRequest"),
    "count_tokens": ("vllm.entrypoints.anthropic.protocol", "AnthropicCountTokensRequest"),
    "tokenize": ("vllm.entrypoints.serve.tokenize.protocol", "TokenizeRequest"),
    "detokenize": ("vllm.entrypoints.serve.tokenize.protocol", "DetokenizeRequest"),
    "scoring": ("vllm.entrypoints.generate.generative_scoring.serving", "GenerativeScoringRequest"),
    "chat_batch": ("vllm.entrypoints.openai.chat_completion.protocol", "BatchChatCompletionRequest"),
    "system_one": ("vllm.entrypoints.generate.structured_decisions.protocol", "StructuredDecisionRequest"),
    "decisions": ("vllm.entrypoints.openai.decisions.protocol", "DecisionRequest"),
    "embedding": ("vllm.entrypoints.pooling.embed.protocol", "EmbeddingRequest"),
    "token_embedding": ("vllm.entrypoints.pooling.token_embed.protocol", "TokenEmbeddingRequest"),
    "cohere_embedding": ("vllm.entrypoints.pooling.embed.protocol", "CohereEmbedRequest"),
    "classification": ("vllm.entrypoints.pooling.classify.protocol", "ClassificationRequest"),
    "pooling": ("vllm.entrypoints.pooling.pooling.protocol", "PoolingRequest"),
    "score": ("vllm.entrypoints.pooling.scoring.protocol", "ScoreRequest"),
    "rerank": ("vllm.entrypoints.pooling.scoring.protocol", "RerankRequest"),
    "image_url": ("vllm.renderers.chat_utils", "ChatCompletionContentPartImageParam"),
    "audio_url": ("vllm.renderers.chat_utils", "ChatCompletionContentPartAudioParam"),
    "video_url": ("vllm.renderers.chat_utils", "ChatCompletionContentPartVideoParam"),
    "input_image": ("openai.types.responses", "ResponseInputImageParam"),
}
# For serialization, documentation and Python callers only.
_DROPPED = {
    *("metadata", "serialization", "computed_fields", "custom_init", "json_schema_input_schema", "frozen", "slots"),
    *("generic_origin", "field_name", "serialization_alias", "default_factory_takes_data", "collect_init_only"),
}
# Their keys are names of fields, or values of the field that tells the branches of a union apart.
_NAMED = {"fields", "choices"}


def record_schema(core: Any, references: dict[str, str]) -> Any:
    """Return a part of a core schema as JSON: classes and functions by name, references by short stable names."""
    if isinstance(core, list | tuple):
        return [record_schema(part, references) for part in core]
    if not isinstance(core, dict):
        return core
    content: dict[str, Any] = {}
    for key, value in core.items():
        if key in _DROPPED or (value is None and key != "default"):
            continue
        if key in _NAMED and isinstance(value, dict):
            content[key] = {name: record_schema(part, references) for name, part in value.items()}
        elif key in ("ref", "schema_ref"):
            content[key] = references.setdefault(value, f"{value.split(':')[0].rpartition('.')[2]}-{len(references)}")
        elif key in _WRITTEN:
            content[key] = _WRITTEN[key](value)
        elif key == "post_init":
            content |= {key: True} if core["type"] == "dataclass" else {}
        else:
            content[key] = record_schema(value, references)
    return content


def _name(function: Any) -> str:
    if isinstance(function, functools.partial):  # its own text has an address
        values = ", ".join(f"{name}={value!r}" for name, value in function.keywords.items())
        return f"{_name(function.func)}({values})"
    return str(getattr(function, "__qualname__", function))


_WRITTEN: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("cls", "cls_name", "cls_repr"), lambda value: getattr(value, "__name__", value)),
    "function": lambda value: {"type": value["type"], "name": _name(value["function"])},
    "default_factory": _name,
    "config": lambda value: {name: value[name] for name in ("extra_fields_behavior",) if name in value},
    "members": lambda value: [member.value for member in value],
    "default": lambda value: value,
}


def architectures() -> list[str]:
    """Return the names of the model classes that the release serves."""
    registry = importlib.import_module("vllm.model_executor.models.registry").ModelRegistry
    return sorted(registry.get_supported_archs())


def main(file: str) -> None:
    """Write the recording."""
    pydantic = importlib.import_module("pydantic")
    models: dict[str, Any] = {}
    for name, (module, attribute) in MODELS.items():
        try:
            model = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError):
            continue
        models[name] = record_schema(pydantic.TypeAdapter(model).core_schema, {})
    content: dict[str, Any] = {
        "vllm": importlib.import_module("importlib.metadata").version("vllm").partition("+")[0],
        "pydantic": pydantic.VERSION,
        "models": models,
        "architectures": architectures(),
    }
    text = json.dumps(content, separators=(",", ":"))
    Path(file).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    os.dup2(2, 1)  # vLLM logs to stdout
    main(sys.argv[1])
