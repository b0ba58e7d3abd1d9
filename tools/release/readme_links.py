"""Links of the README files in a release's wheels: a package index shows them, and has none of the repository's files.

A link to another file leads to the tag's files on the forge that publishes the release; pictures are shown from there.
Leaves out links to other sites, and those within a README.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
import tomllib
import zipfile
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bezel.forge import Facts

_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>(?![a-z]+:|#)[^)\s]+)\)")
_METADATA = "METADATA"


def link_to_forge(root: Path, wheels: Path, forge: Facts, tag: str) -> None:
    """Rewrite the wheels of a folder, in which nothing else changes.

    Args:
        root: The repository's folder.
        wheels: The folder with a wheel of each distribution.
        forge: The forge that publishes the release.
        tag: The release's tag.
    """
    for folder in distribution_folders(root):
        project = tomllib.loads((root / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        (wheel,) = wheels.glob(f"{project['name'].replace('-', '_')}-{project['version']}-*.whl")
        _rewrite(wheel, partial(absolute_links, folder=folder, forge=forge, tag=tag))


def distribution_folders(root: Path) -> list[str]:
    """The folder of each distribution below the repository's, that of the program first."""
    workspace = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]["workspace"]
    paths = (path for member in workspace["members"] for path in sorted(root.glob(member)))
    return [".", *(path.relative_to(root).as_posix() for path in paths)]


def absolute_links(text: str, folder: str, forge: Facts, tag: str) -> str:
    """Markdown of a folder with the addresses of the files that it names."""
    place = f"tag/{tag}" if forge.kind == "gitea" else tag
    pages = "src" if forge.kind == "gitea" else "blob"

    def link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match["target"]))
        address = f"{forge.server_url}/{forge.repository}/{'raw' if match['picture'] else pages}/{place}/{path}"
        return f"{match['picture']}[{match['text']}]({address})"

    return _LINK.sub(link, text)


def _rewrite(wheel: Path, edit: Callable[[str], str]) -> None:
    """Edit the README of a wheel, and the hash of the file that holds it."""
    with zipfile.ZipFile(wheel) as archive:
        entries = [(entry, archive.read(entry)) for entry in archive.infolist()]
    (metadata,) = (entry.filename for entry, _ in entries if entry.filename.endswith(f".dist-info/{_METADATA}"))
    headers, _, readme = next(content for entry, content in entries if entry.filename == metadata).partition(b"\n\n")
    edited = headers + b"\n\n" + edit(readme.decode()).encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(edited).digest()).rstrip(b"=").decode()
    row, record = f"{metadata},sha256={digest},{len(edited)}", f"{metadata.removesuffix(_METADATA)}RECORD"
    with zipfile.ZipFile(wheel, "w") as archive:
        for entry, content in entries:
            if entry.filename == metadata:
                archive.writestr(entry, edited)
            elif entry.filename == record:
                rows = [row if old.startswith(f"{metadata},") else old for old in content.decode().splitlines()]
                archive.writestr(entry, "".join(f"{each}\n" for each in rows))
            else:
                archive.writestr(entry, content)
