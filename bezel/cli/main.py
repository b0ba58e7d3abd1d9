"""Entry point of `bezel`: parses arguments, imports and calls the function of the command, shows every error.

The only imports of commands are made here, when a command is called: loading all of them takes a second.
"""

import argparse
import importlib
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.cli.command_table import passes_on, root_parser
from bezel.engine import LOCAL_PULUMI
from bezel_base.command_line.program import run_program

if TYPE_CHECKING:
    from bezel.engine.project.project import Project


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return its exit code (bezel_base.command_line.exit_codes)."""
    # It is for the user's own `pulumi`; bezel gives its engines copies itself.
    os.environ.pop(LOCAL_PULUMI, None)
    return run_program("bezel", arguments, lambda command_line: _run(parse(command_line)), _as_typed)


def _as_typed(text: str) -> str:
    from bezel.cli.local.typed_commands import as_typed  # late: for an error alone

    return as_typed(text)


def parse(command_line: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        UsageError: It is invalid.
    """
    parser = root_parser()
    if not passes_on(command_line):  # what follows the dashes is a value, as in other programs
        options = parser.read(command_line)
        options.pulumi = []
        return options
    # Split here: argparse cannot place the rest where our options come between the stack and the dashes.
    own_arguments, passed_on = list(command_line), []
    if "--" in own_arguments:
        dashes = own_arguments.index("--")
        own_arguments, passed_on = own_arguments[:dashes], own_arguments[dashes + 1 :]
    options = parser.read(own_arguments)
    if getattr(options, "pulumi", ()):
        parser.error(f"arguments that are passed on must follow --: {shlex.join(options.pulumi)} precedes it")
    options.pulumi = passed_on
    return options


def _run(options: argparse.Namespace) -> int:
    module, _, function = options.run.partition(":")
    run = getattr(importlib.import_module(module), function)
    code: int = run(options) if options.needs_project == "none" else run(_project(options), options)
    return code


def _project(options: argparse.Namespace) -> "Project":
    """The project around the working directory; a command that needs none may run in any folder.

    Raises:
        ProjectError: There is none, and the command needs one.
    """
    from bezel.engine.project.project import Project, ProjectError, find_project

    try:
        return find_project(Path.cwd())
    except ProjectError:
        if options.needs_project == "optional" and not getattr(options, "stack", None):
            return Project(Path.cwd())
        raise
