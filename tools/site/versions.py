"""Folders of a site, one for each release: which is the default, the list for the switcher, and the archive of all.

The archive of a release holds the folders of the releases before it, so that the newest archive is the whole site.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from pathlib import Path

from bezel_base.errors import Problem, UserError

NEXT = "next"
LIST = "versions.json"
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")
_REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Bezel</title>
<meta http-equiv="refresh" content="0; url={name}/index.html"></head>
<body><a href="{name}/index.html">Documentation of Bezel {name}</a></body></html>
"""


def order(name: str) -> tuple[int, ...]:
    """Key by which releases are sorted, previews before their release; `next` is first of all."""
    match = _RELEASE.fullmatch(name)
    if match is None:
        return ()
    return (*map(int, match.group(1, 2, 3)), *((" abr".index(match[4][0]), int(match[5])) if match[4] else (9, 0)))


def add_version(site: Path, name: str, built: Path) -> None:
    """Put a built site into its folder, in the place of an earlier one, and write list and redirect.

    Raises:
        UserError: The name is neither a release nor `next`.
    """
    if name != NEXT and not order(name):
        repair = "name a release, e.g. 0.2.0 or 0.2.0rc1, or `next`."
        raise UserError(Problem("version", name, "The site has one folder for each release.", repair))
    site.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(site / name, ignore_errors=True)
    shutil.move(built, site / name)
    names = sorted((folder.name for folder in site.iterdir() if (folder / "index.html").is_file()), key=order)
    names.reverse()
    newest = names[0]
    rows = [{"version": each, "title": each, "aliases": ["latest"] if each == newest else []} for each in names]
    (site / LIST).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    (site / "index.html").write_text(_REDIRECT.format(name=newest), encoding="utf-8")


def pack(site: Path, archive: Path) -> None:
    """Write a site as an archive, without the folder of unreleased pages; the same files give the same bytes."""
    with tarfile.open(archive, "w:xz") as tar:
        for file in sorted(site.rglob("*")):
            name = file.relative_to(site)
            if file.is_file() and name.parts[0] != NEXT:
                member = tarfile.TarInfo(name.as_posix())
                member.size = file.stat().st_size
                with file.open("rb") as content:
                    tar.addfile(member, content)


def unpack(archive: Path, site: Path) -> None:
    """Unpack an earlier archive into a new folder.

    Raises:
        UserError: It is no archive of a site.
    """
    try:
        with tarfile.open(archive) as tar:
            files = {Path(member.name): tar.extractfile(member) for member in tar.getmembers() if member.isfile()}
            if Path(LIST) not in files or any(name.is_absolute() or ".." in name.parts for name in files):
                raise _not_a_site(archive, f"it has no {LIST}, or files beside it")
            for name, content in files.items():
                (site / name).parent.mkdir(parents=True, exist_ok=True)
                with (site / name).open("wb") as written:
                    shutil.copyfileobj(content or io.BytesIO(), written)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise _not_a_site(archive, str(error)) from error


def _not_a_site(archive: Path, reason: str) -> UserError:
    consequence = f"The pages of earlier releases would be lost: {reason}."
    return UserError(Problem("earlier site", archive.name, consequence, "name the archive that a release published."))
