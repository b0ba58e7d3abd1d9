"""One input's text -> the server that it describes: the form is found out, and the text is read within bounds. Pure.

Leaves reading files and services to `sources`.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from bezel.conversion.inputs.cloud_run_service import read_service
from bezel.conversion.inputs.compose import is_compose, read_compose
from bezel.conversion.inputs.docker_run import is_run, read_run
from bezel.conversion.inputs.found_server import FoundServer
from bezel.conversion.inputs.gcloud_flags import read_flags
from bezel.conversion.inputs.gcloud_run import is_deploy, read_deploy
from bezel.conversion.inputs.knative_service import as_run_service, is_knative
from bezel.conversion.inputs.server_words import starts_server
from bezel.conversion.inputs.shell_words import Command, commands_of
from bezel.planner.base.stack_file import read_stack_file
from bezel_base.errors import Problem, UserError
from bezel_base.json_documents import read_json

MOST_BYTES = 262_144
"""Bytes of an input: a service's description has about 10,000."""
_DEEPEST, _MOST_NODES = 40, 20_000
_KEYS = re.compile(
    r"^(?:apiVersion|kind|services|version|name|x-[\w.-]+|metadata|spec|template|include)[ \t]*:", re.MULTILINE
)
# Variables that the server, its libraries or the driver read; others of a script are only its own.
_OF_THE_SERVER = re.compile(r"(?:VLLM|HF|HUGGING|CUDA|NCCL|TORCH|PYTORCH|OMP|TRANSFORMERS|SAFETENSORS|NVIDIA)_\w+")
_FORMS = (
    "a Cloud Run service, `gcloud run deploy …`, `vllm serve …`, `docker run … vllm/vllm-openai …` or a compose file"
)
# Commands that run another one, and words of a script in front of one.
_WRAPPERS = ("sudo", "nohup", "exec", "time", "env", "if", "then", "else", "do", "{", "!")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_REPLACE = ("run", "services", "replace")


def read_text(text: str, name: str) -> FoundServer:
    """The server that a text describes.

    Args:
        text: A command, a compose file, or a service as JSON or YAML.
        name: Of the file, for messages.

    Raises:
        UserError: It is too large, not in one of these forms, or does not run vLLM's server.
    """
    if len(text.encode(errors="replace")) > MOST_BYTES:
        consequence = f"it has more than {MOST_BYTES} bytes: no command and no service is as long."
        raise UserError(Problem(name, None, consequence, f"give {_FORMS}."))
    if "\0" in text:
        raise UserError(Problem(name, None, "it has a NUL character, so it is not text.", f"give {_FORMS}."))
    plain = text.lstrip("\ufeff \t\r\n")
    if plain.startswith("{"):
        return _of_document(_json(plain, name), name)
    if _KEYS.search(plain) and not _is_command(plain):
        return _of_document(_yaml(plain, name), name)
    return _of_commands(plain, name)


def _is_command(text: str) -> bool:
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    return (
        re.match(r"\s*(?:\$ )?(?:\w+=\S+ +)*\S*(?:gcloud|vllm|docker|podman|python[\d.]*|uv|export)\s", first)
        is not None
    )


def _json(text: str, name: str) -> Any:
    try:
        return read_json(text)
    except ValueError as error:
        consequence = f"it is not valid JSON: {error}."
        raise UserError(Problem(name, None, consequence, "correct it, or give another file.")) from None


def _yaml(text: str, name: str) -> Any:
    _check_size(text, name)
    content, problems = read_stack_file(text, name)
    # What two readers of YAML read differently is text here; a key twice would lose one of its values.
    if twice := [problem for problem in problems if "listed twice" in problem.consequence]:
        raise UserError(*twice)
    return content


def _check_size(text: str, name: str) -> None:
    """Refuse what would take long to build: deep nesting, and references to references."""
    depth = nodes = 0
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            nodes += sizes.get(event.anchor or "", 1) if isinstance(event, yaml.AliasEvent) else 1
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                open_nodes.append((event.anchor, nodes))
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
                anchor, before = open_nodes.pop()
                if anchor:
                    sizes[anchor] = nodes - before + 1
            if depth > _DEEPEST or nodes > _MOST_NODES:
                consequence = f"it has more than {_DEEPEST} levels or {_MOST_NODES} values: no service is as large."
                raise UserError(Problem(name, None, consequence, f"give {_FORMS}."))
    except yaml.YAMLError as error:
        consequence = f"it is not valid YAML: {' '.join(str(error).split())}."
        raise UserError(Problem(name, None, consequence, "correct the file at that line.")) from None


def _of_document(document: Any, name: str) -> FoundServer:
    if is_compose(document):
        return read_compose(document)
    if isinstance(document, dict) and is_knative(document):
        return read_service(as_run_service(document))
    if isinstance(document, dict) and isinstance(document.get("template"), dict):
        return read_service(document)
    kind = document.get("kind") if isinstance(document, dict) else None
    consequence = f"it is a {kind}, which is not converted." if kind else "its form is not known."
    raise UserError(Problem(name, None, consequence, f"give {_FORMS}."))


def _of_commands(text: str, name: str) -> FoundServer:
    commands = commands_of(text)
    exported: dict[str, str] = {}
    servers: list[FoundServer] = []
    files: list[str] = []
    for command in commands:
        if command.tokens[:1] == ["export"] or not command.tokens:
            exported |= {key: value for key, value in command.assignments.items() if _OF_THE_SERVER.fullmatch(key)}
        elif command.tokens[0] in ("source", ".") and len(command.tokens) > 1:
            files.append(command.tokens[1])
        elif server := _of_command(command, exported):
            servers.append(server)
    if not servers:
        first = next((" ".join(command.tokens) for command in commands if command.tokens), None)
        raise UserError(_unknown(commands, name, first))
    for other in servers[1:]:
        servers[0].leave(other.form, other.name or other.image, "a stack has one server.", "convert it by itself.")
    for file in files:
        servers[0].leave("source", file, "the variables in that file were not read.", "write them into the command.")
    return servers[0]


def _unknown(commands: list[Command], name: str, first: str | None) -> Problem:
    for command in commands:
        plain, _ = read_flags(command.tokens)
        if plain[:1] == ["gcloud"] and tuple(plain[1:4]) == _REPLACE:
            file = plain[4] if len(plain) > len(_REPLACE) + 1 else "FILE"
            return Problem(name, first, "it deploys what another file says.", f"give that file: {file}.")
    consequence = "no command in it starts or deploys vLLM's server." if first else "it is empty."
    return Problem(name, first, consequence, f"give {_FORMS}.")


def _of_command(command: Command, exported: dict[str, str]) -> FoundServer | None:
    tokens = command.tokens
    while tokens[:1] and tokens[0] in _WRAPPERS:
        tokens = tokens[1:]
        while tokens[:1] and (tokens[0].startswith("-") or (assignment := _ASSIGNMENT.fullmatch(tokens[0]))):
            if not tokens[0].startswith("-") and assignment:
                command.assignments[assignment[1]] = assignment[2]
            tokens = tokens[1:]
    if is_deploy(tokens):
        return read_deploy(tokens)
    if is_run(tokens):
        return read_run(tokens)
    if starts_server(tokens):
        variables = exported | command.assignments
        return FoundServer(form="vllm serve", tokens=tuple(tokens), variables=variables)
    return None
