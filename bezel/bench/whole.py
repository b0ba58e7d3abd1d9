"""A file that is there whole or not at all, whatever ends the process that writes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Puts ``content`` in place of what a file holds, at once.

    Raises:
        OSError: It could not be written; the file is as it was, and nothing lies beside it.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with part.open("wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
