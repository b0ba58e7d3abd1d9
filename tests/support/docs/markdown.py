"""What the documents' tests need to read Markdown: its fenced blocks, and what stands between two marks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = sorted(file.parent for pattern in ("*", "packages/*") for file in ROOT.glob(f"{pattern}/pyproject.toml"))
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(package / "README.md" for package in PACKAGES)]
)
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


def blocks(document: Path, language: str) -> list[str]:
    """The fenced blocks of a language, without their indentation."""
    fences = FENCE.findall(document.read_text())
    return [re.sub(f"(?m)^{indent}", "", text) for indent, name, text in fences if name == language]


def after(document: Path, mark: str) -> str:
    """The fenced block that follows the comment `mark`."""
    match = re.search(rf"<!-- {re.escape(mark)} -->\n```\w+\n(.*?)```", document.read_text(), re.DOTALL)
    assert match, f"{document.name} has no block after <!-- {mark} -->"
    return match[1]


def between(document: Path, begin: str, end: str = "end") -> str:
    """The text between the comments `begin` and `end`."""
    match = re.search(rf"<!-- {re.escape(begin)} -->\n(.*?)<!-- {re.escape(end)} -->", document.read_text(), re.DOTALL)
    assert match, f"{document.name} has nothing between <!-- {begin} --> and <!-- {end} -->"
    return match[1]
