"""`bezel new`: takes the options, asks for the rest, and makes a project's folder, or another stack in a project.

Leaves out a project that is made of what serves today (`converted_project`).
"""

import argparse
import json
from pathlib import Path
from typing import Any, Literal

from bezel.engine.outcomes import Exit
from bezel_base.errors import Problem, WrongValueError
from bezel_base.terminal.screen import show_text
from bezel_base.text.shell import shell_word

STACK = "stack"  # the word that makes another stack; a project of this name is `./stack`
_HERE = '"$PWD"'  # the shell's folder is the one that was replaced


def run(options: argparse.Namespace) -> Literal[Exit.DONE, Exit.REFUSED]:
    """Make what the options name; return the exit code.

    Raises:
        WrongValueError: It cannot be made as it is given; nothing is left.
        UserError: git failed, or the project around has problems.
    """
    names, source = options.names, _one_source(options.sources)
    if names[:1] == [STACK]:
        from bezel.cli.new.new_stack import make_stack

        make_stack(names[1:], source, options)
        return Exit.DONE
    if len(names) > 1:
        consequence = "a project has one name, without blanks."
        raise WrongValueError(Problem("NAME", " ".join(names), consequence, f"write `bezel new {names[0]}`."))
    if options.environment:
        repair = f"write `bezel new stack NAME --from STACK --environment {shell_word(options.environment)}`."
        consequence = "a new project has the environments dev and prod, and its limits decide which one fits."
        raise WrongValueError(Problem("--environment", options.environment, consequence, repair))
    word = names[0] if names else ""
    word = word.removeprefix("./") if word == f"./{STACK}" else word
    if source:
        from bezel.cli.new.converted_project import make_converted_project

        return make_converted_project(word, source, options)
    if options.project:
        consequence = "it is the project of what is converted, and --from names nothing."
        raise WrongValueError(Problem("--project", options.project, consequence, "add --from, or leave it out."))
    _make_project(word, options)
    return Exit.DONE


def _one_source(sources: list[str]) -> str:
    if len(sources) > 1:
        consequence = "a stack is made of one of them."
        repair = f"write --from {shell_word(sources[0])} alone, and make another project of the other."
        raise WrongValueError(Problem("--from", ", ".join(sources), consequence, repair))
    if sources == [""]:
        consequence = "it names nothing."
        raise WrongValueError(Problem("--from", "", consequence, "name a service, a file or a stack."))
    return sources[0] if sources else ""


def _make_project(word: str, options: argparse.Namespace) -> None:
    from bezel.cli.new.choice import DEFAULT_MODEL, Choice, choose, regions
    from bezel.cli.new.folder import checked_target, make_folder
    from bezel.cli.new.model_names import ModelNames, with_row
    from bezel.cli.new.questions import Questions, is_terminal
    from bezel.cli.new.source import library_source
    from bezel.cli.new.stack_text import stack_text
    from bezel.cli.new.template import project_files, template_files

    here = Path.cwd()
    questions = Questions(are_asked=is_terminal() and not options.yes)
    word = word or questions.answer("NAME", "Name of the project?", "", lambda name: checked_target(name, here))
    target = checked_target(word, here)
    source = library_source(options.packages, here)
    limits: dict[str, Any] = json.loads(template_files()["policies/hardware_cost.dev.json"])
    machine, region, names = options.accelerator, options.region, ModelNames()

    def choose_for(name: str, machine: str, region: str) -> Choice:
        model = names.id_of(name)
        with names.using():
            return choose(model, machine, region, limits)

    named = options.model or questions.answer(
        "--model", "Model?", DEFAULT_MODEL, lambda name: choose_for(name, machine, region)
    )
    cheapest = choose_for(named, machine, region)
    machine = machine or questions.answer(
        "--accelerator",
        f"Accelerator? The cheapest on which it fits costs {cheapest.price_text()}.",
        cheapest.accelerator,
        lambda name: choose_for(named, name, region),
    )
    cheapest = choose_for(named, machine, region)
    region = region or questions.answer(
        "--region",
        f"Region? {machine} is in {', '.join(regions(machine))}.",
        cheapest.region,
        lambda name: choose_for(named, machine, name),
    )
    choice, model = choose_for(named, machine, region), names.id_of(named)
    files = project_files(target.name, source, choice.stack, stack_text(choice))
    if new_row := names.row_of(model):
        files = with_row(files, new_row, named)
    make_folder(target, files, with_git=options.git)
    show_text(f"{target.name}: {model} on {choice.accelerator} in {choice.region}, {choice.price_text()}")
    show_text("")
    show_text("The next commands, on an embedded cloud on this machine:")
    show_text("")
    show_text(f"    cd {_HERE if word == '.' else shell_word(target.name)}")
    show_text("    make up")
    show_text("")
    show_text("README.md has those for Google Cloud.")
    if not source.place:
        show_text("pyproject.toml names no index, so uv asks its own for the library: --packages WHERE names another.")
