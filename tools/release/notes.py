"""Notes of a release: the changelog's section of a version, if tag, pyproject.toml and changelog agree on it.

python3 tools/release/notes.py v0.1.0
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def notes(tag: str, version: str, changelog: str) -> str:
    """The text of the section `## VERSION`, which a date may follow.

    Raises:
        ValueError: The tag is not the version's, or the changelog has no section for it, or an empty one.
    """
    if tag != f"v{version}":
        raise ValueError(
            f"the tag is {tag}, pyproject.toml says {version}: the release would have wheels of another version. "
            f"Repair: tag v{version}, or write the version with tools/release/version.py."
        )
    section = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        raise ValueError(
            f"CHANGELOG.md says nothing under `## {version}`: the release would have no notes. "
            "Repair: rename `## Unreleased` to it."
        )
    return section[1].strip() + "\n"


def main() -> int:
    """Print the notes; exit status 1 with the reason where there are none."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    try:
        sys.stdout.write(notes(sys.argv[1], version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
