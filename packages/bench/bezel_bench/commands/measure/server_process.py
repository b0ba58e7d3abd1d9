"""Server started by a user's command, anew for each value of a setting.

The command runs in a shell and a process group of its own. While it runs, it is the server; if it exits with 0, it has
deployed the server elsewhere. Either way the server is ready when /health returns 200.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable

from bezel_base.errors import Problem, UserError
from bezel_bench.load.plan import Target
from bezel_bench.server.http_probe import asker

_POLL_SECONDS = 0.2
_END_SECONDS = 60.0


class StartedServer:
    """The server of the current value of the setting.

    Args:
        command: Shell command; {KEY} is replaced by the value.
        url: Address of the server.
        seconds: Time within which it must be healthy.
        show: Takes progress messages.
    """

    def __init__(self, command: str, url: str, seconds: float, show: Callable[[str], None]) -> None:
        self._command, self._url, self._seconds, self._show = command, url.rstrip("/"), seconds, show
        self._process: subprocess.Popen[bytes] | None = None

    def restart(self, key: str, value: str, seconds: float | None = None) -> None:
        """End the last server, start the one of the value, wait until it is healthy.

        Args:
            key: Name of the setting.
            value: Value of the setting.
            seconds: Time within which it must be healthy, where less is left than usual.

        Raises:
            UserError: It does not become healthy in time, or the command failed.
        """
        self.end()
        limit = self._seconds if seconds is None else min(self._seconds, seconds)
        # A server that is healthy before the command runs is the previous one: then only the command's end counts.
        old = self._healthy()
        command = self._command.replace(f"{{{key}}}", value)
        environment = os.environ | {key.upper(): value}
        # The command's output goes to standard error, as progress does: standard output is for the result.
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", command], env=environment, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True
        )
        begun = time.monotonic()
        while True:
            code, waited = self._process.poll(), time.monotonic() - begun
            if (code == 0 or (code is None and not old)) and self._healthy():
                return
            if code:
                consequence = f"it ended with exit code {code} for {key}={value}."
                raise UserError(Problem("--start", command, consequence, "run it by hand to see why."))
            if waited > limit:
                self.end()
                consequence = f"{self._url}/health did not return 200 within {limit:.0f} s for {key}={value}."
                repair = "raise --start-seconds or --max-minutes, or read the command's output."
                raise UserError(Problem("--start", command, consequence, repair))
            self._show(f"waits until {key}={value} is healthy, {waited:.0f} s of at most {limit:.0f}")
            time.sleep(_POLL_SECONDS)

    def end(self) -> None:
        """End the command if it still runs, by force after 60 s, and wait until its server is gone."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        # The shell may exit before the processes that it started.
        deadline = time.monotonic() + _END_SECONDS
        while self._healthy() and time.monotonic() < deadline:
            self._show("waits until the previous server is gone")
            time.sleep(_POLL_SECONDS)

    def _healthy(self) -> bool:
        return asker(Target(self._url, "", "chat", public=True), dict, seconds=5.0)("/health", None).status == 200
