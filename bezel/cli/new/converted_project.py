"""`bezel new [NAME] --from SERVICE|FILE`: a project whose stack serves what serves today.

The input is read and planned first, so that nothing is made of one that is not understood. A stack that the plan or
the limits refuse is made all the same, since its file is where that is repaired; what refuses it is said.
"""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from bezel.cli.new.choice import DEV, PROD, check_names
from bezel.cli.new.environment_choice import LIMITS, EnvironmentChoice, choose_environment
from bezel.cli.new.folder import checked_target, make_folder
from bezel.cli.new.model_names import ModelNames, with_row
from bezel.cli.new.questions import Questions, is_terminal
from bezel.cli.new.source import library_source
from bezel.cli.new.stack_text import SCHEMA
from bezel.cli.new.template import project_files, template_files
from bezel.conversion.adoption import adopted_ids
from bezel.conversion.conversion import Conversion, convert_server
from bezel.conversion.converted import Wishes
from bezel.conversion.sources import convert_source
from bezel.conversion.stack_text import stack_text
from bezel.engine.outcomes import Exit
from bezel.engine.project.project import cloud_project_of
from bezel.operations.context import Context
from bezel.planner.base.hardware import leased_hardware
from bezel.rest import RestError
from bezel_base.errors import UserError, WrongValueError
from bezel_base.terminal.screen import show_text
from bezel_base.text.shell import shell_word
from bezel_catalog import accelerators

_LABELS = {"owner": "ml-platform", "expires-at": "never"}  # as a stack of `bezel new` has them
_README = """
## Adopt the service that serves today

`{service}` is taken over by the stack `{stack}`: it is imported by its id, then updated, and never replaced. After
`make setup`, `.venv/bin/bezel adopt {stack}` writes `import-{stack}.json`, and prints the commands that import the
service and then update it.
"""


@dataclass(frozen=True)
class _Converted:
    """The conversion, with the environment of its stack."""

    conversion: Conversion
    environment: EnvironmentChoice


def make_converted_project(word: str, source: str, options: argparse.Namespace) -> Literal[Exit.DONE, Exit.REFUSED]:
    """Make the project; return whether the plan and the limits accept its stack.

    Args:
        word: Name of the project; "" to ask for it.
        source: The service, or the path of the file.
        options: Of the command.

    Raises:
        WrongValueError: It cannot be made as it is given; nothing is left.
        UserError: Cloud Run or git failed; nothing is left.
    """
    here = Path.cwd()
    check_names("", options.accelerator, [*accelerators(), *leased_hardware()])
    questions = Questions(are_asked=is_terminal() and not options.yes)
    word = word or questions.answer("NAME", "Name of the project?", "", lambda name: checked_target(name, here))
    target = checked_target(word, here)
    library = library_source(options.packages, here)
    names = ModelNames()
    made = _convert(source, options, here, names)
    conversion, stack = made.conversion, made.conversion.stack
    # As in every new project the environment names Google's project, so that localcloud can stand for it.
    text = stack_text(replace(conversion.converted, project=""), schema=SCHEMA)
    files = dict(project_files(target.name, library, stack, text, environment=made.environment.name))
    if new_row := names.row_of(str(conversion.converted.settings["model"])):
        files = with_row(files, new_row, options.model)
    server, project = conversion.converted.server, conversion.converted.project
    if project:
        files["README.md"] = files["README.md"].replace("my-project", project)
    adopts = server.on_cloud_run and (conversion.plan is None or bool(adopted_ids(server, conversion.plan)))
    if adopts:
        files["README.md"] += _README.format(service=server.name, stack=stack)
    make_folder(target, files, with_git=options.git)
    show_text(f"{target.name}: the stack {stack}, in the environment {made.environment.name}\n")
    show_text(conversion.text())
    refusals = made.environment.refusals
    if refusals:
        show_text(f"{UserError(*refusals, title=f'The limits of {made.environment.name} refuse {stack}')}\n")
    folder = '"$PWD"' if word == "." else shell_word(target.name)
    present = cloud_project_of(os.environ) or ""
    # The adoption needs the project of the service, which a command may leave out.
    named = project or ("" if present else "my-project")
    export = f"export GOOGLE_PROJECT={shell_word(named)}" if named and named != present else ""
    commands = ("make setup", export, f".venv/bin/bezel adopt {shell_word(stack)}") if adopts else ("make up",)
    for line in _next_lines(folder, stack, commands, refused=bool(refusals or conversion.objections)):
        show_text(line)
    return Exit.REFUSED if refusals or conversion.objections else Exit.DONE


def _convert(source: str, options: argparse.Namespace, here: Path, names: ModelNames) -> _Converted:
    """Read the source once, then convert it for the environment whose limits allow it.

    A model that the catalogue does not have is read, and planned by its row.

    Raises:
        WrongValueError: The source is not there, or does not run vLLM's server.
        RestError: Cloud Run could not be asked.
    """
    # A file has its own project; a service by its short name is one of the environment's project.
    is_short_name = "/" not in source and not (here / source).is_file()
    project = options.project or (cloud_project_of(os.environ) if is_short_name else None) or ""
    model = names.id_of(options.model)
    with names.using():
        check_names(model, "", ())
    wishes = Wishes(
        project=project,
        accelerator=options.accelerator,
        region=options.region,
        model=model,
        labels=_LABELS,
    )
    today = datetime.now(UTC).date()
    try:
        with Context(here, os.environ) as context, names.using():
            conversion = convert_source(
                source,
                folder=here,
                wishes=wishes,
                google=lambda: context.google,
                endpoint=context.address("CLOUD_RUN_V2"),
                today=today,
            )
        _read_model(conversion, names)
        template = template_files()
        limits = {name: json.loads(template[LIMITS.format(name)]) for name in (DEV, PROD)}
        with names.using():
            conversion = convert_server(conversion.converted.server, wishes, today=today)
            environment = choose_environment(conversion, limits)
            named = replace(wishes, environment=environment.name)
            conversion = convert_server(conversion.converted.server, named, today=today)
    except (WrongValueError, RestError):
        raise
    except UserError as error:  # its input is what the user gave
        raise WrongValueError(*error.problems, title=error.title) from None
    return _Converted(conversion, environment)


def _read_model(conversion: Conversion, names: ModelNames) -> None:
    """Read the model of an input where it is not in the catalogue; one that cannot be read is said, and has no row."""
    place, revision = conversion.unknown_model
    if not place:
        return
    try:
        names.read(place, revision)
    except UserError as error:
        command = f"`bezel catalog add-model {shell_word(f'{place}@{revision}' if revision else place)}`"
        show_text(f"{place} could not be read, so the project has no row of it; once it can be, {command} writes it:")
        show_text(f"{error}\n")


def _next_lines(folder: str, stack: str, commands: Sequence[str], *, refused: bool) -> Iterator[str]:
    """The next commands, for people; an empty one is none."""
    if refused:
        check = f"`.venv/bin/bezel plan {shell_word(stack)}`"
        yield f"Repair Pulumi.{stack}.yaml or the limits first; {check} checks the stack file.\n"
    adopts = len(commands) > 1
    yield "The next commands" + (", which adopt the service that exists and replace nothing:\n" if adopts else ":\n")
    yield f"    cd {folder}"
    yield from (f"    {command}" for command in commands if command)
    yield "\nREADME.md has those for Google Cloud."
