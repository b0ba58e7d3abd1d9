"""Folders with the secrets that containers mount: written for one instance, removed at its end.

Not modelled: on Cloud Run every read of such a file fetches the version anew.
"""

import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_OWNER_READS = 0o400  # as root in a container does, whatever the mode
_WRITING = 0o222  # which Cloud Run takes from every mode


class FileContent(NamedTuple):
    """A file: its path in the folder, its mode bits and its bytes."""

    path: str
    mode: int
    content: bytes


class SecretFolders:
    """The folders of one daemon's instances."""

    def __init__(self, root: Path) -> None:
        """Use a folder, made with the first secret; what a killed daemon left there is removed now."""
        self._root = root
        shutil.rmtree(root, ignore_errors=True)

    def new(self) -> Path:
        """Return the path of a folder that is not there yet."""
        return self._root / uuid.uuid4().hex

    def write(self, folder: Path, files: Iterable[FileContent]) -> None:
        """Write files into a new folder, which the caller removes."""
        self._root.mkdir(exist_ok=True, mode=0o700)
        folder.mkdir(mode=0o700)
        for file in files:
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            path.write_bytes(file.content)
            path.chmod(file.mode & ~_WRITING | _OWNER_READS)
