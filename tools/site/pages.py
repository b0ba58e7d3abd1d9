"""Pages of the site, as Markdown in the repository's own layout, so that the links between them stay as they are.

Pictures and data that a page links to come along. A source file or a licence that it links to becomes a page of its
own with the text: the site of a release then shows the file of that release, and needs no address of a repository.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bezel_base.errors import Problem, UserError
from tools.site.diagrams import with_layers
from tools.site.dialect import with_wide_lists

if TYPE_CHECKING:
    from collections.abc import Iterable

STYLE = Path(__file__).with_name("site.css")
FILE_WORKER = Path(__file__).with_name("file_worker.js")
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(?=[)#])")
_COPIED = {".png", ".svg", ".json"}
_LANGUAGES = {".py": "python", ".sh": "sh", ".yaml": "yaml", ".toml": "toml"}


def write_pages(root: Path, pages: Iterable[str], folder: Path) -> None:
    """Write pages, and what they link to, to a folder.

    Args:
        root: The repository's folder.
        pages: Paths below it.
        folder: The new folder.

    Raises:
        UserError: A page links to a file that is not there or to a folder, or has a diagram that the site cannot draw.
    """
    paths = set(pages)
    problems: list[Problem | str] = []
    for page in sorted(paths):
        text = (root / page).read_text(encoding="utf-8")
        try:
            text = with_layers(page, text)
        except UserError as error:
            problems += error.problems
        linked = {link: os.path.normpath(PurePosixPath(page).parent / link) for link in _LINK.findall(text)}
        problems += [_problem(root, page, link) for link, path in linked.items() if not (root / path).is_file()]
        shown = {link: path for link, path in linked.items() if path not in paths and (root / path).is_file()}
        for link, path in shown.items():
            if Path(path).suffix in _COPIED:
                _make_parent(folder / path)
                shutil.copyfile(root / path, folder / path)
            else:
                _write(folder / f"{path}.md", _source_page(path, (root / path).read_text(encoding="utf-8")))
                text = re.sub(rf"(?<=\]\(){re.escape(link)}(?=[)#])", f"{link}.md", text)
        _write(folder / page, with_wide_lists(text))
    for asset in (STYLE, FILE_WORKER):
        shutil.copyfile(asset, folder / asset.name)
    if problems:
        raise UserError(*problems, title="The site is not built")


def _problem(root: Path, page: str, link: str) -> Problem:
    if (root / PurePosixPath(page).parent / link).is_dir():
        return Problem(
            page, link, "The page links to a folder, which a site does not show.", f"link to {link}/README.md."
        )
    return Problem(page, link, "The page links to a file that is not there.", "correct the link, or remove it.")


def _source_page(path: str, text: str) -> str:
    language = _LANGUAGES.get(Path(path).suffix, "text")
    return f"# {path}\n\n````{language}\n{text}\n````\n"


def _write(file: Path, text: str) -> None:
    _make_parent(file)
    file.write_text(text, encoding="utf-8")


def _make_parent(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
