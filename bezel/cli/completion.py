"""`bezel completion SHELL`: prints a completion script for the whole command tree, written by shtab.

The script is static and starts no Python: only names of stacks are read when a word is completed, from the stack files
of the working directory.
"""

import argparse
import sys
from typing import Literal

import shtab

from bezel.cli.command_table import root_parser
from bezel_base.command_line.parser import Parser

_STACKS = shtab.cmd("find . -maxdepth 1 -name 'Pulumi.*.yaml' | sed -e s/..Pulumi.// -e s/.yaml//")


def run(options: argparse.Namespace) -> Literal[0]:
    """Print the script; return the exit code."""
    parser = root_parser()
    _mark(parser)
    sys.stdout.write(shtab.complete(parser, options.shell) + "\n")
    return 0


def _mark(parser: Parser) -> None:
    """Fill the parser and those of its subcommands, and mark arguments that are paths or stacks."""
    for action in parser.fill()._actions:  # noqa: SLF001 - argparse has no public list of arguments
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            action.help = None  # shtab skips what is left out of the help
            for command in action.choices.values():
                _mark(command)
        elif action.dest == "stack":
            action.complete = _STACKS  # type: ignore[attr-defined]
        elif action.type == "path":
            action.complete = shtab.FILE  # type: ignore[attr-defined]
