"""Docstrings and comments of the product are plain engineering English: the forms of voice.toml stay out of them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
VOICE = tomllib.loads(Path(__file__).with_name("voice.toml").read_text(encoding="utf-8"))
FILES = [
    path
    for room in ("bezel", "components", "policies", "smoke", "stacks", "tools")
    for path in sorted((ROOT / room).rglob("*.py"))
]


def prose(tree: ast.Module, source: str) -> Iterator[str]:
    """Docstrings and comments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def slips(source: str) -> list[str]:
    """What a source says in a form that the list keeps out, with the reason."""
    tree = ast.parse(source)
    opening = (ast.get_docstring(tree) or "").partition(" ")[0]
    found = [
        f"{opening!r} opens the module's docstring: {form['reason']}"
        for form in VOICE["opening"]
        if re.fullmatch(form["pattern"], opening)
    ]
    text = "\n".join(prose(tree, source))
    for form in VOICE["phrase"]:
        found += [f"{match[0]!r}: {form['reason']}" for match in re.finditer(form["pattern"], text, re.IGNORECASE)]
    return found


def test_every_module_is_written_in_plain_words() -> None:
    found = {str(path.relative_to(ROOT)): slips(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: said for path, said in found.items() if said} == {}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('"""What becomes of changes."""', 1),
        ('"""Changes whose end is unknown."""', 0),
        ('"""Whatever."""', 0),
        ('"""Locks."""\n# as the caller is told\n', 1),
        ('"""Locks."""\ntold = "is told"\n', 0),
        ('def f():\n    """Durations as they are spoken."""\n', 1),
    ],
)
def test_a_form_of_the_list_is_found_in_prose_and_nowhere_else(source: str, count: int) -> None:
    assert len(slips(source)) == count


def test_each_form_has_its_reason() -> None:
    assert all(form["reason"] and re.compile(form["pattern"]) for forms in VOICE.values() for form in forms)
