"""Parser of the command line of `vllm serve`, built from the recorded option list of the release.

Owns the rules of the parser itself: spelling, number of values, types, choices, dotted JSON keys, `--config` files.
A refused argument ends the process with status 2 and argparse's own message. Leaves the meaning of an accepted
combination, and whether the engine can run it, to `settings.py`.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from bezel_base.errors import Problem, UserError
from bezel_catalog import vllm_options
from bezel_simulated_vllm.configuration.adapters import parse_modules
from bezel_simulated_vllm.configuration.relations.option_classes import configuration_error
from bezel_simulated_vllm.release import DEFAULT_RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bezel_catalog import VllmOption

_SUFFIXES = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# The top parser prints its usage, not the subcommand's, when arguments are left over.
_TOP_USAGE = (
    "usage: vllm [-h] [-v]\n"
    "            {chat,complete,serve,launch,bench,collect-env,download-kernels,preload,run-batch,snapshot}\n"
    "            ...\n"
)


class _Parser(argparse.ArgumentParser):
    """argparse, with the one message that vLLM's nested parsers print differently."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments"):
            sys.stderr.write(f"{_TOP_USAGE}vllm: error: {message}\n")
        else:
            sys.stderr.write(f"usage: vllm serve [model_tag] [options]\nvllm serve: error: {message}\n")
        sys.exit(2)


def parse(
    arguments: Sequence[str], unknown: frozenset[str] = frozenset(), release: str = DEFAULT_RELEASE
) -> argparse.Namespace:
    """Parse the arguments of `vllm serve`.

    Args:
        arguments: the container's arguments, e.g. `["/mnt/models/m", "--max-model-len=32768"]`.
        unknown: options of the release that this image's vLLM does not have, e.g. `{"--spec-method"}`.
        release: the release of vLLM, which is recorded.

    Returns:
        One attribute for each option of the release, under the option's `dest`; `given` names those that differ from
        their default, `release` is the release.

    Raises:
        SystemExit: status 2 with a message on stderr, as vLLM's parser does; 0 after `--help`.
        UserError: the file given with `--config` cannot be read.
    """
    parser = _parser(unknown, release)
    space = parser.parse_args(_json_from_dotted(_normalise(_with_config(list(arguments)))))
    if refused := configuration_error(space):
        parser.error(refused)
    space.model = space.model_tag or space.model
    space.lora_modules = parse_modules(space.lora_modules, parser.error)
    defaults = _defaults(unknown, release)
    space.given = tuple(name for name, value in vars(space).items() if defaults.get(name) != value)
    space.release = release
    return space


@functools.cache
def _parser(unknown: frozenset[str], release: str) -> _Parser:
    # An unknown option must not be read as the abbreviation of another one.
    parser = _Parser(
        prog="vllm serve", usage="vllm serve [model_tag] [options]", add_help=False, allow_abbrev=not unknown
    )
    parser.add_argument("model_tag", nargs="?", default=None)
    parser.add_argument("-h", "--help", action="help")
    for option in vllm_options(release).options:
        if option.dest in {"help", "model_tag"} or not option.flags:
            continue
        if unknown.isdisjoint(option.flags):
            parser.add_argument(*option.flags, dest=option.dest, default=option.default, **_shape(option))
        else:
            parser.set_defaults(**{option.dest: option.default})
    return parser


@functools.cache
def _defaults(unknown: frozenset[str], release: str) -> dict[str, object]:
    """By `dest`: argparse's own look-up walks through all options for each of them."""
    parser = _parser(unknown, release)
    names = ("model_tag", *(option.dest for option in vllm_options(release).options))
    return {name: parser.get_default(name) for name in names}


def _shape(option: VllmOption) -> dict[str, Any]:
    shape = dict(_KINDS.get(option.kind, {}))
    if option.kind in {"switch", "switch-pair"}:
        return shape
    if convert := _converter(option):
        shape["type"] = convert
    if option.choices:
        # argparse compares the choices with the converted value.
        shape["choices"] = [shape.get("type", str)(choice) for choice in option.choices]
    return shape


def _converter(option: VllmOption) -> Callable[[str], object] | None:
    if option.any_case:
        return _small
    if option.dest in _MAP_OR_TEXT:
        return _map_or_text
    convert = _CONVERTERS.get(option.type)
    return _optional(convert or str) if option.optional else convert


class _OnOff(argparse.Action):
    """Action of `--x` and `--no-x`; argparse's own adds a negative spelling, which the recorded list has already."""

    def __init__(self, option_strings: Sequence[str], dest: str, default: object = None) -> None:
        super().__init__(option_strings, dest, nargs=0, default=default)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        del parser, values
        setattr(namespace, self.dest, option_string == self.option_strings[0])


_KINDS: dict[str, dict[str, Any]] = {
    "switch": {"action": "store_true"},
    "switch-pair": {"action": _OnOff},
    "append": {"action": "append"},
    "values": {"nargs": "+"},
    "optional-value": {"nargs": "?"},
}


def human_int(text: str) -> int:
    """Convert a number with a suffix: 16k is 16000, 16K is 16384, 25.6k is 25600.

    Raises:
        argparse.ArgumentTypeError: the text has decimals and a binary suffix.
        ValueError: the text is not an integer.
    """
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text.strip()):
        number, suffix = match.groups()
        if suffix.isupper() and "." in number:
            raise argparse.ArgumentTypeError(
                f"Decimals are not allowed with binary suffixes like {suffix}. "
                f"Did you mean to use {number}{suffix.lower()} instead?"
            )
        return int(float(number) * _SUFFIXES[suffix])
    return int(text)


def _human_int_or_auto(text: str) -> int:
    return -1 if text.strip() in {"-1", "auto"} else human_int(text)


def _optional(convert: Callable[[str], object]) -> Callable[[str], object]:
    def convert_optional(text: str) -> object:
        try:
            return None if text in {"", "None"} else convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to {convert}.") from error

    return convert_optional


def _small(text: str) -> str:
    return text.lower().replace("-", "_")


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        # vLLM prints its converter with its memory address, which differs in each run.
        message = f"Value {text} cannot be converted to <function loads at 0x7f0000000000>."
        raise argparse.ArgumentTypeError(message) from None


def _map_or_text(text: str) -> object:
    """Parse a JSON map; return any other text unchanged."""
    return _optional(_json)(text) if re.fullmatch(r"(?s)\s*{.*}\s*", text) else text


_CONVERTERS: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "json": _json,
    "human-int": human_int,
    "human-int-or-auto": _human_int_or_auto,
}
# Options that take either a map or a text.
_MAP_OR_TEXT = ("additional_config", "hf_overrides", "model_loader_extra_config", "pt_load_map_location")


def _normalise(arguments: list[str]) -> list[str]:
    """Replace underscores by dashes before the first dot of an option's name, where vLLM takes both."""
    return [re.sub(r"^--[^=.]*", lambda name: name[0].replace("_", "-"), argument) for argument in arguments]


def _json_from_dotted(arguments: list[str]) -> list[str]:
    """Merge dotted options: `--speculative-config.method mtp` becomes `--speculative-config '{"method": "mtp"}'`."""
    result: list[str] = []
    merged: dict[str, dict[str, Any]] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if not (name.startswith("--") and "." in name):
            result.append(argument)
            continue
        text = value if equals else next(rest, "")
        key, *path = name.split(".")
        level = merged.setdefault(key, {})
        for step in path[:-1]:
            level = level.setdefault(step, {})
        try:
            level[path[-1]] = json.loads(text)
        except json.JSONDecodeError:
            level[path[-1]] = text
    for key, values in merged.items():
        result += [key, json.dumps(values)]
    return result


def _with_config(arguments: list[str]) -> list[str]:
    """Insert the options of a `--config` file before those of the command line, which therefore override them."""
    if "--config" not in arguments:
        return arguments
    import yaml

    at = arguments.index("--config")
    path = Path(*arguments[at + 1 : at + 2])
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        consequence = f"its options cannot be read: {error}."
        raise UserError(Problem("--config", str(path), consequence, "give a readable file of YAML.")) from None
    extra: list[str] = []
    for key, value in content.items():
        if key == "model":
            extra.insert(0, str(value))
        elif isinstance(value, bool):
            extra += [f"--{key}"] if value else []
        elif isinstance(value, list):
            extra += [f"--{key}", *map(str, value)]
        else:
            extra += [f"--{key}", json.dumps(value) if isinstance(value, dict) else str(value)]
    head = [] if not arguments or arguments[0].startswith("-") else [arguments[0]]
    if head and extra and not extra[0].startswith("-"):
        extra = extra[1:]
    return head + extra + arguments[len(head) : at] + arguments[at + 2 :]
