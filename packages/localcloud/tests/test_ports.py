"""Ports that are chosen now and listened on later: no outgoing connection takes them in between."""

from __future__ import annotations

import socket
from pathlib import Path

from bezel_base.loopback.listeners import free_port, listen_on_loopback

LOWEST, HIGHEST = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
OUTGOING = range(LOWEST, HIGHEST + 1)


def test_no_port_is_one_that_an_outgoing_connection_could_get() -> None:
    with socket.create_server(("127.0.0.1", 0)) as kernels:
        assert kernels.getsockname()[1] in OUTGOING
    chosen = {free_port() for _ in range(50)}
    assert len(chosen) > 40
    assert not [port for port in chosen if port in OUTGOING]


def test_a_port_is_listened_on_again_after_its_connections() -> None:
    with listen_on_loopback() as first:
        port = first.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            # Closed by this side first, the connection stays in TIME-WAIT on this port.
            first.accept()[0].close()
    with listen_on_loopback(port) as again:
        assert again.getsockname()[1] == port
    assert port not in OUTGOING


def test_a_port_that_somebody_listens_on_gives_way_to_another() -> None:
    with listen_on_loopback() as taken, listen_on_loopback(taken.getsockname()[1]) as other:
        assert other.getsockname()[1] != taken.getsockname()[1]
        assert other.getsockname()[1] not in OUTGOING
