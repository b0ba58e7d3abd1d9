"""Jobs over the protocol: progress while a load runs, a result that fits its schema, and an end for who gives up."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from bezel.mcp_server.scope import Scope
from bezel.mcp_server.server import server_of
from simulated_vllm_support.process import simulated_vllm
from tests.support.ended import has_ended, processes_with
from tests.support.mcp_server.answers import call_for_json

pytestmark = pytest.mark.slow  # a server, and a process for each load
SECONDS = 100.0


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with simulated_vllm(tmp_path_factory.mktemp("model")) as address:
        yield address


def test_a_load_tells_its_progress_and_answers_with_its_figures(url: str, tmp_path: Path) -> None:
    lines: list[str] = []

    async def progress(_progress: float, _total: float | None, message: str | None) -> None:
        lines.append(message or "")

    async def use_client() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(server_of(tmp_path, Scope())) as client:
                (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == "bench_run"]
                assert tool.annotations is not None
                assert not tool.annotations.read_only_hint
                arguments = {"url": url, "out": "run.json", "users": 2, "requests": 8, "output_tokens": 4}
                result = await call_for_json(client, "bench_run", arguments, progress_callback=progress)
                assert not result.is_error, result.content
                structured: dict[str, Any] = result.structured_content
                assert structured["cells"][0]["requests"] == 8
                assert any("calibrates" in line for line in lines)
                report = await call_for_json(client, "bench_report", {"results": ["run.json"], "out": "run.html"})
                assert report.structured_content["written"] == ["run.html"]

    anyio.run(use_client)


def test_a_load_ends_with_the_client_that_gave_it_up(url: str, tmp_path: Path) -> None:
    out = str(tmp_path / "run.json")
    loading: list[int] = []

    async def use_client() -> None:
        arguments = {"url": url, "out": "run.json", "users": 2, "seconds": 600, "output_tokens": 4}
        with anyio.fail_after(SECONDS):
            async with Client(server_of(tmp_path, Scope())) as client:
                with anyio.CancelScope() as scope:

                    async def progress(_progress: float, _total: float | None, message: str | None) -> None:
                        if "calibrates" in (message or ""):
                            loading.extend(processes_with(out))
                            scope.cancel()

                    await client.call_tool("bench_run", arguments, progress_callback=progress)

    anyio.run(use_client)
    (process,) = loading
    assert has_ended(process)
    assert processes_with(out) == []
