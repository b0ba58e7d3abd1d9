"""Google's own paths, without the prefix that tells the APIs apart here: `/v2/projects/...` as `/run/v2/projects/...`.

For clients that can be given a host and a port but no path. The method's path says which API is meant; where two APIs
have the same one, the location does.
"""

import re
from collections.abc import Sequence
from functools import cache, cached_property
from typing import NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from bezel_localcloud.http.methods import unserved_method
from bezel_localcloud.routing.router import Api

# In version 2 the words are named: the registry's protocol begins with /v2/ too.
_VERSIONED = re.compile(
    r"(?:/(?:resumable/)?upload|/download)?/(?:(?:v(?!2/)[0-9][a-z0-9]*|apis?)[/:]|v2/"
    r"(?:projects|operations|entries|services|organizations|folders|billingAccounts|policies"
    r"|monitoredResourceDescriptors)(?![a-z]))"
)
_PARAMETER = re.compile(r"\{(?P<name>\w+)[^}]*\}")


class _Form(NamedTuple):
    verb: str
    pattern: re.Pattern[str]
    prefix: str
    locations: frozenset[str]


class BarePaths:
    """ASGI middleware that adds the prefix to the paths of requests that have none."""

    def __init__(self, app: ASGIApp, apis: Sequence[Api]) -> None:
        self._app = app
        self._apis = apis

    @cached_property
    def _forms(self) -> list[_Form]:
        return [_form(api, rule.method, rule.path) for api in self._apis for rule in api.rules if api.service]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and _VERSIONED.match(scope["path"]):
            prefix = self.prefix(scope["method"], scope["path"])
            scope = {**scope, "path": prefix + scope["path"], "raw_path": prefix.encode() + scope["raw_path"]}
        await self._app(scope, receive, send)

    def prefix(self, verb: str, path: str) -> str:
        """The prefix that a path lacks, such as "/run"; "" for a path of no API."""
        for form in self._forms:
            match = form.pattern.fullmatch(path) if form.verb == verb else None
            if match and (not form.locations or match.groupdict().get("location", "-") in form.locations | {"-"}):
                return form.prefix
        prefixes = dict.fromkeys(form.prefix for form in self._forms)
        return next((prefix for prefix in prefixes if unserved_method(verb, prefix + path)), "")


@cache
def _pattern(path: str) -> re.Pattern[str]:
    parts, end = [], 0
    for match in _PARAMETER.finditer(path):
        parts += [re.escape(path[end : match.start()]), f"(?P<{match['name']}>[^/:]+)"]
        end = match.end()
    return re.compile("".join([*parts, re.escape(path[end:])]))


def _form(api: Api, verb: str, path: str) -> _Form:
    prefix = f"/{path.split('/')[1]}"
    return _Form(verb, _pattern(path.removeprefix(prefix)), prefix, api.locations)
