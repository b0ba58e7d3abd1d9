"""Publishes the release of a tag on the forge of this run.

.venv/bin/python -m tools.release vX.Y.Z

Its files are built into dist/, with the earlier releases' folders of the site, and the changelog's section is its text.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from bezel.forge import Facts
from bezel_base.errors import NOT_SET, Problem, UserError
from tools.release.assets import build_assets, site_archive, version_of
from tools.release.forge_release import ReleasesOfForge
from tools.release.notes import notes
from tools.site.build import ROOT


def publish(tag: str) -> str:
    """Build and publish; return the address of the release.

    Raises:
        ValueError: Tag, version and changelog differ.
        UserError: The release is there, a file is not built, or the forge refused.
    """
    facts = Facts.of(os.environ)
    if facts is None:
        names = "GITHUB_API_URL, GITHUB_REPOSITORY"
        consequence = "Without them there is no forge to publish on."
        repair = "set both, and GITHUB_TOKEN; or build the files alone: .venv/bin/python -m tools.release.assets dist"
        raise UserError(Problem(names, NOT_SET, consequence, repair))
    text = notes(tag, version_of(ROOT), (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    releases = ReleasesOfForge(facts)
    try:
        releases.refuse_published(tag)
        with tempfile.TemporaryDirectory(prefix="bezel-site-") as made:
            earlier = releases.download(site_archive(r"[\w.]+"), Path(made) / site_archive("earlier"))
            files = build_assets(ROOT, ROOT / "dist", earlier, facts)
        return releases.publish(tag, text, files)
    finally:
        releases.close()


def main(arguments: list[str]) -> int:
    """Publish the tag that is named; return the exit status."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    try:
        print(publish(arguments[0]))
    except (UserError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
