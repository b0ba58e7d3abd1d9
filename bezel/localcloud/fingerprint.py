"""Fingerprint of a daemon's code, so that a daemon from before an update or an edit is noticed and replaced."""

import hashlib
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_ROOMS = ("localcloud", "catalog", "loopback", "simulated_vllm")


def fingerprint() -> str:
    """A short digest of a daemon's inputs: the sources and data of every room that it runs."""
    digest = hashlib.sha256()
    for room in _ROOMS:
        for path in sorted((_HERE.parent / room).rglob("*")):
            name = path.relative_to(_HERE.parent)
            if "__pycache__" not in name.parts and path.is_file():
                content = path.read_bytes()
                digest.update(f"{name.as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
