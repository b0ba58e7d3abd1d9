"""Reader of `docker run` and `podman run` of an image with vLLM's server. Pure.

Source: references of `docker run` (28) and `podman run` (5), 2026-11: which options take no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.conversion.inputs.found_server import FoundServer
from bezel.conversion.inputs.word_tables import words_of
from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

FORM = "docker run"
_PROGRAMS = ("docker", "podman", "nerdctl")
_SHORT = {"d": "detach", "i": "interactive", "t": "tty", "P": "publish-all", "q": "quiet"}
_SHORT_VALUES = {
    "e": "env",
    "v": "volume",
    "p": "publish",
    "u": "user",
    "w": "workdir",
    "l": "label",
    "m": "memory",
    "c": "cpu-shares",
    "h": "hostname",
    "a": "attach",
}
LOCAL_FOLDER = "it is a folder of that machine, which Cloud Run does not have."
LOCAL_REPAIR = "copy the model's files into the bucket of weights: `bezel weights copy`."


def is_run(tokens: Sequence[str]) -> bool:
    """Whether a command is `docker run`, or another program's with the same options."""
    plain = [word for word in tokens if not word.startswith("-")]
    is_program = bool(plain) and plain[0].rpartition("/")[2] in _PROGRAMS
    return is_program and (plain[1:2] == ["run"] or plain[1:3] == ["container", "run"])


def read_run(tokens: Sequence[str]) -> FoundServer:
    """The server that a command starts.

    Raises:
        UserError: The command names no image.
    """
    server = FoundServer(form=FORM)
    place = list(tokens).index("run") + 1
    entrypoint: list[str] = []
    image = ""
    while place < len(tokens):
        if not tokens[place].startswith("-"):
            image, place = tokens[place], place + 1
            break
        options, place = _option_at(tokens, place)
        for name, value in options:
            if name == "entrypoint":
                entrypoint = [value] if value else []
            else:
                _read_option(server, name, value)
    if not image:
        consequence = "it names no image, so what it starts is not known."
        raise UserError(Problem(FORM, " ".join(tokens), consequence, "give the whole command, with its image."))
    server.image, server.tokens = image, (*entrypoint, *tokens[place:])
    return server


def _option_at(tokens: Sequence[str], place: int) -> tuple[list[tuple[str, str]], int]:
    """The options of a word, with their values, and the place after them."""
    word = tokens[place]
    if word.startswith("--"):
        name, equals, value = word.removeprefix("--").partition("=")
        if equals or name in words_of("docker", "switches"):
            return [(name, value)], place + 1
        return [(name, tokens[place + 1] if place + 1 < len(tokens) else "")], place + 2
    options: list[tuple[str, str]] = []
    for at, letter in enumerate(word[1:], start=1):
        if letter in _SHORT_VALUES:
            rest = word[at + 1 :].removeprefix("=")
            if rest:
                return [*options, (_SHORT_VALUES[letter], rest)], place + 1
            return [*options, (_SHORT_VALUES[letter], tokens[place + 1] if place + 1 < len(tokens) else "")], place + 2
        options.append((_SHORT.get(letter, letter), ""))
    return options, place + 1


def _read_option(server: FoundServer, name: str, value: str) -> None:
    if name == "name":
        server.name = value
    elif name == "env":
        variable, equals, text = value.partition("=")
        server.variables[variable] = text if equals else f"${{{variable}}}"
    elif name == "env-file":
        server.leave("--env-file", value, "the variables in that file were not read.", "write them into the command.")
    elif name in ("volume", "mount"):
        read_volume(server, f"--{name}", value)
    elif name == "gpus":
        server.gpus = gpu_count(value)
    elif name not in words_of("docker", "switches") | words_of("docker", "ignored"):
        server.leave(f"--{name}", value, "no setting of a stack file says it.")


def read_volume(server: FoundServer, key: str, value: str) -> None:
    """Note a volume; one with a cache of the hub says nothing about what is served."""
    if "huggingface" not in value and "/.cache" not in value:
        server.leave(key, value, LOCAL_FOLDER, LOCAL_REPAIR)


def gpu_count(text: str) -> int | None:
    """The number of GPUs of `--gpus`: of `2`, `device=0,1`, `"device=0,1"`; None for all of them."""
    plain = text.strip("\"'")
    if plain.isdecimal():
        return int(plain)
    name, equals, devices = plain.partition("=")
    if equals and name == "device":
        return len(devices.split(","))
    return int(devices) if equals and name == "count" and devices.isdecimal() else None
