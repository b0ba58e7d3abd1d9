"""Folder in which this user's programs keep what they need again, outside of any clone (XDG Base Directory)."""

import os
from collections.abc import Mapping
from pathlib import Path


def state_folder(name: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder XDG_STATE_HOME/bezel/NAME; a relative XDG_STATE_HOME is ignored, as the specification demands."""
    home = Path(environ.get("XDG_STATE_HOME") or "")
    return (home if home.is_absolute() else Path.home() / ".local" / "state") / "bezel" / name
