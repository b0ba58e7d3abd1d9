"""Child processes of the language host: each in a session of its own, none outliving the call, host or engine.

Leaves out the commands: see `runtime`.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

STOP_SECONDS = 5.0

# Linux only: the kernel ends the child when the host dies, also by SIGKILL.
_SETPRIV = shutil.which("setpriv")
_UNDER_US = [_SETPRIV, "--pdeathsig", "TERM", "--"] if _SETPRIV else []


class Children:
    """Starts and ends child processes; safe to use from the server's threads."""

    def __init__(self) -> None:
        self._live: set[subprocess.Popen[bytes]] = set()
        self._stopping = False

    def start(
        self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str], captured: bool
    ) -> subprocess.Popen[bytes]:
        """Start `command`; with `captured` its two streams are pipes, else they are the host's own."""
        pipe = subprocess.PIPE if captured else None
        child = subprocess.Popen(
            [*_UNDER_US, *command],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        self._live.add(child)
        if self._stopping:
            self.stop(child)
        return child

    def wait(self, child: subprocess.Popen[bytes]) -> int:
        """Wait for the child's end; return its exit code, negative for a signal."""
        code = child.wait()
        self._live.discard(child)
        return code

    def streams(self, child: subprocess.Popen[bytes]) -> Iterator[tuple[bool, bytes]]:
        """Yield (is standard error, bytes) as they come, until both streams are closed; then wait for the end."""
        if child.stdout is None or child.stderr is None:
            raise ValueError("streams() wants a child that was started with captured=True")
        open_streams = {child.stdout.fileno(): False, child.stderr.fileno(): True}
        while open_streams:
            for stream in select.select(list(open_streams), [], [])[0]:
                if data := os.read(stream, 65536):
                    yield open_streams[stream], data
                else:
                    del open_streams[stream]
        self.wait(child)

    def stop(self, child: subprocess.Popen[bytes]) -> None:
        """Terminate the child's whole group, and kill it after a while. Does not block."""
        if child.poll() is not None:
            return
        _signal_group(child, signal.SIGTERM)
        insist = threading.Timer(STOP_SECONDS, _signal_group, (child, signal.SIGKILL))
        insist.daemon = True
        insist.start()

    def stop_all(self) -> None:
        """Stop all running children, and any that is started later."""
        self._stopping = True
        for child in list(self._live):
            self.stop(child)

    def end_all(self, *, grace_seconds: float) -> None:
        """Terminate all children; after `grace_seconds` kill the remaining ones. For the end of the host itself."""
        self._stopping = True
        for child in list(self._live):
            _signal_group(child, signal.SIGTERM)
        if not grace_seconds:
            return
        deadline = time.monotonic() + grace_seconds
        while time.monotonic() < deadline and any(child.poll() is None for child in list(self._live)):
            time.sleep(0.05)
        for child in list(self._live):
            _signal_group(child, signal.SIGKILL)


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
