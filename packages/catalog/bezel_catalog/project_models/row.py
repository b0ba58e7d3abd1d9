"""Row of a project's model: its fields, and the checkpoint that they describe."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from bezel_base.errors import NOT_SET, Problem
from bezel_catalog.architectures import ConfigError, read_architecture
from bezel_catalog.loader import DataFileError
from bezel_catalog.models import Model, ModelFiles

LONGEST_ID = 63  # a label's value
ID = re.compile(rf"[a-z0-9](?:[a-z0-9_-]{{0,{LONGEST_ID - 2}}}[a-z0-9])?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One row of `catalog.toml`.

    Attributes:
        id: name of the model in stack files.
        source: where its files were read: `hf:OWNER/NAME@COMMIT`, `gs://BUCKET/FOLDER` or `folder NAME`.
        as_of: when, YYYY-MM-DD.
        hub_id: its name on a hub; "" elsewhere.
        commit: of the hub's repository, 40 hexadecimal digits; "" elsewhere.
        revision: the branch, tag or commit that was asked for; "" elsewhere.
        encoding: form of most of its weights, e.g. bf16, fp8 or w4a16.
        weight_bytes: of the tensors that the server loads.
        parameters, active_parameters: numbers that the weights stand for, and those that one token passes through.
        tokenizer: whether it brings one.
        chat_template: whether it brings one.
        pooling_module: whether its modules.json names a module that pools, so that vLLM serves it for embeddings.
        tool_call_parser, reasoning_parser: vLLM's parsers that read what it writes, as its chat template tells; ""
            where none could be chosen.
        tool_call_parser_reason, reasoning_parser_reason: why these, or what could not be decided.
        config, generation, processor: content of the files of these names, as JSON; "" without one.
    """

    id: str
    source: str
    as_of: str
    encoding: str
    weight_bytes: int
    parameters: int
    active_parameters: int
    config: str
    hub_id: str = ""
    commit: str = ""
    revision: str = ""
    tokenizer: bool = True
    chat_template: bool = False
    pooling_module: bool = False
    tool_call_parser: str = ""
    tool_call_parser_reason: str = ""
    reasoning_parser: str = ""
    reasoning_parser_reason: str = ""
    generation: str = ""
    processor: str = ""


def row_id(name: str) -> str:
    """The id for a model of this name: letters, digits and hyphens, as labels and folders allow.

    Args:
        name: `OWNER/NAME`, or a folder; the last part counts.
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.rstrip("/").rpartition("/")[2].lower())
    return plain.strip("-")[:LONGEST_ID].strip("-") or "model"


def model_of(row: ModelRow, where: str) -> Model:
    """The checkpoint of a row.

    Args:
        row: The row.
        where: File and row, for messages.

    Raises:
        DataFileError: A value cannot be that of a model; holds every problem.
    """
    problems = list(_problems(row, where))
    config, generation, processor = (
        _json(where, name, getattr(row, name), problems) for name in ("config", "generation", "processor")
    )
    if problems:
        raise DataFileError(*problems)
    try:
        shape = read_architecture(config, name=row.id, source=row.source, as_of=row.as_of)
    except ConfigError as error:
        raise DataFileError(*error.problems) from None
    bucket_folder = row.source.removeprefix("gs://").partition("/")[2] if row.source.startswith("gs://") else ""
    return Model(
        id=row.id,
        architecture=replace(shape, parameters=row.parameters, active_parameters=row.active_parameters),
        encoding=row.encoding,
        weight_bytes=row.weight_bytes,
        as_of=row.as_of,
        source=row.source,
        hub_id=row.hub_id or None,
        commit=row.commit,
        revision=row.revision,
        bucket_folder=bucket_folder,
        files=ModelFiles(
            config=row.config,
            generation=json.dumps(generation),
            processor=json.dumps(processor),
            tokenizer=row.tokenizer,
            chat_template=row.chat_template,
            pooling_module=row.pooling_module,
            tool_call_parser=row.tool_call_parser,
            reasoning_parser=row.reasoning_parser,
        ),
    )


def _problems(row: ModelRow, where: str) -> list[Problem]:
    problems = []
    if not ID.fullmatch(row.id):
        repair = f"write letters, digits and hyphens, {LONGEST_ID} at most, e.g. {row_id(row.id)}."
        problems.append(Problem(where, row.id, "no label of a resource can have this value.", repair))
    for name in ("weight_bytes", "parameters", "active_parameters"):
        if getattr(row, name) <= 0:
            consequence = "its memory and speed would be planned as none."
            problems.append(Problem(f"{where}: {name}", getattr(row, name), consequence, "write the number."))
    if row.active_parameters > row.parameters:
        consequence = f"a token passes through {row.parameters} parameters at most."
        key = f"{where}: active_parameters"
        problems.append(Problem(key, row.active_parameters, consequence, "write parameters or less."))
    if row.hub_id and not _HUB_ID.fullmatch(row.hub_id):
        problems.append(Problem(f"{where}: hub_id", row.hub_id, "nothing can be copied from there.", "OWNER/NAME."))
    if row.hub_id and not _COMMIT.fullmatch(row.commit):
        consequence = "the files of a branch change, so the plan would be of other files than those that are served."
        repair = "write the commit, 40 hexadecimal digits."
        problems.append(Problem(f"{where}: commit", row.commit or NOT_SET, consequence, repair))
    return problems


def _json(where: str, name: str, text: str, problems: list[Problem]) -> dict[str, Any]:
    try:
        content = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        consequence = "it is not a JSON object, so the model is not known."
        problems.append(Problem(f"{where}: {name}", None, consequence, "write the content of the model's file."))
        return {}
    return content
