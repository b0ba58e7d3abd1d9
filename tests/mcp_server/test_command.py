"""`bezel mcp` as a client starts it: a process on standard input and output, and the configuration that names it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from bezel.mcp_server.client_config import CLIENTS
from bezel.operations.registry import OPERATIONS
from tests.support.mcp_server.answers import call_for_json

ROOT = Path(__file__).parents[2]
BEZEL = Path(sys.executable).with_name("bezel")


@pytest.mark.slow
def test_a_client_lists_and_calls_over_standard_input_and_output() -> None:
    async def asking() -> None:
        server = StdioServerParameters(command=str(BEZEL), args=["mcp", "--folder", str(ROOT)], env=dict(os.environ))
        with anyio.fail_after(60):
            async with Client(stdio_client(server, sys.stderr)) as client:  # its default was set when it was imported
                assert "plan" in {tool.name for tool in (await client.list_tools()).tools}
                result = await call_for_json(client, "plan", {"stack": "l4-qat"})
                assert result.structured_content["values"]["cost"]["usd_per_hour"] > 0

    anyio.run(asking)


# What takes the longest to import, and only a call needs.
_HEAVY = ("bezel.planner", "bezel_catalog", "bezel_bench", "pulumi", "numpy", "google")
# The table of the benchmark's commands, a file of texts that its operations say too.
_TEXTS = {"bezel_bench", "bezel_bench.commands", "bezel_bench.commands.table"}
_LISTED = """
import sys
from bezel.mcp_server.scope import Scope
from bezel.mcp_server.server import server_of
from bezel.mcp_server.tools import tool_of
from pathlib import Path
server_of(Path.cwd(), Scope())
print(len([tool_of(each, Scope()) for each in Scope().operations()]))
print(*sorted({name for name in sys.modules}))
"""


@pytest.mark.slow
def test_the_list_of_tools_imports_no_operation() -> None:
    done = subprocess.run([sys.executable, "-c", _LISTED], capture_output=True, text=True, timeout=60, check=True)
    count, modules = done.stdout.splitlines()
    assert int(count) > 0
    assert [name for name in modules.split() if name.startswith(_HEAVY) and name not in _TEXTS] == []
    operations = {f"bezel.operations.{each.function.partition(':')[0]}" for each in OPERATIONS}
    assert operations.isdisjoint(modules.split())


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_the_configuration_starts_this_command_here_and_has_no_secret(client: str) -> None:
    environ = {**os.environ, "GOOGLE_OAUTH_ACCESS_TOKEN": "planted", "PULUMI_CONFIG_PASSPHRASE": "planted"}
    environ |= {"PULUMI_BACKEND_URL": "postgres://me:planted@db/states", "OTHER_CUSTOM_ENDPOINT": "planted"}
    command = [BEZEL, "mcp", "--read-only", "--stack", "l4-qat", "config", client]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=ROOT, timeout=60, check=True)
    assert "planted" not in done.stdout + done.stderr
    assert "PULUMI_BACKEND_URL is left out" in done.stderr
    (servers,) = json.loads(done.stdout).values()
    assert servers["bezel"]["command"] == str(BEZEL.resolve())
    assert servers["bezel"]["args"] == ["mcp", "--folder", str(ROOT), "--read-only", "--stack=l4-qat"]
