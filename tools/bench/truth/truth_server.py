"""Server that knows the truth (tools/bench/truth/server, in Go): build it, run it on one core, read its log."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tools.docs.generated_sections import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import IO

_START_SECONDS, _STOP_SECONDS, _BUILD_SECONDS = 20.0, 60.0, 300.0


@dataclass(frozen=True, slots=True)
class Record:
    """Truth about one request: instants in ns of CLOCK_MONOTONIC, 0 where it did not get that far.

    Attributes:
        number: Its place in the order of arrival.
        admitted: When it got a slot.
        first: When its first token left, and `last` its last one.
        tokens: Tokens that left.
        outcome: "ok", "error" (a status 500), "reset" (in the middle of its tokens), "gone" (the client left), or ""
            where it was under way at the end.
        gaps: Nanoseconds from each token to the next; empty without `-gaps`.
    """

    number: int
    arrival: int
    admitted: int
    first: int
    last: int
    done: int
    tokens: int
    outcome: str
    gaps: Sequence[int] = ()


class TruthServer:
    """The server, on one core, while the context lasts; its `records` afterwards.

    Args:
        folder: For its log.
        core: The core that it runs on; None: any.
        flags: Its pace and faults, as `truth -help` names them.
        tls: Certificate and key.

    Attributes:
        url: Its address.
        port: The port of it.
    """

    def __init__(self, folder: Path, core: int | None, *flags: str, tls: tuple[Path, Path] | None = None) -> None:
        self._log = folder / "truth.jsonl"
        self._log.unlink(missing_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        files = ["-cert", str(tls[0]), "-key", str(tls[1])] if tls else []
        pinned = [] if core is None else ["taskset", "-c", str(core)]
        self._command = [*pinned, program(), "-addr", f"127.0.0.1:{self.port}", "-log", str(self._log), *files, *flags]

    def __enter__(self) -> Self:
        """Start it, and wait until it listens."""
        announces = "-announce" in self._command
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE if announces else None)
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise SystemExit(f"the server does not start: {' '.join(self._command)}") from None
                time.sleep(0.02)
            else:
                return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it: it writes its log."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self.output:
            self.output.close()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def output(self) -> IO[bytes] | None:
        """Its standard output, to which `-announce` prints the instant of the first request; None without it."""
        return self._process.stdout

    def records(self) -> list[Record]:
        """Its requests, in the order of their arrival."""
        return [Record(**json.loads(line)) for line in self._log.read_text("utf-8").splitlines()]


def program() -> str:
    """The built server.

    Raises:
        SystemExit: Go is missing, or the build failed.
    """
    if shutil.which("go") is None:
        raise SystemExit("the server that knows the truth is built with Go, which is not on PATH: install it")
    script = ROOT / "tools" / "toolchain" / "truth_server.py"
    ended = subprocess.run(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, timeout=_BUILD_SECONDS, check=False
    )
    if ended.returncode:
        raise SystemExit(ended.returncode)
    return ended.stdout.strip()
