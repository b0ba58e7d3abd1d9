"""Files that a killed engine had begun to write in a state folder and had put nothing into yet.

The engine replaces a state file whole, but writes the attributes beside it (`NAME.attrs`: type and checksum) in place:
killed in between, it leaves them empty, and every later command ends in `failed to load checkpoint: EOF`. Without them
it takes the defaults (gocloud.dev, blob/fileblob, attrs.go). Leaves out locks (`bezel.ops.locks`).
"""

import contextlib
from pathlib import Path


def sweep(state: Path) -> list[Path]:
    """Remove empty attributes; nothing of them is lost, and an engine that is just writing them is not disturbed.

    Args:
        state: The folder of the file backend.

    Returns:
        What was removed.
    """
    removed = []
    for file in sorted((state / ".pulumi").rglob("*.attrs")):
        with contextlib.suppress(OSError):
            if file.is_file() and not file.stat().st_size:
                file.unlink()
                removed.append(file)
    return removed
