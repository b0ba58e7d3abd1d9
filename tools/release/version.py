"""The one version of all distributions: `python3 tools/release/version.py NEW` writes it, then `uv lock`.

It stands in each pyproject.toml of the workspace, in their exact requirements of each other, in the policy packs, and
in the template of a new project.
Without NEW it prints the version; exit status 1 where they differ. A run that was stopped is repeated.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
sys.path.insert(0, str(ROOT / "tools" / "toolchain"))

from environment import find_uv  # noqa: E402 - the path first

# A release, or a preview of one.
_VERSION = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"
_OWN = re.compile(r'^version = "(?P<version>[^"]+)"$', re.MULTILINE)
_REQUIRED = re.compile(r'^ *"bezel(?:-[a-z-]+)?(?:\[[a-z,]+\])?==(?P<version>[^"]+)"', re.MULTILINE)
_PACK = re.compile(r"^version: (?P<version>\S+)$", re.MULTILINE)


def files(root: Path) -> dict[Path, tuple[re.Pattern[str], ...]]:
    """File -> the places of the version in it."""
    members = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]["workspace"]["members"]
    projects = [
        root / "pyproject.toml",
        *(file for glob in members for file in sorted(root.glob(f"{glob}/pyproject.toml"))),
        # Beside the workspace, whose members are installed for every test: this one is compiled.
        *root.glob("packages/bench/compiled/pyproject.toml"),
    ]
    template = root / "templates" / "gemma"
    packs = [*sorted((root / "policies").rglob("PulumiPolicy.yaml")), *sorted(template.rglob("PulumiPolicy.yaml"))]
    pins: dict[Path, tuple[re.Pattern[str], ...]] = {
        file: (_REQUIRED,) for file in (template / "pyproject.toml",) if file.exists()
    }
    return {**dict.fromkeys(projects, (_OWN, _REQUIRED)), **dict.fromkeys(packs, (_PACK,)), **pins}


def versions(root: Path) -> dict[str, list[str]]:
    """Version -> the files that have it."""
    by_version: dict[str, list[str]] = {}
    for file, places in files(root).items():
        text = file.read_text(encoding="utf-8")
        for version in {match["version"] for place in places for match in place.finditer(text)}:
            by_version.setdefault(version, []).append(file.relative_to(root).as_posix())
    return by_version


def write(root: Path, version: str) -> None:
    """Write a version into all files, each whole.

    Raises:
        ValueError: It is not one of a release.
    """
    if not re.fullmatch(_VERSION, version):
        raise ValueError(f"{version!r} is not the version of a release: write e.g. 0.2.0, or 0.2.0rc1.")
    for file, places in files(root).items():
        text = file.read_text(encoding="utf-8")
        for place in places:
            text = place.sub(lambda match: match[0].replace(match["version"], version), text)
        part = file.with_name(f".{file.name}.{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        part.replace(file)


def main(arguments: list[str]) -> int:
    """Print or write the version; return the exit status."""
    if not arguments:
        by_version = versions(ROOT)
        for version, places in sorted(by_version.items()):
            print(version if len(by_version) == 1 else f"{version}: {', '.join(places)}")
        return 0 if len(by_version) == 1 else 1
    try:
        write(ROOT, arguments[0])
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return subprocess.run([find_uv(), "lock", "--quiet"], cwd=ROOT, check=False, timeout=SECONDS).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
