"""Where instances listen: at socket files in a folder of the daemon's user, and at no port.

A port of 127.0.0.1 is open to every user of the machine, and neither a real vLLM nor HAProxy asks who comes: whoever
connected there would get around the service's front, which does.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

LISTEN_VARIABLE = "LOCALCLOUD_LISTEN"
PREFIX = "unix:"


class Sockets:
    """The socket files of one daemon's instances."""

    def __init__(self, folder: Path) -> None:
        """Take a folder for them, made when the first one is asked for; what a killed daemon left there goes."""
        self._folder = folder
        self._reached = ""

    def new(self, port: int) -> str:
        """A path for an instance whose container listens at `port`; it ends with `:PORT`."""
        if not self._reached:
            self._reached = self._made()
        return f"{self._reached}/{secrets.token_hex(8)}:{port}"

    def _made(self) -> str:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700)
        # The name of a socket has 107 bytes at most, which a deep folder alone may have: through the daemon's open
        # descriptor every folder is near. For the same user's processes only, as the folder itself.
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        near = Path(f"/proc/{os.getpid()}/fd/{descriptor}")
        if near.exists():
            return str(near)
        os.close(descriptor)
        return str(self._folder)
