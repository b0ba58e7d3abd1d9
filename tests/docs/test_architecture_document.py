"""docs/architecture.md shows the import contracts, and names no file that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.docs.architecture import sections

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
ROOMS = ("bezel", "components", "packages", "policies", "services", "smoke", "stacks", "tools", "tests", "docs")
PRODUCT = ROOMS[:7]
TEXTS = [
    *(path for room in PRODUCT for path in sorted((ROOT / room).rglob("*.py"))),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]


def missing(text: str) -> list[str]:
    """Paths below the project's folders that a text names and that are not there."""
    named = re.findall(rf"(?<![\w./-])((?:{'|'.join(ROOMS)})/[\w./-]*\w)", text)
    return [path for path in named if path.endswith((".py", ".md", ".toml", ".sh")) and not (ROOT / path).exists()]


def test_the_pictures_and_tables_are_made_from_the_contracts() -> None:
    assert sections().strip() in PAGE.read_text(encoding="utf-8"), "run `.venv/bin/python -m tools.docs.architecture`"


@pytest.mark.slow
def test_no_text_names_a_file_that_is_not_there() -> None:
    missing_names = {str(path.relative_to(ROOT)): missing(path.read_text(encoding="utf-8")) for path in TEXTS}
    assert {path: names for path, names in missing_names.items() if names} == {}


def test_a_file_that_is_not_there_is_noticed() -> None:
    assert missing("see bezel/planner/no_such.py and docs/architecture.md") == ["bezel/planner/no_such.py"]
