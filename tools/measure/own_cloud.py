"""Folder of a measurement with its own localcloud, which ends with the measurement, however that ends.

    .venv/bin/python -m tools.measure.own_cloud FOLDER

is the guard: it reads from a pipe whose other end only the measuring process holds. A kill closes the pipe too.
"""

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bezel_localcloud import control

_CLOUD = "cloud"
_END_SECONDS = 60.0


@contextlib.contextmanager
def own_cloud() -> Iterator[tuple[Path, Path]]:
    """A new folder, and within it the directory for a localcloud; its daemon and both are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="bezel-measure-"))
    guard = subprocess.Popen(
        [sys.executable, "-m", "tools.measure.own_cloud", str(folder)],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C in the terminal ends the measurement, and that the guard
    )
    try:
        yield folder, folder / _CLOUD
    finally:
        guard.communicate(timeout=_END_SECONDS)


def main() -> None:
    """Wait for the end of the measuring process, then stop its daemon and remove its folder."""
    folder = Path(sys.argv[1])
    sys.stdin.buffer.read()
    control.stop(folder / _CLOUD)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
