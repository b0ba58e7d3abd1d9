"""Build a wheel of each distribution of the workspace with the toolchain's own uv.

python3 tools/release/wheel.py [FOLDER], by default into dist/. They are installed from there:
pip install --find-links dist bezel-localcloud

The wheel of the policies gets the limits of policies/*.json beside its packs: this repository's own are the shipped
ones. That of `bezel` gets templates/gemma, which `bezel new` fills in. Either all wheels are in the folder afterwards,
or none of this run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
sys.path.insert(0, str(ROOT / "tools" / "toolchain"))

from environment import find_uv  # noqa: E402 - the path first


def main(folder: str = "dist") -> int:
    """Build all wheels; return the exit status of `uv build`."""
    target = Path(folder).resolve()
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".wheels-", dir=target) as made:
        status = (
            build(ROOT, made, "--wheel", "--all-packages")
            or build(policies_with_limits(Path(made) / "policies"), made, "--wheel")
            or build(bezel_with_template(Path(made) / "bezel"), made, "--wheel")
        )
        if status == 0:
            for wheel in Path(made).glob("*.whl"):
                wheel.replace(target / wheel.name)
    return status


def policies_with_limits(folder: Path) -> Path:
    """Copy the distribution of the policies, with the limits where its packs look for them; return the folder."""
    shutil.copytree(ROOT / "policies", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for limits in folder.glob("*.json"):
        shutil.copy(limits, folder / "bezel_policies" / "packs")
    return folder


def bezel_with_template(folder: Path) -> Path:
    """Copy the distribution of the program, with the files of a new project where `bezel new` looks for them."""
    shutil.copytree(ROOT / "bezel", folder / "bezel", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "templates" / "gemma", folder / "bezel" / "cli" / "new" / "template")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def build(source: Path, target: str, *options: str) -> int:
    """Build a distribution from its folder into another; return the exit status of `uv build`."""
    command = [find_uv(), "build", "--quiet", "--out-dir", target, *options, str(source)]
    return subprocess.run(command, cwd=source, check=False, timeout=SECONDS).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
