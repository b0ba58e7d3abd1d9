"""Calls of a client, in this process, to the MCP server of a folder."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
from mcp.client import Client

from bezel.mcp_server.scope import Scope
from bezel.mcp_server.server import server_of

Asked = Callable[[Client], Coroutine[Any, Any, None]]


def ask(folder: Path, asked: Asked, scope: Scope | None = None) -> None:
    """Run calls of the SDK's client against the server of a folder, within a minute."""

    async def asking() -> None:
        with anyio.fail_after(60):
            async with Client(server_of(folder, scope or Scope())) as client:
                await asked(client)

    anyio.run(asking)
