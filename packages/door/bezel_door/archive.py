"""The archive that a container runs as `python /door/door.pyz`: this package, and nothing else.

Its bytes depend on the package's sources alone, so that the same release gives the same secret.
"""

import io
import zipfile
from pathlib import Path
from typing import Final

LARGEST: Final = 65_536
"""Bytes of a secret's payload in Secret Manager."""

_LEFT_OUT: Final = frozenset({"archive.py", "py.typed"})
_FIRST_TIME: Final = (1980, 1, 1, 0, 0, 0)
_MAIN: Final = b"from bezel_door.main import main\n\nmain()\n"


class ArchiveTooLargeError(Exception):
    """An archive that no secret can hold."""


def door_archive() -> bytes:
    """The archive.

    Raises:
        ArchiveTooLargeError: It has more than `LARGEST` bytes.
    """
    package = Path(__file__).parent
    sources = {
        f"{package.name}/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in package.rglob("*.py")
        if path.name not in _LEFT_OUT and path.name != "__main__.py"
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, source in sorted({"__main__.py": _MAIN, **sources}.items()):
            entry = zipfile.ZipInfo(name, _FIRST_TIME)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, source)
    if len(content.getvalue()) > LARGEST:
        raise ArchiveTooLargeError(f"{len(content.getvalue())} bytes; a secret has {LARGEST} at most")
    return content.getvalue()
