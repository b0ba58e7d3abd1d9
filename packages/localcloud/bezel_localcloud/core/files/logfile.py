"""Log file of bounded size that always ends with a whole line, also after a kill."""

import os
from pathlib import Path

_MAX_BYTES = 16 * 1024 * 1024


class LogFile:
    """A text stream to append lines to; a full file becomes `<name>.1` and replaces the previous one."""

    def __init__(self, path: Path, max_bytes: int = _MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._open()

    def write(self, text: str) -> None:
        """Append whole lines in one write: a kill leaves all of them or none."""
        data = text.encode()
        if self._size and self._size + len(data) > self._max_bytes:
            os.close(self._descriptor)
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            self._open()
        self._size += os.write(self._descriptor, data)

    def flush(self) -> None:
        """Do nothing: no write is buffered."""

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._size = os.fstat(self._descriptor).st_size
