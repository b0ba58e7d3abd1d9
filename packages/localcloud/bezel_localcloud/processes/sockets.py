"""Socket files of instances, in a folder of the daemon's user.

Instances listen on no port: a port of 127.0.0.1 is open to every user of the machine, and neither a real vLLM nor
HAProxy checks who connects. Such a connection would bypass the service's ingress, which checks it.
"""

import os
import secrets
import shutil
from pathlib import Path

LISTEN_VARIABLE = "LOCALCLOUD_LISTEN"
PREFIX = "unix:"


class Sockets:
    """The socket files of one daemon's instances."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, created with the first socket; files that a killed daemon left there are removed."""
        self._folder = folder
        self._reached = ""

    def new(self, port: int) -> str:
        """Return a path for an instance whose container listens on `port`; it ends with `:PORT`."""
        if not self._reached:
            self._reached = self._make_folder()
        return f"{self._reached}/{secrets.token_hex(8)}:{port}"

    def _make_folder(self) -> str:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700)
        # A socket's name has at most 107 bytes, which a deep folder alone may exceed: the path through the daemon's
        # open descriptor is always short. It works for processes of the same user only, as the folder does.
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        near = Path(f"/proc/{os.getpid()}/fd/{descriptor}")
        if near.exists():
            return str(near)
        os.close(descriptor)
        return str(self._folder)
