"""Who holds the other end of a connection of this machine: the variables of its process. Linux only.

Instances and machines mark every process that they start; elsewhere nobody is told from a stranger.
"""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.localcloud.run.instance import INSTANCE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NODE_VARIABLE = "LOCALCLOUD_NODE"
_MARKS = tuple(f"{name}=".encode() for name in (INSTANCE_VARIABLE, NODE_VARIABLE))
_LOCAL, _INODE = 1, 9  # columns of /proc/net/tcp


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
    for folder, variables in _marked():
        with contextlib.suppress(OSError):  # it has ended
            if any(_link(entry) == f"socket:[{inode}]" for entry in (folder / "fd").iterdir()):
                return variables
    return {}


def _inode(peer: tuple[str, int]) -> str | None:
    host = socket.inet_aton(peer[0])[::-1].hex().upper()
    wanted = f"{host}:{peer[1]:04X}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[_LOCAL] == wanted:
                return columns[_INODE]
    return None


def _marked() -> Iterator[tuple[Path, dict[str, str]]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            entries = (folder / "environ").read_bytes().split(b"\0")
            if any(entry.startswith(_MARKS) for entry in entries):
                pairs = (entry.decode(errors="replace").partition("=") for entry in entries if entry)
                yield folder, {name: value for name, _, value in pairs}


def _link(entry: Path) -> str:
    try:
        return os.readlink(entry)  # noqa: PTH115 - half as dear, and there are hundreds
    except OSError:
        return ""
