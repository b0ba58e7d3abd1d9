"""Navigation of the site: the sections and pages that docs/README.md lists, and the order in which it lists them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    from pathlib import Path

HOME = "README.md"
INDEX = "docs/README.md"
RECORDS = "docs/decisions/README.md"
"""The page whose own list of records becomes a section below it."""
_SECTION = re.compile(r"^## (.+)$")
_ENTRY = re.compile(r"^- \[[^\]]+\]\(([^)#]+)\): ")
_RECORD = re.compile(r"^\| \[[^\]]+\]\(([^)#]+)\) \|", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
# Pages that the index has to list: documents, and what a package or the repository says of itself.
_PATTERNS = (
    "docs/*.md",
    "docs/*/README.md",
    "[a-z]*/README.md",
    "packages/*/README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)


@dataclass(frozen=True)
class Section:
    """A purpose, and its pages as paths below the repository's folder."""

    title: str
    pages: tuple[str, ...]


def navigation(root: Path) -> list[Section]:
    """The sections of a repository's index.

    Raises:
        UserError: The index lists a page that is not there, lists one twice, or leaves one out.
    """
    lines_by_title: dict[str, list[str]] = {}
    for line in (root / INDEX).read_text(encoding="utf-8").splitlines():
        if match := _SECTION.match(line):
            lines_by_title[match[1]] = []
        elif lines_by_title and (match := _ENTRY.match(line)):
            next(reversed(lines_by_title.values())).append(_path(INDEX, match[1]))
    sections = [Section(title, tuple(pages)) for title, pages in lines_by_title.items()]
    problems = [*_problems(root, [page for section in sections for page in section.pages])]
    if problems:
        raise UserError(*problems, title="The site has no navigation")
    return sections


def records(root: Path) -> list[str]:
    """The pages of the records of decisions, as their list orders them."""
    text = (root / RECORDS).read_text(encoding="utf-8") if (root / RECORDS).is_file() else ""
    return [_path(RECORDS, link) for link in _RECORD.findall(text)]


def title_of(root: Path, page: str) -> str:
    """The first heading of a page, without marks of code.

    Raises:
        UserError: It has none.
    """
    match = _TITLE.search((root / page).read_text(encoding="utf-8"))
    if match is None:
        raise UserError(Problem(page, None, "The page has no title in the navigation.", "begin it with `# TITLE`."))
    return match[1].replace("`", "")


def _path(page: str, link: str) -> str:
    return os.path.normpath(PurePosixPath(page).parent / link)


def _problems(root: Path, listed: list[str]) -> list[Problem]:
    present = {str(file.relative_to(root)) for pattern in _PATTERNS for file in root.glob(pattern)}
    missing = sorted(present - {HOME, INDEX} - set(listed))
    gone = sorted(page for page in set(listed) if not (root / page).is_file())
    twice = sorted(page for page in set(listed) if listed.count(page) > 1)
    return [
        *(
            Problem(
                INDEX,
                page,
                "No list of the site leads to this page.",
                f"add `- [{os.path.relpath(page, 'docs')}]({os.path.relpath(page, 'docs')}): what it is for.` to a "
                "section.",
            )
            for page in missing
        ),
        *(Problem(INDEX, page, "The list names a page that is not there.", "remove its line.") for page in gone),
        *(Problem(INDEX, page, "The list names the page twice.", "remove one of the lines.") for page in twice),
    ]
