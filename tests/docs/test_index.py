"""docs/README.md lists every page once, and its links work; so does the list of decisions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.docs.markdown import PACKAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

LINK = re.compile(r"^- \[[^\]]+\]\(([^)#]+)\): \S.*\.$", re.MULTILINE)
PICTURES = ROOT / "docs" / "pictures"


def wrong(index: Path) -> dict[str, list[str]]:
    """Pages beside and below an index that it lists not at all or twice, and links of it that lead nowhere.

    A folder with an index of its own counts as one page: that index.
    """
    listed = LINK.findall(index.read_text(encoding="utf-8"))
    folder = index.parent
    pages = [*folder.glob("*.md"), *folder.glob("*/README.md")]
    names = {str(page.relative_to(folder)) for page in pages if page != index}
    slips = {
        "missing": sorted(names - set(listed)),
        "twice": sorted({name for name in listed if listed.count(name) > 1}),
        "dead": sorted(name for name in set(listed) if not (folder / name).is_file()),
    }
    return {kind: entries for kind, entries in slips.items() if entries}


def test_index_lists_every_page_once() -> None:
    assert wrong(ROOT / "docs" / "README.md") == {}


def test_index_has_the_sections_of_a_reader() -> None:
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    purposes = ["Start", "Operate", "Pipelines", "Measure", "Embedded cloud", "Reference", "Internals"]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == purposes


def test_wrong_index_is_noticed(tmp_path: Path) -> None:
    index = tmp_path / "README.md"
    index.write_text("- [a.md](a.md): one.\n- [a.md](a.md): again.\n- [c.md](c.md): gone.\n", encoding="utf-8")
    for name in ("a.md", "b.md"):
        (tmp_path / name).touch()
    assert wrong(index) == {"missing": ["b.md"], "twice": ["a.md"], "dead": ["c.md"]}


@pytest.mark.parametrize("package", [ROOT, *PACKAGES], ids=lambda package: package.name)
def test_readme_of_a_package_is_one_screen(package: Path) -> None:
    lines = (package / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= (140 if package == ROOT else 60)


@pytest.mark.parametrize("name", ["comment.png", "report.png"])
def test_picture_is_small_and_shown(name: str) -> None:
    assert 5_000 < (PICTURES / name).stat().st_size < 150_000
    assert f"](docs/pictures/{name})" in (ROOT / "README.md").read_text(encoding="utf-8")
