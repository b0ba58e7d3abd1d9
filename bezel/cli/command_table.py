"""Table of the commands of `bezel`: commands.toml of this folder, with those of the benchmark's package.

Owns how the two become one, and which command passes on what follows `--`.
"""

import functools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bezel_base.command_line.parser import Parser, Spec
from bezel_base.command_line.table import CommandTable, joined, shown_name, value_name
from bezel_bench.commands.table import shared_spec

COMMANDS = Path(__file__).with_name("commands.toml")
_BENCHMARK = "bench"  # the command that has those of the benchmark's package
_PASSED_ON = "pulumi"  # name of the argument of a command that passes on what follows the dashes


@functools.cache
def command_table() -> CommandTable:
    """All commands of `bezel`."""
    own = tomllib.loads(COMMANDS.read_text(encoding="utf-8"))
    benchmark = shared_spec()
    shared = {"help": benchmark["help"], "commands": benchmark["commands"]}
    own["commands"][_BENCHMARK] = joined(shared, own["commands"][_BENCHMARK])
    return CommandTable({**own, "tables": joined(benchmark["tables"], own["tables"])})


def root_parser() -> Parser:
    """The parser of `bezel`."""
    return command_table().parser("bezel")


def passes_on(arguments: Sequence[str]) -> bool:
    """Whether the command that the arguments name passes on what follows `--`."""
    spec: Spec = command_table().spec
    for word in arguments:
        spec = spec.get("commands", {}).get(word, spec)
    return _PASSED_ON in command_table().arguments(spec)


def shown_names(operation: str) -> dict[str, str]:
    """Argument of an operation -> its name on the command line: `--zone`, or as the usage line has it, e.g. STACK."""
    return _shown_names(command_table().spec, operation) or {}


def _shown_names(spec: Mapping[str, Any], operation: str) -> dict[str, str] | None:
    if spec.get("operation") == operation:
        arguments = command_table().arguments(spec)
        return {value_name(name, keys): shown_name(name, keys) for name, keys in arguments.items()}
    found = (_shown_names(command, operation) for command in spec.get("commands", {}).values())
    return next((names for names in found if names is not None), None)
