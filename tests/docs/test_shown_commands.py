"""Each command that a page shows for a shell is run by a test, or the table says why not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.test_document_commands import PAGES, ROOT

TABLE = tomllib.loads(Path(__file__).with_name("shown_commands.toml").read_text(encoding="utf-8"))
ROWS = {**TABLE["test"], **TABLE["reason"]}
BLOCK = re.compile(r"^( *)```(sh|bash|console)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
HEREDOC = re.compile(r"<<'(\w+)'\n.*?^ *\1$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"", re.DOTALL)
# What stands before the command itself: variables, a shell's parentheses, the folder of an environment.
PREFIX = re.compile(r"^(?:\w+=(?!\$\()\S+ +)*(?:\w+=\$\()?(?:[\w./]*\.venv/bin/)?")


def commands(text: str) -> list[str]:
    """The commands of a page's blocks, each on one line, without prefixes, comments and what quotes hold."""
    shown = []
    for _, language, block in BLOCK.findall(text):
        plain = QUOTED.sub("Q", HEREDOC.sub("", block.replace("\\\n", " ")))
        lines = [line.strip() for line in plain.splitlines()]
        if language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        shown += [PREFIX.sub("", line) for line in lines if line and not line.startswith("#")]
    return shown


def row_of(command: str) -> str:
    """The longest row whose words begin a command; "" where none does."""
    parts = command.split()
    rows = [row for row in ROWS if parts[: len(row.split())] == row.split()]
    return max(rows, key=len, default="")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_shown_command_has_a_test_or_a_reason(page: Path) -> None:
    assert [command for command in commands(page.read_text(encoding="utf-8")) if not row_of(command)] == []


def test_every_row_is_of_a_page() -> None:
    used = {row_of(command) for page in PAGES for command in commands(page.read_text(encoding="utf-8"))}
    assert sorted(set(ROWS) - used) == []
    assert len(used) > 60


@pytest.mark.parametrize(("row", "test"), TABLE["test"].items())
def test_a_named_test_has_the_words_of_its_command(row: str, test: str) -> None:
    text = (ROOT / test).read_text(encoding="utf-8")
    names = [Path(word).name for word in row.split()[1:] if word not in {"-m", "--find-links"}]
    assert [name for name in names if name not in text] == []
    assert len(TABLE["test"]) > len(TABLE["reason"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("```sh\nA=1 .venv/bin/bezel plan dev   # x\n# y\n```\n", ["bezel plan dev   # x"]),
        ("```sh\ncat > a <<'END'\nbezel x\nEND\nmake up\n```\n", ["cat > a", "make up"]),
        ("```console\n$ bezel proxy dev\npasses on\n```\n", ["bezel proxy dev"]),
        ("```sh\npack=$(bezel policies path price)\n```\n", ["bezel policies path price)"]),
        ("```text\nbezel nothing\n```\n", []),
        ("```sh\ncurl 'a\nb'\n```\n", ["curl Q"]),
    ],
)
def test_commands_are_read_without_what_is_around_them(text: str, shown: list[str]) -> None:
    assert commands(text) == shown


def test_an_unknown_command_has_no_row() -> None:
    assert row_of("bezel bench run --users 8") == "bezel bench run"
    assert row_of("bezel fly dev") == ""
    assert row_of("sudo make up") == ""
