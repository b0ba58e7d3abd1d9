"""Table of the commands of `bezel`: commands.toml of this folder, with those of operations, benchmark and localcloud.

Owns how they become one, and which command passes on what follows `--`.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bezel.operations import COMMANDS as OPERATION_COMMANDS
from bezel_base.command_line.parser import Parser, Spec
from bezel_base.command_line.table import CommandTable, merge_tables, shown_name, value_name
from bezel_base.toml_tables import read_table
from bezel_bench.commands.table import shared_spec
from bezel_localcloud.command.table import spec as localcloud_spec

COMMANDS = Path(__file__).with_name("commands.toml")
_RUN = "bezel.cli.operation:run"  # of a command that is an operation
_BENCHMARK = "bench"  # the command that has those of the benchmark's package
_LOCALCLOUD = "local"  # the command that has those of localcloud's package
_SHARED = ("serve", "start", "stop", "status", "env", "token", "fault", "region")
_TABLES = ("localcloud", "localcloud server", "serve", "content")
_PASSED_ON = "pulumi"  # name of the argument of a command that passes on what follows the dashes


@functools.cache
def command_table() -> CommandTable:
    """All commands of `bezel`."""
    made = json.loads(OPERATION_COMMANDS.read_text(encoding="utf-8"))
    table = merge_tables(made, read_table(COMMANDS))
    _add_run(table["commands"])
    benchmark = shared_spec()
    shared = {"help": benchmark["help"], "commands": benchmark["commands"]}
    table["commands"][_BENCHMARK] = merge_tables(shared, table["commands"][_BENCHMARK])
    cloud = localcloud_spec()
    local = table["commands"][_LOCALCLOUD]
    commands = _replace_keys({name: cloud["commands"][name] for name in _SHARED}, local["commands"])
    local["commands"] = {name: commands[name] for name in local["commands"]}
    table["tables"] = _replace_keys({name: cloud["tables"][name] for name in _TABLES}, table["tables"])
    return CommandTable({**table, "tables": merge_tables(benchmark["tables"], table["tables"])})


def _add_run(commands: dict[str, Any]) -> None:
    """Add the runner of operations to those commands that name no other; the benchmark's have that of `bench`."""
    for word, command in commands.items():
        if "operation" in command:
            command.setdefault("run", _RUN)
        if word != _BENCHMARK:
            _add_run(command.get("commands", {}))


def _replace_keys(shared: Spec, replacing: Spec) -> dict[str, Any]:
    """A part of a shared table, in its order, with what an own one replaces and adds."""
    result = dict(shared)
    for key, value in replacing.items():
        both = isinstance(value, Mapping) and isinstance(shared.get(key), Mapping)
        result[key] = _replace_keys(shared[key], value) if both else value
    return result


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
    nested = (_shown_names(command, operation) for command in spec.get("commands", {}).values())
    return next((names for names in nested if names is not None), None)
