"""A file that is there whole or not at all, whatever ends the process that writes it."""

import os
from pathlib import Path


def write_whole(file: Path, text: str, *, mode: int = 0o644) -> None:
    """Put `text` in place of what the file holds; `mode` are the permissions of the new one."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as opened:
        opened.write(text)
    part.replace(file)
