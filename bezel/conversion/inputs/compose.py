"""Reader of compose files with a service that runs vLLM's server.

Source: the Compose specification, 2026-11: lists or maps of variables, lists or text of commands, `${NAME:-default}`.
Only the file itself is read: no `.env`, no `env_file`, no `extends`. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.conversion.inputs.docker_run import read_volume
from bezel.conversion.inputs.found_server import FoundServer
from bezel.conversion.inputs.server_words import starts_server
from bezel.conversion.inputs.shell_words import commands_of
from bezel.conversion.inputs.variable_expansion import expand
from bezel.conversion.inputs.word_tables import reason_of, words_of
from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

FORM = "compose file"


def is_compose(document: object) -> bool:
    """Whether a document is a compose file: it has a map of services."""
    services = document.get("services") if isinstance(document, dict) else None
    return isinstance(services, dict) and all(isinstance(each, dict) for each in services.values())


def read_compose(document: Mapping[str, Any]) -> FoundServer:
    """The first service that runs vLLM's server; the others are named.

    Raises:
        UserError: No service runs it.
    """
    services: dict[str, dict[str, Any]] = document["services"]
    serving = [name for name, service in services.items() if _runs_vllm(service)]
    if not serving:
        images = ", ".join(f"{name} ({service.get('image', 'no image')})" for name, service in services.items())
        consequence = "no service of the file runs vLLM's server, so there is nothing to deploy."
        raise UserError(Problem("services", images, consequence, "name a service with the image vllm/vllm-openai."))
    server = FoundServer(form=FORM, name=serving[0])
    for name, service in services.items():
        if name != serving[0]:
            is_server = name in serving
            reason = "a stack has one server." if is_server else "a stack deploys vLLM's server alone."
            repair = "keep it alone in a file, and convert that one." if is_server else ""
            server.leave(f"services.{name}", service.get("image"), reason, repair)
    _read_service(server, services[serving[0]])
    return server


def _runs_vllm(service: Mapping[str, Any]) -> bool:
    return "vllm" in str(service.get("image", "")) or starts_server(_words(service.get("command")))


def _read_service(server: FoundServer, service: Mapping[str, Any]) -> None:
    here = f"services.{server.name}"
    for key, value in service.items():
        match key:
            case "image":
                server.image = expand(str(value), {})
            case "environment":
                server.variables = _variables(value)
            case "volumes":
                for volume in value if isinstance(value, list) else []:
                    text = volume.get("source", "") if isinstance(volume, dict) else volume
                    read_volume(server, f"{here}.volumes", expand(str(text), {}))
            case "command" | "entrypoint" | "deploy":
                pass
            case _ if key not in words_of("compose", "ignored") and not key.startswith("x-"):
                server.leave(f"{here}.{key}", value, *reason_of("compose", key))
    server.tokens = (*_words(service.get("entrypoint")), *_words(service.get("command")))
    server.gpus = _gpus(service.get("deploy"))


def _words(command: object) -> tuple[str, ...]:
    if isinstance(command, list):
        return tuple(expand(str(word), {}) for word in command)
    if not isinstance(command, str):
        return ()
    # Compose splits the text after it has filled in the variables; a folded text is one line.
    commands = commands_of(expand(command, {}).replace("\n", " "))
    return tuple(commands[0].tokens) if commands else ()


def _variables(value: object) -> dict[str, str]:
    if isinstance(value, dict):
        return {name: _variable(name, item) for name, item in value.items()}
    pairs = (str(item).partition("=") for item in value) if isinstance(value, list) else ()
    return {name: expand(text, {}) if equals else f"${{{name}}}" for name, equals, text in pairs}


def _variable(name: str, value: object) -> str:
    if value is None:
        return f"${{{name}}}"
    return ("true" if value else "false") if isinstance(value, bool) else expand(str(value), {})


def _gpus(deploy: object) -> int | None:
    """GPUs that a service reserves; None where it reserves none or all."""
    inside: Any = deploy
    for key in ("resources", "reservations", "devices"):
        inside = inside.get(key) if isinstance(inside, dict) else None
    for device in inside if isinstance(inside, list) else []:
        if isinstance(device, dict):
            count, ids = device.get("count"), device.get("device_ids")
            if isinstance(ids, list):
                return len(ids)
            if isinstance(count, int):
                return count
    return None
