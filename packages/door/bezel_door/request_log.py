"""Lines of the log, one JSON object each as Cloud Logging reads it: of requests, and of what the door itself meets.

A line of a request has the key's id, its team, the path of the list, status, tokens and milliseconds: never a key, a
prompt, a header or a path that is not in the list. Refused requests have few lines a minute, and the number of the
others.
"""

import json
import time
from collections.abc import Callable
from typing import Final

from bezel_door.calls.token_use import Tokens

MOST_REFUSALS: Final = 60
"""Lines a minute of requests that the door refused."""


class RequestLog:
    """The log of one process."""

    def __init__(self, write: Callable[[str], object], clock: Callable[[], float] = time.time) -> None:
        self._write, self._clock = write, clock
        self._minute, self._refused, self._left_out = -1, 0, 0

    def request(self, path: str, status: int, milliseconds: float, key_id: str, team: str, tokens: Tokens) -> None:
        """Write the line of a request with an admitted key."""
        fields: dict[str, object] = {"key": key_id, "team": team, "path": path, "status": status}
        fields |= {"prompt_tokens": tokens.prompt, "completion_tokens": tokens.completion}
        if tokens.is_estimate:
            fields["estimated"] = True
        self._line(
            "INFO" if status < 500 else "ERROR", f"{path} {status}", milliseconds=round(milliseconds, 1), **fields
        )

    def refusal(self, path: str, status: int, code: str, key_id: str = "") -> None:
        """Write the line of a request that the door refused, or count it."""
        minute = int(self._clock() // 60)
        if minute != self._minute:
            self._minute, self._refused = minute, 0
        self._refused += 1
        if self._refused > MOST_REFUSALS:
            self._left_out += 1
            return
        more: dict[str, object] = {"key": key_id} if key_id else {}
        more |= {"left_out": self._left_out} if self._left_out else {}
        self._left_out = 0
        self._line("WARNING", f"{path} {status} {code}", path=path, status=status, code=code, **more)

    def event(self, severity: str, text: str) -> None:
        """Write a line about the door itself."""
        self._line(severity, text)

    def _line(self, severity: str, text: str, **fields: object) -> None:
        self._write(json.dumps({"severity": severity, "message": text, **fields}))
