"""Paths that the door serves, each with its methods and the way its tokens are counted. Pure.

A list, not a pattern: a path that vLLM serves later is not open until it is judged. Left out on purpose: `/metrics`,
`/load` and `/version` (they are about all callers), `/invocations` (every other path under one name), adapters and the
other paths of administration, stored responses by their id (a key could read another's), batches and audio (their
tokens would not be counted). Source: routes of vLLM 0.33.0 (November 2026).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PROBE_PATH: Final = "/door"
"""Path of the startup probe: 200 once keys were read, and what was counted so far is written; no key is asked for."""


class Api(StrEnum):
    """The interface by which a path's tokens are counted."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    MESSAGES = "messages"
    WHOLE = "whole"
    """Answered as one document with its `usage`: embeddings and what else a pooling model serves."""
    FREE = "free"
    """No tokens are counted: nothing is computed by the model."""


@dataclass(frozen=True, slots=True)
class Route:
    """A served path.

    Attributes:
        path: The path.
        method: Its one method.
        api: How its tokens are counted.
    """

    path: str
    method: str
    api: Api

    @property
    def is_anthropic(self) -> bool:
        """Whether Anthropic's libraries read its errors."""
        return is_anthropic(self.path)


_POST = {
    "/v1/chat/completions": Api.CHAT,
    "/v1/completions": Api.COMPLETIONS,
    "/v1/responses": Api.RESPONSES,
    "/v1/messages": Api.MESSAGES,
    "/v1/messages/count_tokens": Api.FREE,
    "/v1/embeddings": Api.WHOLE,
    "/v2/embed": Api.WHOLE,
    "/v1/score": Api.WHOLE,
    "/score": Api.WHOLE,
    "/v1/rerank": Api.WHOLE,
    "/v2/rerank": Api.WHOLE,
    "/rerank": Api.WHOLE,
    "/pooling": Api.WHOLE,
    "/classify": Api.WHOLE,
    "/tokenize": Api.FREE,
    "/detokenize": Api.FREE,
}
ROUTES: Final = {
    "/v1/models": Route("/v1/models", "GET", Api.FREE),
    **{path: Route(path, "POST", api) for path, api in _POST.items()},
}
"""Every served path."""


def is_anthropic(path: str) -> bool:
    """Whether Anthropic's libraries call a path, so that they read its errors."""
    return path == "/v1/messages" or path.startswith("/v1/messages/")


def path_of(target: bytes) -> str:
    """The path of a request's target, as sent: a path is served in its plain spelling only.

    The query is not forwarded: no served path reads one, and callers put keys there.
    """
    return target.partition(b"?")[0].decode("latin-1")
