"""Row of a project's catalogue from a model's description: what vLLM can load of it, and its figures. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from bezel.model_sources.places import ModelRefusedError
from bezel.model_sources.refusals import check_class
from bezel_base.errors import Problem
from bezel_catalog.architectures import ConfigError, read_architecture
from bezel_catalog.architectures.pooling import read_pooling
from bezel_catalog.architectures.registry import recorded_releases
from bezel_catalog.architectures.weights import TensorError, weigh
from bezel_catalog.models import catalogue_models
from bezel_catalog.project_models.reading import FILE
from bezel_catalog.project_models.row import ModelRow, row_id
from bezel_catalog.project_models.text import json_text
from bezel_catalog.vllm.parser_families import (
    Proposal,
    TokenizerFacts,
    propose_reasoning_parser,
    propose_tool_parser,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from bezel.model_sources.description import Description
    from bezel_catalog.architectures.pooling import Pooling

LONGEST_CONFIG = 512 * 1024
_LABELS = ("id2label", "label2id")


def row_of(description: Description, name: str, today: date) -> ModelRow:
    """The row of a model.

    Args:
        description: What its files say.
        name: The row's id.
        today: The day of the reading.

    Raises:
        ModelRefusedError: No plan can be made for it.
    """
    config = _without_labels(description.config)
    text = json_text(config)
    where = f"{description.source}: config.json"
    check_class(where, config)
    if len(text) > LONGEST_CONFIG:
        consequence = f"it has {len(text)} bytes, too many for a row that people read; nothing was written."
        raise ModelRefusedError(Problem(where, None, consequence, "shorten its lists."))
    try:
        read_architecture(config)
        weights = weigh(config, description.tensors)
    except (ConfigError, TensorError) as error:
        raise ModelRefusedError(*error.problems) from None
    tools, thoughts = _proposals(description, config)
    return ModelRow(
        id=name,
        source=description.source,
        as_of=today.isoformat(),
        encoding=weights.encoding,
        weight_bytes=weights.resident_bytes,
        parameters=weights.parameters,
        active_parameters=weights.active_parameters,
        config=text,
        hub_id=description.hub_id,
        commit=description.commit,
        revision=description.revision,
        tokenizer=bool(description.tokenizer.get("files")),
        chat_template=bool(description.tokenizer.get("chat_template")),
        pooling_module=description.pooling_module,
        tool_call_parser=tools.parser,
        tool_call_parser_reason=tools.reason,
        reasoning_parser=thoughts.parser,
        reasoning_parser_reason=thoughts.reason,
        generation=json_text(description.generation) if description.generation else "",
        processor=json_text(description.processor) if description.processor else "",
    )


def _proposals(description: Description, config: Mapping[str, Any]) -> tuple[Proposal, Proposal]:
    """The parsers of tool calls and of thoughts; no reason for one that pools, Gemma 4, or no template."""
    model_type = str(config.get("model_type", ""))
    pools = read_pooling(config, recorded_releases()[-1], has_modules=description.pooling_module) is not None
    if pools or model_type.startswith("gemma4") or not description.tokenizer.get("templates"):
        return Proposal("", ""), Proposal("", "")
    tokens = description.tokenizer.get("tokens")
    facts = TokenizerFacts(
        tuple(description.tokenizer.get("templates") or ()), None if tokens is None else frozenset(tokens)
    )
    return propose_tool_parser(facts, model_type), propose_reasoning_parser(facts, model_type)


class Placed(Protocol):
    """A row, or a model: what tells whether it is of the same place."""

    @property
    def hub_id(self) -> str | None:
        """Its name on a hub."""

    @property
    def source(self) -> str:
        """Where its files were read."""


def free_id(description: Description, rows: Mapping[str, Placed]) -> str:
    """The id of a model's row: that of an earlier row of it, else one that is free.

    Args:
        description: What its files say.
        rows: The project's rows, or its models, by id.

    Raises:
        ModelRefusedError: Every id that its name gives is taken.
    """
    place = description.hub_id or description.source
    for name, row in rows.items():
        if place == (row.hub_id or row.source):
            return name
    name = place.removeprefix("folder ")
    for candidate in (row_id(name), row_id(name.replace("/", "-"))):
        if candidate not in rows and candidate not in catalogue_models():
            return candidate
    consequence = "its name gives an id that another model has, so nothing was written."
    repair = f"rename the folder, or the other row in {FILE}."
    raise ModelRefusedError(Problem("MODEL", name, consequence, repair))


def notes_of(description: Description, row: ModelRow) -> list[str]:
    """What a user is to know of a model before its row is written."""
    config = description.config
    files = f"{description.weight_file_bytes:,} bytes of files, whose headers alone were read"
    notes = [f"read {description.read_bytes:,} bytes; the weights are {row.weight_bytes:,} bytes in {files}"]
    if description.hub_id and description.revision != description.commit:
        notes.append(f"{description.revision} is commit {description.commit} now, and the row stays at it")
    shape = read_architecture(config)
    notes += [f"its memory cannot be planned: {reason}" for reason in shape.unknown]
    pooling = read_pooling(config, recorded_releases()[-1], has_modules=row.pooling_module)
    if pooling is not None:
        notes.append(_pooling_note(pooling))
    if not row.tokenizer:
        notes.append("it brings no tokenizer: the server does not start without `vllm: {tokenizer: ...}` of another")
    elif not row.chat_template and pooling is None:
        notes.append("it brings no chat template: /v1/chat/completions refuses without `vllm: {chat-template: ...}`")
    for option, parser, reason in (
        ("tool-call-parser", row.tool_call_parser, row.tool_call_parser_reason),
        ("reasoning-parser", row.reasoning_parser, row.reasoning_parser_reason),
    ):
        if reason:
            notes.append(f"{option}: {parser or 'none is set'}, since {reason}")
    if "auto_map" in config:
        notes.append("it has code of its own (auto_map), which the server does not run: vLLM's own classes load it")
    return notes


def _pooling_note(pooling: Pooling) -> str:
    """What a model that pools is served by."""
    task = f"vLLM pools with it (--runner pooling, task {pooling.task}), and generates nothing"
    if pooling.checked_endpoint is None:
        return (
            f"{task}: only a plugin of the server can ask for it; `vllm: {{pooler-config: ...}}` chooses another task"
        )
    return f"{task}: it is served at {', '.join(pooling.endpoints)}"


def _without_labels(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with the number of its labels in place of their names."""
    labels = config.get(_LABELS[0])
    counted = {"num_labels": len(labels)} if isinstance(labels, dict) and "num_labels" not in config else {}
    return {key: value for key, value in config.items() if key not in _LABELS} | counted
