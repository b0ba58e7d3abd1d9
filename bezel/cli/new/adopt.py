"""`bezel adopt STACK`: the import file of what exists already, and the commands that import and then update it."""

import argparse
import os
from typing import Literal

from bezel.engine.project.project import Project
from bezel.operations.adoption.adoption import write_adoption
from bezel.operations.context import Context
from bezel_base.terminal.screen import show_text


def run(project: Project, options: argparse.Namespace) -> Literal[0]:
    """Write the import file, and print the commands; return the exit code.

    Raises:
        UserError: There is nothing to adopt, or the stack cannot be planned or previewed.
    """
    with Context(project.folder, os.environ) as context:
        adoption = write_adoption(context, options.stack)
    show_text(f"{options.stack} adopts what exists, by {adoption.file.name}; nothing was changed yet:")
    for identity in adoption.ids:
        show_text(f"    {identity}")
    show_text("\nThe next commands, in this folder; preview has to show an update of the service, no replacement:\n")
    for command in adoption.commands:
        show_text(f"    {command}")
    return 0
