"""The archive that a container runs: this package, and nothing else; packed, as a secret holds it.

Both depend on the package's sources alone, so that the same release gives the same secret on every machine: the archive
is not compressed, and bzip2 packs alike everywhere. What zlib packs differs between its versions and builds.
"""

import bz2
import io
import zipfile
from pathlib import Path
from typing import Final

LARGEST: Final = 65_536
"""Bytes of a secret's payload in Secret Manager."""

_LEFT_OUT: Final = frozenset({"archive.py", "py.typed"})
_FIRST_TIME: Final = (1980, 1, 1, 0, 0, 0)
_ENTRY: Final = "bezel_door.main"  # the import closure of a deploy follows the name, and so holds the whole door
_MAIN: Final = f"from {_ENTRY} import main\n\nmain()\n".encode()


class ArchiveTooLargeError(Exception):
    """An archive that no secret can hold."""


def packed_archive() -> bytes:
    """The archive, packed.

    Raises:
        ArchiveTooLargeError: It has more than `LARGEST` bytes.
    """
    packed = bz2.compress(door_archive())
    if len(packed) > LARGEST:
        raise ArchiveTooLargeError(f"{len(packed)} bytes; a secret has {LARGEST} at most")
    return packed


def door_archive() -> bytes:
    """The archive."""
    package = Path(__file__).parent
    sources = {
        f"{package.name}/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in package.rglob("*.py")
        if path.name not in _LEFT_OUT and path.name != "__main__.py"
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, source in sorted({"__main__.py": _MAIN, **sources}.items()):
            entry = zipfile.ZipInfo(name, _FIRST_TIME)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_STORED, 3, 0o644 << 16
            archive.writestr(entry, source)
    return content.getvalue()
