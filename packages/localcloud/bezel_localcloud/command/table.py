"""Table of the commands of `localcloud` with their options; `bezel local` has them too, with its own texts."""

import functools
import tomllib
from pathlib import Path

from bezel_base.command_line.parser import Spec
from bezel_base.command_line.table import CommandTable

COMMANDS = Path(__file__).with_name("commands.toml")


@functools.cache
def spec() -> Spec:
    """The content of commands.toml."""
    return tomllib.loads(COMMANDS.read_text(encoding="utf-8"))


def program_table() -> CommandTable:
    """The commands of `localcloud`."""
    return CommandTable(spec())
