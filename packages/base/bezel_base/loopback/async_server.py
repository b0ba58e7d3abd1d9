"""End of a server of asyncio's; apart from its sockets (`listeners`), which programs without asyncio use."""

import asyncio


async def close_server(server: asyncio.Server) -> None:
    """Stop accepting; each connection that was accepted by then is handed over first, with TLS to its handshake.

    asyncio's own `close` loses a connection between its acceptance and its transport: it is never read and stays
    open until garbage is collected, so its client waits that long (CPython's issue 109564, open in November 2026).
    """
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener.fileno())
    try:
        for _ in ("its transport is made", "its protocol gets it"):
            await asyncio.sleep(0)
    finally:  # else the clients of a close that is cancelled would wait to be accepted
        server.close()
