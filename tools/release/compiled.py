"""The compiled engine's sdist, and its wheels for the platform of this run: one for each Python, by cibuildwheel.

.venv/wheels/bin/python -m tools.release.compiled FOLDER

writes the wheels. They are compiled from the pure wheels of the same commit, which are built first, each in an
environment of its own (on Linux in the container of manylinux, which needs Docker), and each is imported once: that of
another source, or of another Python, ends the run. Pythons and platforms: `packages/bench/compiled/pyproject.toml`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from bezel_base.errors import Problem, UserError
from tools.release import wheel
from tools.release.command_line import print_lines

PROJECT = Path("packages", "bench", "compiled")
SECONDS = 2400


def build_sdist(root: Path, folder: Path) -> None:
    """Write the sdist into a folder that has the pure wheels of the same commit.

    Raises:
        UserError: uv could not build it.
    """
    with tempfile.TemporaryDirectory(prefix="bezel-compiled-") as made:
        links = ("--find-links", str(folder.resolve()))
        if wheel.build(copy_project(root, Path(made)), made, "--sdist", *links):
            raise UserError("uv could not build the sdist of bezel-bench-compiled; its message is above.")
        for sdist in Path(made).glob("*.tar.gz"):
            shutil.copy(sdist, folder)


def build_wheels(root: Path, folder: Path) -> list[Path]:
    """Build the wheels of this platform into a folder that is empty or new; return them.

    Raises:
        UserError: The folder has files, cibuildwheel is not installed, or one wheel is not built: then none is written.
    """
    if folder.exists() and (names := sorted(file.name for file in folder.iterdir())):
        consequence = "Wheels of another run would be attached to the release."
        raise UserError(Problem("folder", f"{folder.name}: {names[0]}", consequence, f"empty it: rm -r {folder.name}"))
    if find_spec("cibuildwheel") is None:
        repair = "run `python3 tools/toolchain wheels`, then this command with .venv/wheels/bin/python."
        raise UserError(Problem("cibuildwheel", None, f"{sys.executable} has no cibuildwheel to build with.", repair))
    with tempfile.TemporaryDirectory(prefix="bezel-compiled-") as made:
        # The container gets the folder in which cibuildwheel starts, and nothing else.
        place, built = Path(made, "place"), Path(made, "built")
        project = copy_project(root, place)
        if wheel.main(str(place / "wheels")):
            raise UserError("uv could not build the pure wheels; its message is above.")
        command = [sys.executable, "-m", "cibuildwheel", "--output-dir", str(built), project.name]
        if subprocess.run(command, cwd=place, check=False, timeout=SECONDS, env=variables()).returncode:
            raise UserError("cibuildwheel could not build every wheel; its message is above.")
        folder.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(file, folder)) for file in sorted(built.glob("*.whl"))]


def copy_project(root: Path, place: Path) -> Path:
    """Copy what the distribution is built from; return its folder. A build writes beside its sources."""
    return Path(
        shutil.copytree(root / PROJECT, place / PROJECT.name, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    )


def variables() -> dict[str, str]:
    """Variables of a build: those of this process without the forge's token, which no build needs."""
    return {name: value for name, value in os.environ.items() if name != "GITHUB_TOKEN"}


def main(arguments: list[str]) -> int:
    """Build the wheels into the folder that is named; return the exit status."""
    return print_lines(lambda folder: build_wheels(wheel.ROOT, Path(folder)), arguments, 1, __doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
