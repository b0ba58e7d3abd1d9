"""`bezel new`: takes the options, asks for the rest, and makes a project's folder, or another stack in a project."""

import argparse
import json
from pathlib import Path
from typing import Any, Literal

from bezel_base.console import say
from bezel_base.errors import Problem, WrongValueError
from bezel_base.text.shell import shell_word

STACK = "stack"  # the word that makes another stack; a project of this name is `./stack`
_HERE = '"$PWD"'  # the shell's folder is the one that was replaced


def run(options: argparse.Namespace) -> Literal[0]:
    """Make what the options name; return the exit code.

    Raises:
        WrongValueError: It cannot be made as it is given; nothing is left.
        UserError: git failed, or the project around has problems.
    """
    names = options.names
    if names[:1] == [STACK]:
        from bezel.cli.new.new_stack import make_stack

        make_stack(names[1:], options)
        return 0
    if len(names) > 1:
        consequence = "a project has one name, without blanks."
        raise WrongValueError(Problem("NAME", " ".join(names), consequence, f"write `bezel new {names[0]}`."))
    for name in ("source_stack", "environment"):
        if value := getattr(options, name):
            option = "--from" if name == "source_stack" else "--environment"
            repair = f"write `bezel new stack NAME {option} {shell_word(value)}`, or leave it out."
            raise WrongValueError(Problem(option, value, "a new project has no stack to copy.", repair))
    _make_project(names[0] if names else "", options)
    return 0


def _make_project(word: str, options: argparse.Namespace) -> None:
    from bezel.cli.new.choice import DEFAULT_MODEL, choose, regions
    from bezel.cli.new.folder import checked_target, make_folder
    from bezel.cli.new.questions import Questions, is_terminal
    from bezel.cli.new.source import library_source
    from bezel.cli.new.stack_text import stack_text
    from bezel.cli.new.template import project_files, template_files

    here = Path.cwd()
    questions = Questions(are_asked=is_terminal() and not options.yes)
    word = word.removeprefix("./") if word == f"./{STACK}" else word
    word = word or questions.answer("NAME", "Name of the project?", "", lambda name: checked_target(name, here))
    target = checked_target(word, here)
    source = library_source(options.packages, here)
    limits: dict[str, Any] = json.loads(template_files()["policies/hardware_cost.dev.json"])
    machine, region = options.accelerator, options.region
    model = options.model or questions.answer(
        "--model", "Model?", DEFAULT_MODEL, lambda name: choose(name, machine, region, limits)
    )
    cheapest = choose(model, machine, region, limits)
    machine = machine or questions.answer(
        "--accelerator",
        f"Accelerator? The cheapest on which it fits costs {cheapest.price_text()}.",
        cheapest.accelerator,
        lambda name: choose(model, name, region, limits),
    )
    cheapest = choose(model, machine, region, limits)
    region = region or questions.answer(
        "--region",
        f"Region? {machine} is in {', '.join(regions(machine))}.",
        cheapest.region,
        lambda name: choose(model, machine, name, limits),
    )
    choice = choose(model, machine, region, limits)
    files = project_files(target.name, source, choice.stack, stack_text(choice))
    make_folder(target, files, with_git=options.git)
    say(f"{target.name}: {model} on {choice.accelerator} in {choice.region}, {choice.price_text()}")
    say("")
    say("The next commands, on an embedded cloud on this machine:")
    say("")
    say(f"  cd {_HERE if word == '.' else shell_word(target.name)}")
    say("  make up")
    say("")
    say("README.md has those for Google Cloud.")
    if not source.place:
        say("pyproject.toml names no index, so uv asks its own one for the library: --packages WHERE names another.")
