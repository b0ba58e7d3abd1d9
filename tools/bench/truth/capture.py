"""Capture of the packets between client and server on the loopback, each with the kernel's stamp of its departure.

A proof that is independent of both ends: neither the client nor the server's log is asked. The kernel keeps the packets
until the load has ended, so reading them takes no CPU from either end. Needs root (a raw socket). Leaves out what the
instants mean (`tools.bench.truth.split`).
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
from dataclasses import dataclass
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

# include/uapi/linux/if_ether.h, asm-generic/socket.h, filter.h
_ALL_PROTOCOLS: Final = 3
_SO_ATTACH_FILTER, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 26, 33, 35
_PACKET_KIND: Final = 0xFFFFF000 + 4
# A million packets of a load, of which the headers are kept.
_BUFFER: Final = 1024 * 1024 * 1024
_ETHERNET: Final = 14
_HEADERS: Final = 96
_COMPLETION: Final = b"POST /v1/"
_TIMESPEC: Final = struct.Struct("qq")
_STAMPS_WITHIN_NS: Final = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet with data: when it left (ns of CLOCK_MONOTONIC), its ports, and the beginning of its data."""

    at: int
    source: int
    target: int
    begins: bytes


@dataclass(slots=True)
class Exchange:
    """One request as the network saw it: when its first packet left, and that of its response; 0 for none."""

    request: int
    response: int = 0


class Capture:
    """Packets to and from a port of the loopback, as long as it is entered."""

    def __init__(self, port: int) -> None:
        """Begin to keep packets.

        Raises:
            PermissionError: This user may open no raw socket.
            TimeoutError: The kernel does not stamp packets.
        """
        self._port = port
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        code = packet_filter(port)
        steps = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("HL", len(code) // 8, ctypes.addressof(steps))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.setblocking(False)
        await_stamps()
        self._socket.bind(("lo", _ALL_PROTOCOLS))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget the packets."""
        self._socket.close()

    def exchanges(self) -> list[Exchange]:
        """Return the requests whose packets came so far, in the order of their departure."""
        offset, packets = clock_offset(), []
        with contextlib.suppress(BlockingIOError):
            while True:
                data, stamps, _, _ = self._socket.recvmsg(_HEADERS, socket.CMSG_SPACE(_TIMESPEC.size))
                seconds, nanoseconds = _TIMESPEC.unpack(stamps[0][2])
                if packet := read_packet(data, seconds * 1_000_000_000 + nanoseconds + offset):
                    packets.append(packet)
        return pair_packets(packets, self._port)


def await_stamps() -> None:
    """Wait until packets have the kernel's stamps: it begins some time after a socket asks for them.

    A packet of before then is stamped as it is read (Linux's net/socket.c, `__sock_recv_timestamp`).

    Raises:
        TimeoutError: It has not begun within the limit.
    """
    deadline = monotonic_ns() + _STAMPS_WITHIN_NS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        probe.settimeout(_STAMPS_WITHIN_NS / 1e9)
        probe.bind(("127.0.0.1", 0))
        while monotonic_ns() < deadline:
            probe.sendto(b"probe", probe.getsockname())
            read_at = time_ns()
            stamps = probe.recvmsg(_HEADERS, socket.CMSG_SPACE(_TIMESPEC.size))[1]
            seconds, nanoseconds = _TIMESPEC.unpack(stamps[0][2])
            if seconds * 1_000_000_000 + nanoseconds <= read_at:
                return
    raise TimeoutError(f"the kernel stamps no packet within {_STAMPS_WITHIN_NS / 1e9:.0f} s")


def clock_offset() -> int:
    """Return CLOCK_MONOTONIC less CLOCK_REALTIME: the tightest of many reads, as other work may come between two."""
    looks = []
    for _ in range(100):
        before, wall, after = monotonic_ns(), time_ns(), monotonic_ns()
        looks.append((after - before, (before + after) // 2 - wall))
    return min(looks)[1]


def packet_filter(port: int) -> bytes:
    """Return the program (classic BPF) that keeps the headers of outgoing TCP packets to and from a port."""
    program = [
        (0x28, 0, 0, _PACKET_KIND),
        (0x15, 0, 9, 4),  # PACKET_OUTGOING: each packet of the loopback comes in, too
        (0x28, 0, 0, 12),
        (0x15, 0, 7, 0x0800),  # IPv4
        (0x30, 0, 0, 23),
        (0x15, 0, 5, socket.IPPROTO_TCP),
        (0xB1, 0, 0, _ETHERNET),  # the length of IP's header
        (0x48, 0, 0, _ETHERNET),
        (0x15, 3, 0, port),
        (0x48, 0, 0, _ETHERNET + 2),
        (0x15, 1, 0, port),
        (0x06, 0, 0, 0),
        (0x06, 0, 0, _HEADERS),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in program)


def read_packet(data: bytes, at: int) -> Packet | None:
    """Return the packet of these headers; None where it carries no data."""
    ip = (data[_ETHERNET] & 15) * 4
    tcp = data[_ETHERNET + ip :]
    content = tcp[(tcp[12] >> 4) * 4 :]
    return Packet(at, int.from_bytes(tcp[:2]), int.from_bytes(tcp[2:4]), content) if content else None


def pair_packets(packets: Iterable[Packet], port: int) -> list[Exchange]:
    """Return the completions asked for at a port, in the order of departure.

    Requests and responses alternate on one connection.
    """
    exchanges: list[Exchange] = []
    last: dict[int, Exchange] = {}
    for packet in sorted(packets, key=lambda packet: packet.at):
        if packet.target == port:
            if packet.source not in last or last[packet.source].response:
                last[packet.source] = Exchange(packet.at)
                # Not the requests around a load: the model, the server's metrics.
                if packet.begins.startswith(_COMPLETION):
                    exchanges.append(last[packet.source])
        elif (exchange := last.get(packet.target)) and not exchange.response:
            exchange.response = packet.at
    return exchanges
