"""Process of a real vLLM from a folder, on loopback: shared by the tools that compare with one.

The folder holds a real vLLM of any release and a tiny Gemma 4: `venv/bin/vllm`, `models/tiny-gemma4` and
`models/tiny-gemma4-assistant`. Every wait has a limit, and every started process is ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bezel_localcloud.services.cloud_run.runtime import real_vllm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_START_SECONDS = 300
_COMMON = ("--dtype=bfloat16", "--enforce-eager", "--max-num-seqs=64", "--kv-cache-memory-bytes=64M")


def log_file(name: str) -> Path:
    """A file that survives a run, in a private folder: in the shared temporary folder another user may place a link."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bezel" / "real-vllm"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / name


def command(folder: Path, port: int, arguments: Sequence[str]) -> list[str]:
    """The command line of a server; `{assistant}` in an argument is the draft model's folder."""
    model, assistant = folder / "models" / "tiny-gemma4", folder / "models" / "tiny-gemma4-assistant"
    options = [
        argument.format(assistant=assistant) if "{assistant}" in argument else argument for argument in arguments
    ]
    return [
        str(folder / "venv/bin/vllm"),
        "serve",
        str(model),
        "--host=127.0.0.1",
        f"--port={port}",
        *_COMMON,
        *options,
    ]


Stream = TypeVar("Stream", str, bytes)


@contextlib.contextmanager
def end_at_exit(process: subprocess.Popen[Stream]) -> Iterator[subprocess.Popen[Stream]]:
    """End the server's own process group: terminate it, then kill it."""
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)


def until_healthy(process: subprocess.Popen[bytes], port: int, log: Path) -> list[str]:
    """Request /health until it returns 200; return each distinct response once, in order."""
    answers: list[str] = []
    deadline = time.monotonic() + _START_SECONDS
    while "200" not in answers:
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the real vLLM did not start; its log is {log}")
        try:
            status = str(urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status)
        except urllib.error.HTTPError as error:
            status = str(error.code)
        except OSError:
            status = "refused"
        answers += [] if status in answers else [status]
        time.sleep(0.1)
    return answers


def served_release(port: int) -> str:
    """The release that a server itself tells, without the name of its build."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/version", timeout=30) as response:
        return str(json.loads(response.read())["version"]).partition("+")[0]


def installed_release(folder: Path) -> str:
    """The release in the folder's environment, of which no server need be started."""
    code = "import importlib.metadata; print(importlib.metadata.version('vllm'))"
    line = [str(folder / "venv/bin/python"), "-c", code]
    result = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60)
    return result.stdout.strip().partition("+")[0]


def environment(folder: Path) -> dict[str, str]:
    """Environment of a server and of its own load client, without any request beyond this machine."""
    variables = {key: value for key, value in os.environ.items() if key != "VLLM_CPU_KVCACHE_SPACE"}
    path = f"{folder / 'venv/bin'}{os.pathsep}{os.environ['PATH']}"
    return variables | real_vllm.environment() | {"PATH": path}
