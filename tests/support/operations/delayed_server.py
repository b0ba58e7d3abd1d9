"""A model server whose chat answers come late, while its metrics count a first token of a fixed time for each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.support.rest.fake_google import Answer, Call

if TYPE_CHECKING:
    from tests.support.operations.model_server import ModelServer

CHAT = "/v1/chat/completions"
TTFT = "vllm:time_to_first_token_seconds"
AT_SERVER = 0.08


class DelayedServer:
    """The server of a stack behind something that holds requests of the model.

    Attributes:
        seconds: How long it holds each one.
        others: Sequences of other callers that begin in the time of each one.
        at_server: The time of a first token by its metrics.
        counts: First tokens so far.
    """

    def __init__(self, server: ModelServer, metrics: str, *, seconds: float, others: int = 0) -> None:
        self.seconds, self.others, self.counts = seconds, others, 0
        self.at_server, self._sum = AT_SERVER, 0.0
        self._text = metrics
        self._server: Any = server
        server.cloud.server.routes.insert(0, self._answer)

    def _answer(self, call: Call) -> Answer | None:
        if call.path == "/metrics":
            return Answer(text=self._metrics())
        if call.path == CHAT:
            self.counts += 1 + self.others
            self._sum += self.at_server * (1 + self.others)
            chunks: list[bytes | float] = [self.seconds, *self._answer_below(call)]
            return Answer(headers={"Content-Type": "text/event-stream"}, chunks=chunks)
        return None

    def _answer_below(self, call: Call) -> list[bytes | float]:
        """What the server answers below this one; a default where it has none."""
        for route in self._server.cloud.server.routes[1:]:
            answer = route(call)
            if answer is not None:
                return list(answer.chunks or [])
        raise AssertionError(call.path)

    def _metrics(self) -> str:
        def grow(match: re.Match[str]) -> str:
            grown = {"count": self.counts, "sum": self._sum}.get(match["part"] or "", 9 * self.counts)
            return f"{match['head']} {float(match['value']) + grown}"

        pattern = rf"^(?P<head>(?:{TTFT}_(?P<part>sum|count)|vllm:prompt_tokens_total)(?:\{{.*\}})?) (?P<value>\S+)$"
        return re.sub(pattern, grow, self._text, flags=re.MULTILINE)
