"""Time until `bezel mcp` answers its first list of tools, from the start of its process.

Each start is a new process that is asked to initialize and then for its tools, over its standard input and output. The
client is a few lines of JSON, so that no client's own start is measured. Run: `python -m tools.bench.mcp_start`.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]
_BEZEL = "import sys; from bezel.cli.main import main; sys.exit(main())"
_SECONDS = 60.0
_INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def start() -> tuple[float, float]:
    """Seconds from the start until the server is initialized, and until it has listed its tools.

    Raises:
        RuntimeError: It answered something else.
    """
    began = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-c", _BEZEL, "mcp", "--folder", str(ROOT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        _send(server, id=1, method="initialize", params=_INITIALIZE)
        _result(server, "serverInfo")
        initialized = time.perf_counter() - began
        _send(server, method="notifications/initialized")
        _send(server, id=2, method="tools/list")
        _result(server, "tools")
        return initialized, time.perf_counter() - began
    finally:
        server.communicate(timeout=_SECONDS)


def _send(server: subprocess.Popen[bytes], **message: Any) -> None:
    assert server.stdin is not None  # noqa: S101 - it is a pipe
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    server.stdin.flush()


def _result(server: subprocess.Popen[bytes], key: str) -> None:
    assert server.stdout is not None  # noqa: S101 - it is a pipe
    answer = json.loads(server.stdout.readline() or b"{}")
    if key not in answer.get("result", {}):
        raise RuntimeError(f"the server answered no {key}: {json.dumps(answer)[:300]}")


def main() -> None:
    """Start the server some times; print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=10, help="number of starts (default: 10)")
    starts = parser.parse_args().starts
    start()  # the first one may compile
    times = [start() for _ in range(starts)]
    for name, seconds in zip(("initialized", "first list"), zip(*times, strict=True), strict=True):
        shown = f"median {median(seconds):.2f} s, {min(seconds):.2f} to {max(seconds):.2f} s over {starts} starts"
        sys.stdout.write(f"{name}: {shown}\n")


if __name__ == "__main__":
    main()
