"""Table of the commands of `localcloud` with their options; `bezel local` has them too, with its own texts."""

import functools
from pathlib import Path

from bezel_base.command_line.parser import Spec
from bezel_base.command_line.table import CommandTable
from bezel_base.toml_tables import read_table

COMMANDS = Path(__file__).with_name("commands.toml")


@functools.cache
def spec() -> Spec:
    """The content of commands.toml."""
    return read_table(COMMANDS)


def program_table() -> CommandTable:
    """The commands of `localcloud`."""
    return CommandTable(spec())
