"""Build a wheel of each distribution of the workspace with the toolchain's own uv.

python3 tools/release/wheel.py [FOLDER], by default into dist/. They are installed from there:
pip install --find-links dist bezel-localcloud
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "toolchain"))

from environment import find_uv  # noqa: E402 - the path first


def main(folder: str = "dist") -> int:
    """Run `uv build`; return its exit status."""
    command = [find_uv(), "build", "--all-packages", "--wheel", "--quiet", "--out-dir", folder]
    return subprocess.run(command, cwd=ROOT, check=False, timeout=300).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
