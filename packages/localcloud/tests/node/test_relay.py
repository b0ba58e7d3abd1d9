"""The port of a machine: what is let through is passed on byte by byte and ends as it ended, the rest is cut off."""

import asyncio
import contextlib
import socket

import pytest

from bezel_localcloud.node.relay import Relay


async def echo(reader, writer):
    """Answers each piece at once, and an end with a farewell."""
    while piece := await reader.read(100):
        writer.write(piece)
        await writer.drain()
    writer.write(b"bye")
    writer.close()


@contextlib.asynccontextmanager
async def open_relay(*, admits=True, listens=True):
    async def rule(_):
        return admits

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    target = server.sockets[0].getsockname()[1]
    if not listens:
        server.close()
        await server.wait_closed()
    relay = Relay(target, rule)
    reader, writer = await asyncio.open_connection("127.0.0.1", await relay.listen("127.0.0.1"))
    try:
        yield reader, writer, relay
    finally:
        writer.close()
        await relay.close()
        server.close()


def run(work):
    asyncio.run(asyncio.wait_for(work(), 60))


def test_pieces_go_through_at_once_and_a_half_closed_way_still_answers():
    async def work():
        async with open_relay() as (reader, writer, _):
            for piece in (b"one", b"two"):
                writer.write(piece)
                assert await reader.readexactly(3) == piece
            writer.write_eof()
            assert await reader.read() == b"bye"

    run(work)


@pytest.mark.parametrize("how", [{"admits": False}, {"listens": False}])
def test_what_is_not_let_through_or_finds_nobody_is_reset(how):
    async def work():
        async with open_relay(**how) as (reader, _, _):
            with pytest.raises(ConnectionResetError):
                await reader.read()

    run(work)


def test_a_relay_that_closes_cuts_off_who_is_connected():
    async def work():
        async with open_relay() as (reader, writer, relay):
            writer.write(b"one")
            assert await reader.readexactly(3) == b"one"
            await relay.close()
            with pytest.raises(ConnectionResetError):
                await reader.read()

    run(work)


@pytest.mark.parametrize("steps", range(8))
def test_a_connection_that_meets_the_close_is_reset_at_each_step(steps):
    async def work():
        async with open_relay() as (_, writer, relay):
            with socket.create_connection(writer.get_extra_info("peername")) as client:
                client.setblocking(False)
                for _ in range(steps):  # accepted, handed over, served: a step of the loop each
                    await asyncio.sleep(0)
                await relay.close()
                with pytest.raises(ConnectionResetError):
                    await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), 10)

    run(work)
