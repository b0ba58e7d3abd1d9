"""Table of the benchmark's commands and options, which `bezel-bench` and `bezel bench` share.

Owns where the texts of `bezel-bench` differ: it has another name, and knows no project and no credentials of Google.
"""

import functools
from pathlib import Path
from typing import Any

from bezel_base.command_line.parser import Spec
from bezel_base.command_line.table import CommandTable
from bezel_base.toml_tables import read_table

COMMANDS = Path(__file__).with_name("commands.toml")
PROGRAM = "bezel-bench"
_OF_BEZEL, _OWN = "`bezel bench`", f"`{PROGRAM}`"


@functools.cache
def shared_spec() -> Spec:
    """The content of commands.toml: `help`, `arguments`, `commands`, `tables`, and texts `without_project`."""
    return read_table(COMMANDS)


@functools.cache
def shared_table() -> CommandTable:
    """The commands by their names, with the options and defaults that both programs have."""
    return CommandTable(shared_spec())


def program_table() -> CommandTable:
    """The commands of `bezel-bench`, with its own texts."""
    spec = _copy_with_own_name({name: shared_spec()[name] for name in ("help", "arguments", "commands", "tables")})
    for table in spec["tables"].values():
        for name, keys in table["arguments"].items():
            keys.update({"help": text} if (text := shared_spec()["without_project"].get(name)) else {})
    return CommandTable(spec)


def _copy_with_own_name(value: Any) -> Any:
    """A copy of a part of the table that names this program."""
    if isinstance(value, dict):
        return {key: _copy_with_own_name(part) for key, part in value.items()}
    return value.replace(_OF_BEZEL, _OWN) if isinstance(value, str) else value
