"""Who holds the other end of a connection of this machine: the variables of its process. Linux only.

Instances and machines mark every process that they start; elsewhere nobody is told from a stranger.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.localcloud.run.instance import INSTANCE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

NODE_VARIABLE = "LOCALCLOUD_NODE"
_MARKS = tuple(f"{name}=".encode() for name in (INSTANCE_VARIABLE, NODE_VARIABLE))
_INODE = 9  # column of /proc/net/tcp
# Who was found last is looked at first: a gateway makes many connections.
_recent: deque[Path] = deque(maxlen=4)


def owner(peer: tuple[str, int]) -> Mapping[str, str]:
    """The variables of the marked process that holds a socket.

    Args:
        peer: Address and port of the socket, as whoever accepted its connection sees them.

    Returns:
        {} if no instance and no machine of a cloud holds it.
    """
    inode = _inode(peer)
    if inode is None:
        return {}
    for folder in (*_recent, *Path("/proc").glob("[0-9]*")):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            entries = (folder / "environ").read_bytes().split(b"\0")
            if any(entry.startswith(_MARKS) for entry in entries) and _holds(folder, inode):
                if folder not in _recent:
                    _recent.appendleft(folder)
                pairs = (entry.decode(errors="replace").partition("=") for entry in entries if entry)
                return {name: value for name, _, value in pairs}
    return {}


def _inode(peer: tuple[str, int]) -> str | None:
    host = socket.inet_aton(peer[0])[::-1].hex().upper()
    try:
        table = Path("/proc/net/tcp").read_text()
    except OSError:
        return None
    found = re.search(rf"^ *\d+: {host}:{peer[1]:04X} .*$", table, re.MULTILINE)
    return found[0].split()[_INODE] if found else None


def _holds(folder: Path, inode: str) -> bool:
    return any(_link(entry) == f"socket:[{inode}]" for entry in (folder / "fd").iterdir())


def _link(entry: Path) -> str:
    try:
        return os.readlink(entry)  # noqa: PTH115 - half as dear, and there are hundreds
    except OSError:
        return ""
