"""Routes of Cloud Storage, matched against the path as it was sent: an object's name is one encoded segment.

"/b/x/o/a%2Facl" is the object "a/acl" and "/b/x/o/a/acl" the access control list of "a": a path that is decoded first
cannot tell them apart.
"""

import re
from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")
# A parameter's kind in a template -> its form in a path that is still encoded.
_FORMS = {"id": "[^/]+", "path": "[^/]+", "rest": ".+"}


class RawRoute(Route):
    """A route whose parameters are decoded after the path was matched; bytes that are no UTF-8 become surrogates.

    Attributes:
        raw_pattern: Form of the whole path as it was sent.
    """

    def __init__(self, path: str, endpoint: Callable[[Request], Awaitable[Response]], method: str) -> None:
        super().__init__(_PARAMETER.sub(r"{\1}", path), endpoint, methods=[method])
        literals = _PARAMETER.split(path)
        pattern = re.escape(literals[0])
        for name, kind, literal in zip(literals[1::3], literals[2::3], literals[3::3], strict=True):
            pattern += f"(?P<{name}>{_FORMS[kind or 'id']}){re.escape(literal)}"
        self.raw_pattern = re.compile(pattern)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path of a request as it was sent."""
        found = self.raw_pattern.fullmatch(scope["raw_path"].decode("latin-1")) if scope["type"] == "http" else None
        if found is None:
            return Match.NONE, {}
        parameters = {
            name: unquote(value, errors="surrogateescape") if "%" in value else value
            for name, value in found.groupdict().items()
        }
        inner: Scope = {"endpoint": self.endpoint, "path_params": {**scope.get("path_params", {}), **parameters}}
        return (Match.FULL if scope["method"] in (self.methods or ()) else Match.PARTIAL), inner
