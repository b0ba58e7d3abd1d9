"""Everything that a release publishes, built into one folder: wheels, Pulumi package, packs, schemas, site, checksums.

.venv/bin/python -m tools.release.assets FOLDER

builds it without a forge: the site then has this version alone.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from bezel_base.errors import Problem, UserError
from tools.release import wheel
from tools.release.archives import pack_plugin, pack_policies
from tools.release.compiled import build_sdist
from tools.release.readme_links import link_to_forge
from tools.site import versions
from tools.site.build import ROOT, build_site

if TYPE_CHECKING:
    from bezel.forge import Facts

CHECKSUMS = "SHA256SUMS"
# Name of the published file -> the file.
_SCHEMAS = {
    "bezel-package-schema.json": "plugin/bezel_plugin/schema.json",
    "bezel-stack-schema.json": "docs/stack.schema.json",
    "bezel-bench-result-schema.json": "docs/bench-result.schema.json",
}


def site_archive(version: str) -> str:
    """Name of a release's archive of the site."""
    return f"bezel-site-{version}.tar.xz"


def version_of(root: Path) -> str:
    """The version of a repository's tree."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def build_assets(root: Path, folder: Path, earlier_site: Path | None = None, forge: Facts | None = None) -> list[Path]:
    """Build the files of a release.

    Args:
        root: The repository's folder.
        folder: An empty or new folder.
        earlier_site: The archive of the site that the release before published; None for the first release.
        forge: The forge that publishes them, to which the wheels' README files link; None: their links stay relative.

    Returns:
        The files, the list of checksums last.

    Raises:
        UserError: The folder has files, a wheel is not built, or the site has a link that does not hold.
    """
    version = version_of(root)
    folder.mkdir(parents=True, exist_ok=True)
    if names := sorted(file.name for file in folder.iterdir()):
        consequence = "The release would publish what another run left there."
        raise UserError(Problem("folder", f"{folder.name}: {names[0]}", consequence, f"empty it: rm -r {folder.name}"))
    if wheel.main(str(folder)):
        raise UserError("uv could not build the wheels; its message is above.", title="Nothing is published")
    if forge is not None:
        link_to_forge(root, folder, forge, f"v{version}")
    with tempfile.TemporaryDirectory(prefix="bezel-site-") as made:
        site = Path(made) / "site"
        if earlier_site:
            versions.unpack(earlier_site, site)
        build_site(root, site, version)
        versions.pack(site, folder / site_archive(version))
    build_sdist(root, folder)
    pack_plugin(root, folder, version)
    pack_policies(root, folder, version)
    for name, source in _SCHEMAS.items():
        shutil.copyfile(root / source, folder / name)
    files = sorted(folder.iterdir())
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="ascii")
    return [*files, folder / CHECKSUMS]


if __name__ == "__main__":
    try:
        for path in build_assets(ROOT, Path(sys.argv[1])):
            print(path)
    except UserError as error:
        sys.exit(str(error))
