"""Entry point of `localcloud`: the embedded cloud for anybody, without a project and without Pulumi."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bezel_base.command_line.program import run_program
from bezel_localcloud import PROGRAM
from bezel_localcloud.command.table import program_table

if TYPE_CHECKING:
    from bezel_localcloud.command.program import Program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (bezel_base.command_line.exit_codes)."""
    return run_program(PROGRAM, arguments, _run)


def _run(arguments: Sequence[str]) -> int:
    options = program_table().parser(PROGRAM).read(arguments)
    from bezel_localcloud.command.program import Program  # late: the help needs no cloud

    return run_command(Program(arguments), options)


def run_command(program: "Program", options: argparse.Namespace) -> int:
    """Import and call the function of the command that the options name; return its exit code."""
    module, _, function = options.call.partition(":")
    code: int = getattr(importlib.import_module(module), function)(program, options)
    return code


if __name__ == "__main__":
    sys.exit(main())
