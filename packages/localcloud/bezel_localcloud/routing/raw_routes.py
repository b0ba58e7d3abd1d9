"""Routes whose patterns are compiled when they are first used, and those of Cloud Storage.

Those are matched against the path as it was sent, where an object's name is one encoded segment: "/b/x/o/a%2Facl" is
the object "a/acl" and "/b/x/o/a/acl" the access control list of "a", which a path that is decoded first cannot tell
apart.
"""

import re
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import NamedTuple, cast
from urllib.parse import unquote

from starlette.convertors import CONVERTOR_TYPES
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import PARAM_REGEX, Match, Route
from starlette.types import Scope

_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")
# A parameter's kind in a template -> its form in a path that is still encoded.
_FORMS = {"id": "[^/]+", "path": "[^/]+", "rest": ".+"}


class LatePattern:
    """A regular expression that is compiled when it is first matched.

    Attributes:
        pattern: Its text.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def match(self, text: str) -> re.Match[str] | None:
        """Match the beginning of a text."""
        return self._expression.match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Match a whole text."""
        return self._expression.fullmatch(text)


class Form(NamedTuple):
    """What a table of routes needs of one: whether it matches the path as it was sent, its path, pattern, methods."""

    is_raw: bool
    path: str
    pattern: str
    methods: frozenset[str]


class LateRoute(Route):
    """A route as Starlette's own; to compile 400 paths would take a tenth of the daemon's start."""

    def __init__(self, path: str, endpoint: Callable[[Request], Awaitable[Response]], method: str) -> None:
        super().__init__("/", endpoint, methods=[method])
        self.path, self.path_format = path, PARAM_REGEX.sub(r"{\1}", path)
        literals = PARAM_REGEX.split(path)
        pattern = re.escape(literals[0])
        for name, kind, literal in zip(literals[1::3], literals[2::3], literals[3::3], strict=True):
            self.param_convertors[name] = CONVERTOR_TYPES[kind.removeprefix(":") if kind else "str"]
            pattern += f"(?P<{name}>{self.param_convertors[name].regex}){re.escape(literal)}"
        self.path_regex = cast("re.Pattern[str]", LatePattern(f"^{pattern}$"))

    @cached_property
    def form(self) -> Form:
        """Its form, made once for all tables that have the route."""
        return Form(False, self.path, self.path_regex.pattern, frozenset(self.methods or ()))


class RawRoute(LateRoute):
    """A route whose parameters are decoded after the path was matched; bytes that are no UTF-8 become surrogates.

    Attributes:
        raw_pattern: Form of the whole path as it was sent.
    """

    def __init__(self, path: str, endpoint: Callable[[Request], Awaitable[Response]], method: str) -> None:
        super().__init__(_PARAMETER.sub(r"{\1}", path), endpoint, method)
        literals = _PARAMETER.split(path)
        pattern = re.escape(literals[0])
        for name, kind, literal in zip(literals[1::3], literals[2::3], literals[3::3], strict=True):
            pattern += f"(?P<{name}>{_FORMS[kind or 'id']}){re.escape(literal)}"
        self.raw_pattern = LatePattern(pattern)

    @cached_property
    def form(self) -> Form:
        """Its form, made once for all tables that have the route."""
        return Form(True, self.path, self.raw_pattern.pattern, frozenset(self.methods or ()))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path of a request as it was sent."""
        match = self.raw_pattern.fullmatch(scope["raw_path"].decode("latin-1")) if scope["type"] == "http" else None
        if match is None:
            return Match.NONE, {}
        parameters = {
            name: unquote(value, errors="surrogateescape") if "%" in value else value
            for name, value in match.groupdict().items()
        }
        inner: Scope = {"endpoint": self.endpoint, "path_params": {**scope.get("path_params", {}), **parameters}}
        return (Match.FULL if scope["method"] in (self.methods or ()) else Match.PARTIAL), inner
