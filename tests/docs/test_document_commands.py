"""Every command of `bezel` that a page names is one: in its blocks whole, in its sentences by its name at least."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import parse
from bezel_base.command_line.parser import UsageError
from tests.support.docs.markdown import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATTERNS = ("*.md", "docs/**/*.md", "*/README.md", "packages/*/README.md", "templates/*/README.md")
PAGES = sorted({page for pattern in PATTERNS for page in ROOT.glob(pattern) if ".venv" not in page.parts})
_PROGRAM = re.compile(r"(?:(?:\.\./judge/|[a-z]+/)?\.venv/bin/)?bezel (?!-)")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`]+)`")
# Of a command that a sentence mentions without its arguments, or with `N` and the like in their places.
_OPTIONS_FILE = re.compile(r"--config \S+")
_OPTIONS = ROOT / "tests" / "docs" / "shown_options.yaml"
_UNFINISHED = re.compile(r"required|expected (at least )?one argument|'[A-Z]+'")


def commands_of_blocks(text: str) -> Iterator[str]:
    """The commands in blocks for a shell; of an output, what a prompt precedes is one as well."""
    for language, block in _BLOCK.findall(text):
        lines = block.replace("\\\n", " ").splitlines() if language in {"sh", "text"} else []
        yield from (line.strip() for line in lines if _PROGRAM.match(line.strip()))


def commands_of_sentences(text: str) -> Iterator[str]:
    """The commands between backticks outside of blocks; `a|b` stands for one of each."""
    for quoted in _INLINE.findall(_BLOCK.sub("", text)):
        command = " ".join(quoted.split())
        if _PROGRAM.match(command) and "[" not in command:  # which a synopsis has
            choices = next((word for word in command.split() if "|" in word), "")
            yield from (command.replace(choices, choice) if choices else command for choice in choices.split("|"))


@cache
def problem_of(command: str) -> str:
    """What the parser says about a command; "" where it accepts it. `…` stands for further words.

    A file of options is read with the command line: another one stands for that of the page.
    """
    text = _OPTIONS_FILE.sub(f"--config {_OPTIONS}", command)
    arguments = [word for word in shlex.split(text, comments=True)[1:] if word not in {"…", "..."}]
    try:
        parse(arguments)
    except UsageError as error:
        return str(error)
    except SystemExit:  # of --help and --like
        return ""
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_command_of_a_page_is_one_of_bezel(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    problems = {command: problem_of(command) for command in commands_of_blocks(text)}
    for command in commands_of_sentences(text):
        problem = problem_of(command)
        problems[command] = "" if _UNFINISHED.search(problem) else problem
    assert {command: problem for command, problem in problems.items() if problem} == {}


def test_many_commands_are_read() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(len([*commands_of_blocks(text)]) for text in texts) > 60
    assert sum(len([*commands_of_sentences(text)]) for text in texts) > 200


@pytest.mark.parametrize(
    ("command", "phrase"),
    [
        (".venv/bin/bezel quota dev", "no command is called 'dev'"),
        ("bezel plan dev --nothing", "unrecognized"),
        ("bezel nothing", "no command"),
        (".venv/bin/bezel adopt", "required"),
        (".venv/bin/bezel quota --stack dev", ""),
        ("bezel init --project my-project …", ""),
    ],
)
def test_a_wrong_command_is_found(command: str, phrase: str) -> None:
    problem = problem_of(command)
    assert phrase in problem
    assert bool(problem) == bool(phrase)
