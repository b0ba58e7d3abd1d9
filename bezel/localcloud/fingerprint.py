"""Which code a daemon runs, so that one from before an update or an edit is noticed and replaced."""

from __future__ import annotations

import hashlib
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def fingerprint() -> str:
    """A short digest of all that a daemon is made of: its sources and data, the catalogue's, the simulated server's."""
    digest = hashlib.sha256()
    for folder in (_HERE, _HERE.parent / "catalog", _HERE.parent / "simulated_vllm"):
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(_HERE.parent)
            if "__pycache__" not in name.parts and path.is_file():
                content = path.read_bytes()
                digest.update(f"{name.as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
