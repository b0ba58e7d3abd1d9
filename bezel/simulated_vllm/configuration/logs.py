"""Log lines in the form of the real server: process, level, time, source file."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import TextIO

API, ENGINE = "APIServer", "EngineCore"


def line(text: str, *, source: str, process: str = API, level: str = "INFO", stream: TextIO | None = None) -> None:
    """Write a line (or several, each with the prefix) to stdout or to `stream`.

    Args:
        text: the text of the line.
        source: file and line as vLLM prints them, e.g. "core.py:133".
        process: the API process or the engine's.
        level: INFO, WARNING or ERROR.
        stream: the output; standard output if None.
    """
    out = stream or sys.stdout
    stamp = time.strftime("%m-%d %H:%M:%S")
    for part in text.split("\n"):
        out.write(f"({process} pid={os.getpid()}) {level} {stamp} [{source}] {part}\n")
    out.flush()


def traceback(kind: str, message: str) -> None:
    """Write an uncaught exception of the API process to standard error."""
    sys.stderr.write("Traceback (most recent call last):\n")
    sys.stderr.write(f'  File "vllm/entrypoints/cli/main.py", line 120, in main\n{kind}: {message}\n')
    sys.stderr.flush()


class UvicornFormatter(logging.Formatter):
    """uvicorn's own lines with the process in front."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return f"({API} pid={os.getpid()}) {record.levelname + ':':<10}{record.getMessage()}"


class AccessFormatter(UvicornFormatter):
    """uvicorn's access log: client, request line, status."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; uvicorn passes five arguments."""
        if isinstance(record.args, tuple) and len(record.args) == 5:
            client, method, path, version, status = record.args
            phrase = _PHRASES.get(int(str(status)), "")
            message = f'{client or _NEIGHBOUR} - "{method} {path} HTTP/{version}" {status} {phrase}'
            return f"({API} pid={os.getpid()}) {record.levelname + ':':<10}{message}"
        return super().format(record)


def uvicorn_logging(level: str, *, access: bool) -> None:
    """Send uvicorn's loggers to standard output in the server's form."""
    for name, formatter in (("uvicorn", UvicornFormatter()), ("uvicorn.access", AccessFormatter())):
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(formatter)
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper() if level != "trace" else "DEBUG")
    if not access:
        logging.getLogger("uvicorn.access").disabled = True


_NEIGHBOUR = "127.0.0.1:0"  # a client of a socket file has no address
_PHRASES = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed"} | {
    500: "Internal Server Error",
    503: "Service Unavailable",
}
