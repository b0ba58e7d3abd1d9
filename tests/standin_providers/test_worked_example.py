"""docs/adding-a-resource-type.md runs: each of its blocks, in order, and prints what it shows."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel_pulumi_offline.resources import TYPES

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "adding-a-resource-type.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def run() -> Iterator[dict[str, Any]]:
    """The names of the document, with nothing of it left in the table afterwards."""
    before = dict(TYPES)
    names: dict[str, Any] = {}
    yield names
    TYPES.clear()
    TYPES.update(before)
    if "provider" in names:
        names["provider"].close()
    if "google" in names:
        names["google"].__exit__()


def wrong(blocks: list[tuple[str, str]], names: dict[str, Any]) -> list[str]:
    """Run the blocks; what a block prints where the document shows something else after it."""
    outputs = []
    for index, (language, text) in enumerate(blocks):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, f"{DOCUMENT.name}, block {index}", "exec"), names)  # noqa: S102
            following = dict(blocks[index + 1 : index + 2])
            if out.getvalue() != following.get("output", ""):
                outputs.append(out.getvalue())
    return outputs


def test_every_block_runs_and_prints_what_is_shown(run: dict[str, Any]) -> None:
    assert {language for language, _ in BLOCKS} == {"python", "output"}
    assert wrong(BLOCKS, run) == []


def test_a_block_that_prints_something_else_would_be_noticed(run: dict[str, Any]) -> None:
    assert wrong([("python", "print(1)\n"), ("output", "2\n"), ("python", "print(3)\n")], run) == ["1\n", "3\n"]
