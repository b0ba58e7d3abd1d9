"""Listening sockets: who gets a port, when connections are accepted, and the error of an address that is not free."""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from bezel_base.errors import Problem
from bezel_base.loopback.async_server import close_server
from bezel_base.loopback.listeners import (
    bind,
    bind_path,
    free_port,
    listen,
    listen_error,
    listen_on_loopback,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOT_HERE = "192.0.2.1"  # an address for documentation (RFC 5737)
HERE = "127.0.0.1"


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


@contextmanager
def drawn_port() -> Iterator[int]:
    """A port that can be listened on while the context lasts: bound here too, it is drawn by no other process."""
    with bind(HERE, free_port()) as drawn:
        yield port_of(drawn)


def test_listen_on_port_0_accepts_connections() -> None:
    with listen(HERE) as listener, socket.create_connection((HERE, port_of(listener)), 5):
        assert port_of(listener) > 0


def test_listen_takes_exactly_the_given_port() -> None:
    with drawn_port() as port, listen(HERE, port) as listener:
        assert port_of(listener) == port


def test_listen_sends_without_delay() -> None:
    with listen(HERE) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY for this one only


def test_listen_refuses_a_taken_port_with_a_repair() -> None:
    with listen(HERE) as taken:
        port = port_of(taken)
        with pytest.raises(OSError, match="error while attempting to bind on address") as raised:
            listen(HERE, port)
    assert raised.value.errno == errno.EADDRINUSE
    repair = "choose another port, or 0 for any that is free."
    expected = Problem("--port", port, "another process listens on it, so nothing is served.", repair)
    assert listen_error(raised.value, port).problems == (expected,)


def test_listen_gets_a_port_that_was_closed() -> None:
    with drawn_port() as port:
        listen(HERE, port).close()
        with listen(HERE, port) as listener:
            assert port_of(listener) == port


@pytest.mark.parametrize("host", [NOT_HERE, "2001:db8::1"])
def test_listen_refuses_an_address_of_another_machine(host: str) -> None:
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the kernel's text, which differs without IPv6
        listen(host)
    [problem] = listen_error(raised.value, 0, host=host).problems
    assert isinstance(problem, Problem)
    assert (problem.key, problem.value) == ("address", host)
    assert "no such address" in problem.consequence


def test_listen_error_names_the_option_and_the_cause() -> None:
    error = listen_error(PermissionError(errno.EACCES, "Permission denied"), 80, "--tls-port")
    assert str(error).startswith("--tls-port = 80\n   this user cannot listen on it (Permission denied)")


def test_bind_refuses_connections_until_it_listens() -> None:
    with bind(HERE) as listener:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HERE, port_of(listener)), 5)
        listener.listen()
        socket.create_connection((HERE, port_of(listener)), 5).close()


def test_only_one_of_two_bound_sockets_listens() -> None:
    with bind(HERE) as first, bind(HERE, port_of(first)) as second:
        first.listen()
        with pytest.raises(OSError, match="already in use"):
            second.listen()


def test_listen_on_loopback_gives_way_to_another_process() -> None:
    with listen_on_loopback() as taken, listen_on_loopback(port_of(taken)) as other:
        assert port_of(other) != port_of(taken)


def test_listen_on_loopback_keeps_a_free_port() -> None:
    with drawn_port() as port, listen_on_loopback(port) as listener:
        assert listener.getsockname() == (HERE, port)


def test_bind_keeps_a_port_for_one_server_from_all_that_draw_one() -> None:
    with bind(HERE, free_port()) as drawn:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(drawn.getsockname())  # as `free_port` tries each
        with listen(HERE, port_of(drawn)), socket.create_connection(drawn.getsockname(), 5):
            pass


@pytest.mark.parametrize("steps", [1, 2])
def test_a_close_that_is_cancelled_half_way_closes_the_server(steps: int) -> None:
    async def work() -> None:
        server = await asyncio.start_server(lambda *_: None, sock=listen(HERE))
        close = asyncio.create_task(close_server(server))
        for _ in range(steps):
            await asyncio.sleep(0)
        assert server.sockets, "the close is under way"
        close.cancel()
        await asyncio.wait((close,))
        assert (server.sockets, close.cancelled()) == ((), True)
        await close_server(server)  # once more does no harm

    asyncio.run(work())


def test_bind_path_makes_a_socket_file_once(tmp_path: Path) -> None:
    path = str(tmp_path / "instance:8000")
    with closing(bind_path(path)) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.listen()
        client.connect(path)
        with pytest.raises(OSError, match="in use"):
            bind_path(path)
