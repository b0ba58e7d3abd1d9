"""Owner of the other end of a connection on this machine: the variables of its process. Linux only.

Instances and machines mark every process that they start; on other systems all processes look like outside ones.
Any user can give a process the same variables: those of another user's processes are ignored.
"""

import contextlib
import os
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from bezel.localcloud.services.cloud_run.runtime.instance import INSTANCE_VARIABLE
from bezel.loopback.peer_uid import owner_of

NODE_VARIABLE = "LOCALCLOUD_NODE"
_MARKS = tuple(f"{name}=".encode() for name in (INSTANCE_VARIABLE, NODE_VARIABLE))
# The latest owners are checked first: a gateway makes many connections.
_recent: deque[Path] = deque(maxlen=4)


def owner(peer: tuple[str, int], here: tuple[str, int]) -> Mapping[str, str]:
    """The variables of the marked process that holds the other end of a connection.

    Args:
        peer: Its address and port, as seen by the process that accepted the connection.
        here: Address and port of this end: one port of the other side may have several connections at a time.

    Returns:
        {} if no instance and no machine of a cloud holds it.
    """
    end = owner_of(peer, here)
    if end is None or end.uid != os.geteuid():
        return {}
    for folder in (*_recent, *Path("/proc").glob("[0-9]*")):
        with contextlib.suppress(OSError):  # the process has ended, or is another user's
            entries = (folder / "environ").read_bytes().split(b"\0")
            if any(entry.startswith(_MARKS) for entry in entries) and _holds(folder, end.inode):
                if folder not in _recent:
                    _recent.appendleft(folder)
                pairs = (entry.decode(errors="replace").partition("=") for entry in entries if entry)
                return {name: value for name, _, value in pairs}
    return {}


def _holds(folder: Path, inode: int) -> bool:
    return any(_link(entry) == f"socket:[{inode}]" for entry in (folder / "fd").iterdir())


def _link(entry: Path) -> str:
    try:
        return os.readlink(entry)  # noqa: PTH115 - half as dear, and there are hundreds
    except OSError:
        return ""
