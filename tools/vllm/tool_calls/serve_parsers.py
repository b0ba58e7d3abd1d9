"""One real engine behind an API server for each parser of tool calls; run with the Python of a vLLM's environment.

    VENV/bin/python tools/vllm/tool_calls/serve_parsers.py MODEL FIRST_PORT PARSER...

The servers listen on the ports from FIRST_PORT on, in the order of the parsers: each has the application that
`vllm serve MODEL --enable-auto-tool-choice --tool-call-parser PARSER` builds, and all have the same engine, which is
started once. A line "ready" on stdout follows the last one. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Any

import uvicorn
import uvloop
from vllm.entrypoints.launchers.api_server.app_state import init_app_state
from vllm.entrypoints.launchers.api_server.entry import build_async_engine_client
from vllm.entrypoints.launchers.app import build_app

try:
    from vllm.entrypoints.common.cli_args import make_arg_parser, validate_parsed_serve_args  # since 0.33.0
except ImportError:
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser

_POLL_SECONDS = 0.05
OPTIONS = (
    *("--served-model-name=tiny", "--load-format=dummy", "--dtype=bfloat16", "--enforce-eager", "--max-model-len=2048"),
    *("--max-num-seqs=16", "--kv-cache-memory-bytes=64M", "--generation-config=vllm", "--enable-auto-tool-choice"),
)


def arguments_of(model: str, parser: str) -> Any:
    """The parsed command line of one server."""
    options = make_arg_parser(FlexibleArgumentParser()).parse_args(
        [
            model,
            *OPTIONS,
            f"--tool-call-parser={parser}",
            "--host=127.0.0.1",
        ]
    )
    options.model = model
    validate_parsed_serve_args(options)
    return options


async def serve(model: str, first_port: int, parsers: list[str]) -> None:
    """Serve until standard input ends."""
    async with build_async_engine_client(arguments_of(model, parsers[0])) as engine:
        tasks = await engine.get_supported_tasks()
        servers = []
        for number, parser in enumerate(parsers):
            options = arguments_of(model, parser)
            app = build_app(options, tasks, engine.model_config)
            await init_app_state(engine, app.state, options, tasks)
            config = uvicorn.Config(app, host="127.0.0.1", port=first_port + number, log_level="error")
            server = app.state.server = uvicorn.Server(config)
            servers.append(asyncio.create_task(server.serve()))
            while not server.started:  # noqa: ASYNC110 - uvicorn tells it by an attribute alone
                await asyncio.sleep(_POLL_SECONDS)
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        for task in servers:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
