"""Recorder of the options of an installed `vllm serve`, and of the values known for some of them, as JSON on stdout.

    PYTHON bezel/catalog/vllm/option_recorder.py     PYTHON: the interpreter of the installed vLLM

Runs in vLLM's own environment and imports nothing of bezel. Values of options whose parser takes any text come from the
places where the started server looks them up; a place that a release does not have is reported on stderr, and its
values are not recorded. Leaves environment variables and bounds of values to `schema_recorder`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import sys
import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Modules of the parser of `vllm serve`, newest first: it moved.
_PARSERS = ("vllm.entrypoints.common.cli_args", "vllm.entrypoints.launchers.cli_args")
# Not options: the help, and the positional argument for the model.
_NO_OPTIONS = ("help", "model_tag")
_SUPPRESSED = "==SUPPRESS=="
_REGISTERED: dict[str, tuple[str, str, Callable[[Any], Iterable[object]]]] = {
    "tool-call-parser": ("vllm.tool_parsers", "ToolParserManager", lambda it: it.list_registered()),
    "reasoning-parser": ("vllm.reasoning", "ReasoningParserManager", lambda it: it.list_registered()),
    "quantization": ("vllm.model_executor.layers.quantization", "QUANTIZATION_METHODS", list),
    "attention-backend": (
        "vllm.v1.attention.backends.registry",
        "AttentionBackendEnum",
        # Two names of one class are two members; "auto" is read by the option itself and is no member.
        lambda it: [*it.__members__, "auto"],
    ),
    "config-format": (
        "vllm.transformers_utils.config",
        "_CONFIG_FORMAT_TO_CONFIG_PARSER",
        lambda it: [*it, "auto"],
    ),
    "load-format": ("vllm.model_executor.model_loader", "_LOAD_FORMAT_TO_MODEL_LOADER", list),
    "kv-cache-dtype": ("vllm.config.cache", "CacheDType", typing.get_args),
}


def options(parser: argparse.ArgumentParser) -> list[dict[str, object]]:
    """Return a row for each option, as bezel.catalog.vllm.options reads it."""
    actions = [action for action in parser._actions if action.dest not in _NO_OPTIONS]  # noqa: SLF001 - no other way
    return [_row(action) for action in actions if action.option_strings]


def _row(action: argparse.Action) -> dict[str, object]:
    row: dict[str, object] = {
        "dest": action.dest,
        "flags": list(action.option_strings),
        "kind": _kind(action),
    }
    if action.type is not None:
        row["type"] = getattr(action.type, "__name__", str(action.type))
    if action.choices is not None:
        row["choices"] = [str(choice) for choice in action.choices]
        if _takes_capitals(action):
            row["any_case"] = True
    if action.default is not None and action.default != _SUPPRESSED and _is_plain(action.default):
        row["default"] = action.default
    if getattr(action, "deprecated", False):
        row["deprecated"] = True
    return row


def _takes_capitals(action: argparse.Action) -> bool:
    """Whether the choices may be written in capitals too: the option's converter lowers them."""
    known = list(action.choices or ())
    words = [word for word in known if isinstance(word, str) and word != word.upper()]
    if not words or not callable(action.type):
        return False
    try:
        return all(action.type(word.upper()) in known for word in words)
    except (TypeError, ValueError, argparse.ArgumentTypeError):
        return False


def _kind(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "switch-pair" if isinstance(action, argparse.BooleanOptionalAction) else "switch"
    if isinstance(action, argparse._AppendAction):  # noqa: SLF001 - argparse names it nowhere else
        return "append"
    return {"?": "optional-value", "+": "values", "*": "values"}.get(str(action.nargs), "value")


def _is_plain(value: object) -> bool:
    """Whether a default is a JSON value, and not an object of vLLM's own."""
    if isinstance(value, list):
        return all(_is_plain(one) for one in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(one) for key, one in value.items())
    return type(value) in (bool, int, float, str)


def registered() -> dict[str, list[str]]:
    """Return, by option name, the values that the started server knows, in its own order."""
    found: dict[str, list[str]] = {}
    for name, (module, attribute, read) in _REGISTERED.items():
        try:
            values = read(getattr(importlib.import_module(module), attribute))
            found[name] = list(dict.fromkeys(str(value) for value in values))
        except (ImportError, AttributeError) as error:
            sys.stderr.write(f"the values of {name} are not recorded: {error}\n")
    return found


def _parser() -> argparse.ArgumentParser:
    utilities = importlib.import_module("vllm.utils.argparse_utils")
    for name in _PARSERS:
        with contextlib.suppress(ModuleNotFoundError):
            made: argparse.ArgumentParser = importlib.import_module(name).make_arg_parser(
                utilities.FlexibleArgumentParser()
            )
            return made
    raise SystemExit("vllm: the parser of `vllm serve` is in none of the known modules: " + ", ".join(_PARSERS))


@contextlib.contextmanager
def _stdout_kept() -> Iterator[None]:
    """Keep stdout for the JSON: vLLM logs there."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def main() -> None:
    """Print the recording."""
    with _stdout_kept():
        version = importlib.import_module("importlib.metadata").version("vllm")
        found = {"installed": version, "registered_values": registered(), "options": options(_parser())}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
