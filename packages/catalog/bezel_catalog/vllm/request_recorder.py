"""Recorder of the request models of an installed vLLM: what its API server validates in a body.

    PYTHON tools/vllm/recorders/request_models.py FILE     PYTHON: the interpreter of the installed vLLM

Writes FILE, gzipped JSON. Runs in vLLM's own environment and imports nothing of bezel. vLLM's published document
(/openapi.json) names the fields, types and bounds of the same models, but not which values are converted, which lists
are read only later, nor the names of a union's branches in an error; pydantic's schema behind that document says so. A
function in it (a validator) is recorded by name: what it does is written in
packages/simulated-vllm/bezel_simulated_vllm/validation.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# The bodies of the endpoints that the simulated server serves, by our own names.
MODELS = {
    "chat": ("vllm.entrypoints.openai.chat_completion.protocol", "ChatCompletionRequest"),
    "completion": ("vllm.entrypoints.openai.completion.protocol", "CompletionRequest"),
    "responses": ("vllm.entrypoints.openai.responses.protocol", "ResponsesRequest"),
    "messages": ("vllm.entrypoints.anthropic.protocol", "AnthropicMessagesRequest"),
    "count_tokens": ("vllm.entrypoints.anthropic.protocol", "AnthropicCountTokensRequest"),
    "tokenize": ("vllm.entrypoints.serve.tokenize.protocol", "TokenizeRequest"),
    "detokenize": ("vllm.entrypoints.serve.tokenize.protocol", "DetokenizeRequest"),
    "scoring": ("vllm.entrypoints.generate.generative_scoring.serving", "GenerativeScoringRequest"),
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
    content = {}
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
    return str(getattr(function, "__qualname__", function))


_WRITTEN: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("cls", "cls_name", "cls_repr"), lambda value: getattr(value, "__name__", value)),
    "function": lambda value: {"type": value["type"], "name": _name(value["function"])},
    "default_factory": _name,
    "config": lambda value: {name: value[name] for name in ("extra_fields_behavior",) if name in value},
    "members": lambda value: [member.value for member in value],
    "default": lambda value: value,
}


def main(file: str) -> None:
    """Write the recording."""
    pydantic = importlib.import_module("pydantic")
    models: dict[str, Any] = {}
    for name, (module, attribute) in MODELS.items():
        adapter = pydantic.TypeAdapter(getattr(importlib.import_module(module), attribute))
        models[name] = record_schema(adapter.core_schema, {})
    content = {
        "vllm": importlib.import_module("importlib.metadata").version("vllm").partition("+")[0],
        "pydantic": pydantic.VERSION,
        "models": models,
    }
    text = json.dumps(content, separators=(",", ":"))
    Path(file).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    os.dup2(2, 1)  # vLLM logs to stdout
    main(sys.argv[1])
