"""Every command of `bezel` in a new project with an input that it refuses: what it prints to do works there.

Each runs in the folder, without a login, a backend or `bezel` on PATH; `.venv/bin/bezel` is the project's program.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel.cli.command_table import root_parser
from bezel.cli.main import main, parse
from bezel_base.command_line.parser import Parser, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.engine.project.project import Project

# Words after the command that it refuses, by its name; every other command of the program gets what `USUAL` says.
UNKNOWN = "devv"  # a stack that the project lacks
REFUSED = {
    "query": (UNKNOWN, "hello"),
    "scale": (UNKNOWN, "--max", "2"),
    "container": ("start", UNKNOWN),
    "tpu list": ("--zone", "nowhere"),
    "compare": ("--model", "gemma-4-12"),
    "bench compare": ("a.json", "b.json"),
    "bench report": ("a.json",),
    "bench run": ("--url", "ftp://x", "--model", "x"),
    "bench sweep": ("--out", "x.json", "--url", "ftp://x"),
    "bench goodput": ("--slo", "x"),
    "catalog add-model": ("/nowhere/model",),
    "catalog check": ("--unknown",),
    "ci changed": ("--base", "nowhere"),
    "ci lock": (UNKNOWN, "--", "true"),
    "ci examples": ("--unknown",),
    "ci comment": ("none.json",),
    "local serve": ("--port", "none"),
    "local start": ("--server", "none"),
    "local stop": ("--unknown",),
    "local status": ("--dir", "nowhere"),
    "local env": ("--dir", "nowhere"),
    "local token": ("--dir", "nowhere"),
    "local fault list": ("--unknown",),
    "local fault show": ("--dir", "nowhere"),
    "local fault add": ("nothing",),
    "local outputs": ("dev",),
    "model-files": ("--unknown",),
    "new": ("chat",),
    "upgrade": (),
    "init": (),
}
# Commands that need a login or a network to refuse their input as a user sees it: run elsewhere.
ELSEWHERE = {"catalog refresh": "tests/cli/test_catalog_command.py"}
PROGRAM = ".venv/bin/bezel"


def commands() -> Iterator[tuple[str, bool]]:
    """Every command of the program, and whether it takes a word."""

    def below(parser: Parser, names: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
        parser.fill()
        groups = parser._subparsers._group_actions if parser._subparsers else []
        if not groups:
            yield " ".join(names), any(not action.option_strings for action in parser._actions)
        for group in groups:
            for name, command in group.choices.items():
                yield from below(command, (*names, name))

    yield from below(root_parser(), ())


COMMANDS = dict(commands())


@pytest.fixture
def shell(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Project:
    """The project with its program in place, in a shell without any variable of a cloud, a forge or a backend."""
    program = project.folder / PROGRAM
    program.parent.mkdir(parents=True)
    program.touch()
    for name in (*os.environ,):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    # The engine asks no one who is not there, and no backend of another folder.
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}/nowhere")
    return project


def printed_commands(text: str) -> list[str]:
    """What a text tells to run: in backticks or `$(...)`."""
    parts_of_texts = re.findall(r"`([^`]+)`|\$\(([^)]+)\)", text)
    named = [part for parts in parts_of_texts for part in parts if part]
    inner = [match[1] for text in named if (match := re.search(r"\$\(([^)]+)\)", text))]
    return [
        command for command in [*named, *inner] if re.match(r"(\S*/)?(bezel|make|pulumi|gcloud|git|python3?) ", command)
    ]


def works(command: str, folder: Path) -> bool:
    """Whether a shell of the folder finds the program of a command, and the program takes its arguments."""
    program, *arguments = shlex.split(command)
    if program == "make":
        recipes = re.findall(r"^([a-z-]+):", (folder / "Makefile").read_text(), re.MULTILINE)
        return arguments[0] in recipes
    if program.endswith("bezel"):
        return program == PROGRAM and is_taken(arguments)
    if program == "pulumi":  # official, or that of a clone: README names it as what a project needs
        return True
    files = [word for word in arguments if word.endswith(".py")]
    return program in {"gcloud", "git"} or all((folder / file).is_file() for file in files)


def is_taken(arguments: list[str]) -> bool:
    """Whether the program takes the arguments of a command; some messages name a command without what it needs."""
    for variant in (arguments, [*arguments, "--help"]):
        with contextlib.suppress(UsageError), contextlib.redirect_stdout(io.StringIO()):
            try:
                parse(variant)
            except SystemExit:
                return True
            return True
    return False


def words_for(name: str) -> tuple[str, ...]:
    return REFUSED.get(name, (UNKNOWN,) if COMMANDS[name] else ("--unknown",))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ELSEWHERE])
def test_a_refused_command_prints_what_works_in_the_project(
    name: str, shell: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main([*name.split(), *words_for(name)])
    except SystemExit as ended:
        code = int(ended.code or 0)
    shown = capfd.readouterr()
    text = shown.out + shown.err
    assert code != 0, text
    assert [command for command in printed_commands(text) if not works(command, shell.folder)] == [], text
    assert "Traceback" not in text
    # A program's own words alone are no repair.
    assert "Repair: " in text or "All options: " in text or "see `" in text or "unknown" in text, text


def test_every_command_is_tried_or_named_with_its_place() -> None:
    assert len(COMMANDS) >= 85
    assert {*REFUSED, *ELSEWHERE} <= {*COMMANDS}
    assert all((Path(__file__).parents[3] / place).is_file() for place in ELSEWHERE.values())


@pytest.mark.parametrize(
    ("command", "is_there"),
    [
        (".venv/bin/bezel plan dev", True),
        ("bezel plan dev", False),
        (".venv/bin/bezel no-such-command", False),
        ("make up STACK=dev", True),
        ("make setup-dev", False),
        ("python3 tools/release/wheel.py", False),
    ],
)
def test_a_command_that_the_folder_lacks_is_seen(command: str, is_there: bool, shell: Project) -> None:
    assert works(command, shell.folder) is is_there
