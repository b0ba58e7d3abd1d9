"""What the product's messages tell a user to run and to set, read from its source: every text that is no docstring.

A value that is filled in later is `1` here, which a command's parser takes for a word as well as for a number. The
program that localcloud's messages name is `localcloud` here; `bezel local`, which it also is, has the same commands.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.source_nodes import nodes_of

ROOT = Path(__file__).parents[3]
FOLDERS = ("bezel", "bootstrap", "components", "packages", "policies", "services", "smoke", "stacks")
# Their words are vLLM's own, and Google's.
OTHERS_WORDS = (
    "packages/simulated-vllm/bezel_simulated_vllm/",
    "packages/localcloud/bezel_localcloud/routing/iam_policies.py",
)
PROGRAM = r"(?:(?:\.\./judge/)?\.venv/bin/)?(bezel|localcloud|make|pulumi) "
_QUOTED = re.compile(rf"`({PROGRAM}[^`]+)`")
_SUBSTITUTED = re.compile(rf"\$\(({PROGRAM}[^)]+)\)")
# `localcloud` is a word of sentences too, so its commands stand in backticks.
_ALONE = re.compile(r"\s*((?:\.venv/bin/)?(?:bezel|pulumi) [a-z][^`\n]+|make [a-z-]+(?: [A-Z]+=\S+)*)")
_CLOUD = "packages/localcloud/"
_TYPED = frozenset({"program", "program.typed", "self.program.typed"})
TABLES = (
    "bezel/cli/commands.toml",
    "packages/bench/bezel_bench/commands/commands.toml",
    "packages/localcloud/bezel_localcloud/command/commands.toml",
)
_LATER = re.compile(r"\{[\w!.]*\}")


@dataclass(frozen=True)
class RepairText:
    """A text of the source, with where it stands."""

    place: str
    text: str


@cache
def texts() -> tuple[RepairText, ...]:
    """Every text that the product may show."""
    repair_texts = []
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            name = file.relative_to(ROOT).as_posix()
            if not name.startswith(OTHERS_WORDS) and "/tests/" not in name:
                typed = _TYPED if name.startswith(_CLOUD) else frozenset[str]()
                read = _texts(ast.parse(file.read_text()), typed)
                repair_texts += [RepairText(f"{name}:{line}", text) for line, text in read]
    for table in TABLES:
        repair_texts += [RepairText(table, text) for text in _strings(tomllib.loads((ROOT / table).read_text()))]
    return tuple(repair_texts)


def _strings(value: object) -> Iterator[str]:
    """Every text of a parsed TOML file."""
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(part)


def _texts(tree: ast.Module, typed: frozenset[str]) -> Iterator[tuple[int, str]]:
    left_out: set[int] = set()
    for node in nodes_of(tree):  # a statement comes before its parts
        if isinstance(node, ast.Expr):  # what stands alone is a docstring
            left_out.add(id(node.value))
            if isinstance(node.value, ast.JoinedStr):
                left_out.update(map(id, node.value.values))
        elif id(node) in left_out:
            continue
        elif isinstance(node, ast.JoinedStr):
            text = ""
            for part in node.values:
                left_out.add(id(part))
                text += _text_of(part, text, typed)
            yield node.lineno, text
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, _LATER.sub("1", node.value)


def _text_of(part: ast.expr, before: str, typed: frozenset[str]) -> str:
    """The text of a part of an f-string."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    if typed and isinstance(part, ast.FormattedValue) and ast.unparse(part.value) in typed:
        return "localcloud"
    return "" if before[-1:].isalpha() else "1"  # what is put behind a word is a further one, or nothing


def commands_in(text: str) -> list[str]:
    """The commands that a text names: in backticks, in `$(...)`, or alone on the line that is the text."""
    quoted = [match[0] for pattern in (_QUOTED, _SUBSTITUTED) for match in pattern.findall(text)]
    alone = _ALONE.fullmatch(text)
    return [command.strip() for command in [*quoted, *([alone[1]] if alone else [])]]


@cache
def commands_of(program: str) -> dict[str, list[str]]:
    """Every command of a program that a message names, with the places that do."""
    places: dict[str, list[str]] = {}
    for shown_text in texts():
        for command in commands_in(shown_text.text):
            plain = command.removeprefix("../judge/").removeprefix(".venv/bin/")
            if plain.startswith(f"{program} "):
                places.setdefault(plain, []).append(shown_text.place)
    return dict(sorted(places.items()))
