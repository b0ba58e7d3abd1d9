"""Runner of every command that is an operation: options become its arguments, its result becomes text or JSON."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from bezel_base.console import say, write
from bezel_base.errors import WrongValueError
from bezel_base.terminal.screen import show
from bezel_base.terminal.steps import Steps

if TYPE_CHECKING:
    from bezel.engine.project.project import Project
    from bezel.operations.arguments.model import Arguments
    from bezel.operations.operation import Operation
    from bezel.operations.results import Result


def run(project: "Project", options: argparse.Namespace) -> int:
    """Run the operation that the command names; return the exit code of its result.

    Raises:
        UserError: An argument is invalid, or the operation failed.
    """
    from bezel.operations.context import Context
    from bezel.operations.registry import operation

    called = operation(options.operation)
    arguments = arguments_of(called, options)
    output, pieces = (None, None) if options.json else (say, write)
    with (
        Steps(sys.stderr) as steps,
        Context(project.folder, os.environ, show=steps, output=output, pieces=pieces, shows_secrets=True) as context,
    ):
        if called.kind == "changing":
            from bezel.cli.change import run_change

            return run_change(context, called, arguments, options)
        result = called.load()(context, arguments)
    if options.json:
        say(result.model_dump_json(indent=2))
    else:
        show_result(result)
    return result.exit_code


def show_result(result: "Result") -> None:
    """Write a result to standard output, fitted to its width, with the commands that the user's shell has."""
    from bezel.cli.local.typed_commands import as_typed

    show(result.page(), edit=as_typed)


def arguments_of(called: "Operation", options: argparse.Namespace) -> "Arguments":
    """The arguments of an operation from the options of its command.

    Raises:
        WrongValueError: One of them is invalid.
    """
    from pydantic import ValidationError

    from bezel.cli.command_table import shown_names
    from bezel.operations.arguments.errors import argument_problems

    model = called.arguments()
    values = {name: getattr(options, name) for name in model.model_fields if getattr(options, name, None) is not None}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise WrongValueError(*argument_problems(error, model, shown_names(called.name))) from None
