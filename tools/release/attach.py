"""Attaches files to the published release of a tag: wheels of platforms, which are built after it.

.venv/wheels/bin/python -m tools.release.attach vX.Y.Z FOLDER

A file that the release has already is left as it is, so that a run which was stopped is repeated.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bezel.forge import Facts
from bezel_base.errors import NOT_SET, Problem, UserError
from tools.release.command_line import print_lines
from tools.release.forge_release import ReleasesOfForge


def attach(tag: str, folder: Path) -> list[str]:
    """Attach the files of a folder; return the names of those that the release did not have.

    Raises:
        UserError: The variables name no forge, the folder has no files, no release of the tag is published, or the
            forge refused.
    """
    facts = Facts.of(os.environ)
    if facts is None:
        consequence = "Without them there is no forge whose release could be changed."
        raise UserError(
            Problem("GITHUB_API_URL, GITHUB_REPOSITORY", NOT_SET, consequence, "set both, and GITHUB_TOKEN.")
        )
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    if not files:
        repair = "build them first: .venv/wheels/bin/python -m tools.release.compiled FOLDER"
        raise UserError(Problem("folder", str(folder), "It has no files to attach.", repair))
    releases = ReleasesOfForge(facts)
    try:
        return releases.attach(tag, files)
    finally:
        releases.close()


def main(arguments: list[str]) -> int:
    """Attach the files of the folder that is named; return the exit status."""
    return print_lines(
        lambda tag, folder: (f"attached: {name}" for name in attach(tag, Path(folder))), arguments, 2, __doc__
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
