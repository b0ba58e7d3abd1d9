"""Sizes of installations: a distribution of this workspace with all that it needs, in an environment of its own.

    .venv/bin/python -m tools.measure.sizes.installs [bezel-localcloud bezel-bench ...]

The wheels are built from this tree; what they need of others comes from the configured index, in the newest versions
that fit, so figures differ by day and platform. A size is that of the files on disk (blocks, as `du` counts them),
without bytecode; MB are 10^6 bytes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "toolchain"))

from environment import find_uv  # noqa: E402 - the path first

SECONDS = 600
_BLOCK = 512
"""Bytes of a block of st_blocks (stat(2))."""


def main() -> None:
    """Install each distribution, print its sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["bezel-localcloud", "bezel-bench"], help="distributions")
    names = parser.parse_args().names
    with tempfile.TemporaryDirectory() as temporary:
        wheels = Path(temporary, "wheels")
        run("build", "--all-packages", "--wheel", "--quiet", "--out-dir", str(wheels))
        for name in names:
            print_sizes(name, install(Path(temporary, name), wheels, name))


def run(*arguments: str) -> None:
    """Run uv in this tree."""
    subprocess.run([find_uv(), *arguments], cwd=ROOT, check=True, timeout=SECONDS)


def install(folder: Path, wheels: Path, name: str) -> dict[str, int]:
    """Install a distribution into a new environment; return the bytes on disk of each of its distributions."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=SECONDS)
    python = folder / "bin" / "python"
    run("pip", "install", "--quiet", "--python", str(python), "--find-links", str(wheels), name)
    packages = next(folder.glob("lib/python*/site-packages"))
    return {one.metadata["Name"]: size_of(one) for one in distributions(path=[str(packages)])}


def size_of(distribution: Distribution) -> int:
    """Bytes on disk of a distribution's files; a folder's own blocks are left out."""
    paths = (Path(str(distribution.locate_file(file))) for file in distribution.files or ())
    return sum(path.stat().st_blocks * _BLOCK for path in paths if path.is_file())


def print_sizes(name: str, sizes: dict[str, int]) -> None:
    """Print the sizes of an installation, the largest first."""
    own_bytes = sum(size for each, size in sizes.items() if each.startswith("bezel"))
    print(f"{name}: {sum(sizes.values()) / 1e6:.1f} MB, of which {own_bytes / 1e6:.1f} MB are this project's")
    for each, size in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"  {size / 1e6:6.1f}  {each}")


if __name__ == "__main__":
    main()
