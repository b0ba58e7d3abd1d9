"""Atomic file writes: a crash of the process or the machine leaves the whole old or the whole new content."""

import os
from pathlib import Path

from bezel_base.text.printable import encodable


def write_whole(file: Path, content: str | bytes, *, mode: int = 0o644, durable: bool = True) -> None:
    """Replace the file's content with `content`; `mode` sets the permissions of the new file.

    Text is written as UTF-8, with half a surrogate pair as U+FFFD.
    `durable=False` leaves out the wait for the disk: a crash of the process still leaves a whole content, one of the
    machine may not.

    Raises:
        OSError: It could not be written; the file is unchanged, and no temporary file is left.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as opened:
            opened.write(encodable(content).encode() if isinstance(content, str) else content)
            opened.flush()
            if durable:
                os.fsync(opened.fileno())
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
