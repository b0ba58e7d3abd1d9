"""Log lines in the form of the real server: process, level, time, source file."""

from __future__ import annotations

import functools
import logging
import os
import sys
import time
import tomllib
from http import HTTPStatus
from pathlib import Path

from bezel_simulated_vllm.release import is_since

API = "APIServer"


def log(name: str, /, **values: object) -> None:
    """Write the line of that name in `log_lines.toml` (or several, each with the prefix) to standard output."""
    row = _lines()[name]
    stamp = time.strftime("%m-%d %H:%M:%S")
    prefix = f"({row.get('process', API)} pid={os.getpid()}) {row.get('level', 'INFO')} {stamp} [{_place(name, row)}]"
    for part in row["text"].format(**values).split("\n"):
        sys.stdout.write(f"{prefix} {part}\n")
    sys.stdout.flush()


def log_shutdown() -> None:
    """Write the lines of a shutdown that a signal began, up to that of the HTTP server."""
    for name in _lines():
        if name.startswith("shutdown-"):
            log(name)


def _place(name: str, row: dict[str, str]) -> str:
    """File and line by the release that answers: those of the latest table that it has."""
    tables = [table for release, table in _places().items() if is_since(release) and name in table]
    return tables[-1][name] if tables else row["source"]


@functools.cache
def _places() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("log_places.toml").read_text(encoding="utf-8"))


@functools.cache
def _lines() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("log_lines.toml").read_text(encoding="utf-8"))


def traceback(kind: str, message: str, process: str = "") -> None:
    """Write an uncaught exception of the API process, or of another one by its name, to standard error."""
    if process:
        sys.stderr.write(f"Process {process}:\n")
    sys.stderr.write("Traceback (most recent call last):\n")
    sys.stderr.write(f'  File "vllm/entrypoints/cli/main.py", line 120, in main\n{kind}: {message}\n')
    sys.stderr.flush()


class UvicornFormatter(logging.Formatter):
    """uvicorn's own lines, and its access log: client, request line, status. They have no process in front."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; uvicorn passes five arguments for a request."""
        message = record.getMessage()
        if record.name == "uvicorn.access" and isinstance(record.args, tuple) and len(record.args) == 5:
            client, method, path, version, status = record.args
            phrase = _PHRASES.get(int(str(status)), "")
            message = f'{client or _NEIGHBOUR} - "{method} {path} HTTP/{version}" {status} {phrase}'
        return f"{record.levelname + ':':<10}{message}"


def uvicorn_logging(level: str, *, access: bool) -> None:
    """Send uvicorn's loggers where the real server does: requests to standard output, the rest to standard error."""
    for name, stream in (("uvicorn", sys.stderr), ("uvicorn.access", sys.stdout)):
        handler = logging.StreamHandler(stream)
        handler.setFormatter(UvicornFormatter())
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper() if level != "trace" else "DEBUG")
    # vLLM logs the address itself.
    logging.getLogger("uvicorn.error").addFilter(lambda record: not record.getMessage().startswith("Uvicorn running"))
    if not access:
        logging.getLogger("uvicorn.access").disabled = True


_PHRASES = {status.value: status.phrase for status in HTTPStatus} | {
    # As of Python 3.12, which vLLM's image has: later ones have the phrases of RFC 9110.
    413: "Request Entity Too Large",
    414: "Request-URI Too Long",
    416: "Requested Range Not Satisfiable",
    422: "Unprocessable Entity",
}
"""Of uvicorn, which leaves a further status without one."""
_NEIGHBOUR = "127.0.0.1:0"  # a client of a socket file has no address
