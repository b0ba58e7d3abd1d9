"""A file that is there whole or not at all, whatever ends the process that writes it, or the machine."""

import os
from pathlib import Path


def write_whole(file: Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Put `content` in place of what the file holds, text as UTF-8; `mode` are the permissions of the new one.

    Raises:
        OSError: It could not be written; the file is as it was, and nothing lies beside it.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as opened:
            opened.write(content.encode() if isinstance(content, str) else content)
            opened.flush()
            os.fsync(opened.fileno())
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
