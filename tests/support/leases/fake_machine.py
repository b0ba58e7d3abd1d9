"""A leased machine's startup script as seen from outside: the report that follows from its requests and the time."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class FakeMachine:
    """What a machine does with requests for its container.

    Attributes:
        is_silent: Whether its script takes none, as of an earlier release.
        is_deaf: Whether it overlooks them.
        take_seconds: From a request to `docker stop` or `docker start`.
        load_seconds: From a start to a server that answers.
        failure: Why a start fails, "" if it does not.
    """

    is_silent: bool = False
    is_deaf: bool = False
    take_seconds: float = 3.0
    load_seconds: float = 60.0
    failure: str = ""

    def report(self, now: float, requests: Sequence[tuple[float, str]]) -> dict[str, Any] | None:
        """The guest attribute at this moment, None before any."""
        if self.is_silent:
            return None
        report: dict[str, Any] = {"id": "", "verb": "", "result": "", "detail": ""}
        report |= {"state": "running", "exit": 0, "restarts": 0, "healthy": True, "at": 0}
        for at, text in requests:
            if self.is_deaf or now < at + self.take_seconds:
                continue
            asked = json.loads(text)
            report |= {"id": asked["id"], "verb": asked["verb"], "result": "done", "detail": "", "healthy": False}
            if asked["verb"] == "stop":
                report |= {"state": "exited", "exit": 137}
            elif self.failure:
                report |= {"state": "exited", "exit": 1, "result": "failed", "detail": self.failure}
            elif now < at + self.take_seconds + self.load_seconds:
                report |= {"state": "running", "exit": 0, "result": "running", "detail": "waiting for /health"}
            else:
                report |= {"state": "running", "exit": 0, "healthy": True}
        return report
