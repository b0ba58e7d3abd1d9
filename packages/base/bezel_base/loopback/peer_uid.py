"""Owner of the other end of a TCP connection within this machine, as the kernel reports it. Linux only.

A port of the loopback is open to every user of the machine, and TCP carries no name. The kernel knows the owner of each
socket: one message to its socket diagnostics returns it; where a sandbox has none (gVisor), the table in /proc does. A
client that has closed its end has no owner any more: it counts as unknown, never as root.
"""

import errno
import os
import re
import socket
import struct
import sys
from pathlib import Path
from typing import NamedTuple

_SOCK_DIAG = 4  # protocol of netlink, linux/netlink.h
_BY_FAMILY = 20  # type of a message, linux/sock_diag.h
_REQUEST = 1  # flag of a message
_HEADER = struct.Struct("=IHHII")
_ANY_STATE = 0xFFFFFFFF
_NO_COOKIE = b"\xff" * 8
_OWNER = struct.Struct("=II")
_OWNER_AT = _HEADER.size + 4 + 48 + 12  # after family, state and the socket's identity, and three counters
# The table is read page by page while sockets come and go, so one read may miss sockets that are there all the time.
_LOOKS = 5
_UID, _INODE = 7, 9  # columns of the table

# Of IPv4, or of IPv6, whose addresses have two further parts.
Address = tuple[str, int] | tuple[str, int, int, int]


class Owner(NamedTuple):
    """Owner of a socket: the user's id, and the socket's inode, by which a process can be found."""

    uid: int
    inode: int


def owner_of(peer: Address, here: Address) -> Owner | None:
    """The owner of the other end of a connection, None where it is unknown.

    Args:
        peer: Its address and port, as seen by the process that accepted the connection.
        here: Address and port of this end: one port of the other side may have several connections at a time.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            return _ask_kernel(kernel, peer, here)
    except OSError:
        return _in_table(peer, here)


def is_own(peer: Address | None, here: Address | None) -> bool:
    """Whether the other end of a connection belongs to the user that this process runs as.

    An end without an address is one of a closed connection: it has no owner. On systems other than Linux the owner is
    unknown and every peer counts as own: there a port is guarded by its tokens only.
    """
    if sys.platform != "linux":
        return True
    owner = owner_of(peer, here) if peer and here else None
    return owner is not None and owner.uid == os.geteuid()


def _ask_kernel(kernel: socket.socket, peer: Address, here: Address) -> Owner | None:
    family = _family(peer)
    hosts = (socket.inet_pton(family, end[0]).ljust(16, b"\0") for end in (peer, here))
    ends = b"".join((struct.pack("!HH", peer[1], here[1]), *hosts, struct.pack("=I", 0), _NO_COOKIE))
    request = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, _ANY_STATE) + ends
    kernel.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST, 1, 0) + request)
    answer = kernel.recv(4096)
    if _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        if code == errno.ENOENT:
            return None
        raise OSError(code, os.strerror(code))
    uid, inode = _OWNER.unpack_from(answer, _OWNER_AT)
    return Owner(uid, inode) if inode else None


def _in_table(peer: Address, here: Address) -> Owner | None:
    ends = " ".join(f"{_in_words(end[0], _family(end))}:{end[1]:04X}" for end in (peer, here))
    line = re.compile(rf"^ *\d+: {ends} .*$", re.MULTILINE)
    table = Path("/proc/net/tcp6" if _family(peer) == socket.AF_INET6 else "/proc/net/tcp")
    for _ in range(_LOOKS):
        try:
            row = line.search(table.read_text(encoding="utf-8"))
        except OSError:
            return None
        if row and (inode := int((columns := row[0].split())[_INODE])):
            return Owner(int(columns[_UID]), inode)
    return None


def _family(end: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in end[0] else socket.AF_INET


def _in_words(host: str, family: socket.AddressFamily) -> str:
    """An address as the table has it: words of 32 bits, each in the machine's byte order."""
    packed = socket.inet_pton(family, host)
    integers = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in integers)
