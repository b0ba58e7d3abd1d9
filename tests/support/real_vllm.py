"""A real vLLM of this machine, serving the tiny model of the folder that BEZEL_REAL_VLLM names.

The folder has `venv/bin/vllm` and `models/tiny-gemma4`; without it a test that asks for one is skipped.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SECONDS = 400.0
TIMEOUT = 500
"""Seconds of a test that starts one: more than the start may take, so that its end is not cut off."""
# The server ends with the process that started it, also where that is ended in the middle of its start.
_WITH_ITS_PARENT = (
    "import ctypes, os, signal, sys\n"
    "ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM)\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit(1)\n"
    "os.execvp(sys.argv[2], sys.argv[2:])"
)


def start_bound(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a command that gets SIGTERM once this process is gone, however that ended (Linux)."""
    bound = [sys.executable, "-c", _WITH_ITS_PARENT, str(os.getpid()), *command]
    return subprocess.Popen(bound, **options)


@contextlib.contextmanager
def real_vllm(folder: Path, *options: str, seconds: float = SECONDS) -> Iterator[tuple[str, Path]]:
    """Run it until the end of the context; its address, and its log in the folder given.

    Raises:
        AssertionError: It ended, or is not healthy after the seconds. None of its processes is left.
    """
    installed = os.environ.get("BEZEL_REAL_VLLM")
    if installed is None:
        pytest.skip("BEZEL_REAL_VLLM names no folder with a real vLLM (see tools/vllm/contract.py)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = folder / "serve.log"
    command = [
        *(f"{installed}/venv/bin/vllm", "serve", f"{installed}/models/tiny-gemma4", "--host=127.0.0.1"),
        *(f"--port={port}", "--served-model-name=tiny-gemma4", "--dtype=bfloat16", "--enforce-eager"),
        *("--max-model-len=4096", "--max-num-seqs=8", "--kv-cache-memory-bytes=64M", "--generation-config=vllm"),
        *options,
    ]
    variables = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "TORCHDYNAMO_DISABLE": "1",
        "PATH": f"{installed}/venv/bin:{os.environ['PATH']}",
    }
    with log.open("wb") as out:
        process = start_bound(
            command, env=os.environ | variables, stdout=out, stderr=out, cwd=folder, start_new_session=True
        )
    try:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + seconds
        while not _is_healthy(url):
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < end, log.read_text()[-2000:]
            time.sleep(0.5)
        yield url, log
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it with all that it started: its engine outlives a kill of the server alone."""
    for number, wait in ((signal.SIGTERM, 60), (signal.SIGKILL, 10)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait)


def _is_healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False
