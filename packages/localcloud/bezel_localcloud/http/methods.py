"""Methods of Google's APIs: which are served here, and their query parameters.

The tables (data/methods.json, and data/other_methods.json of what is not served) are trimmed from Google's discovery
documents by `tools.traffic.discovery_data`. Owns the look-up of a method and the check of a query against it, not the
handlers (`bezel_localcloud.services`).
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import NotServedError, invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.path_templates import PathTemplates
from bezel_localcloud.http.messages import NotOfKindError, camel, scalar, shown_kind, snake

_DATA = Path(__file__).parents[1] / "data"
# Parameters of every method, as each discovery document lists them. Some may begin with "$".
# Source: cloud.google.com/apis/docs/system-parameters.
_WITH_DOLLAR = frozenset({"alt", "callback", "fields", "key", "prettyPrint", "quotaUser"})
_OF_EVERY_METHOD = _WITH_DOLLAR | {
    *("uploadType", "upload_protocol", "userIp", "access_token", "oauth_token", "$.xgafv"),
    *("$apiFormat", "$apiVersion", "$ct", "$httpMethod", "$outputDefaults", "$unique"),
    *(f"${name}" for name in _WITH_DOLLAR),
}
NUMBERS = "json;enum-encoding=int"
"""Value of `alt` for responses with enum values as numbers."""
# Values that are as good as no parameter: of a text, and of a bool.
_ABSENT = (frozenset({""}), frozenset({"", "false"}))
# The places of uploads and downloads, before an API's prefix or after it.
_MEDIA = re.compile("^(?P<api>(?:/(?!upload/|resumable/|download/)[^/]+)?)/(?:(?:resumable/)?upload|download)/")
_PROMETHEUS = ".prometheus.api."
_MOST_OF_AN_ENUM = 2**31 - 1
# These parameters of Cloud Storage have no effect here: there is no billing, there are no access control lists and no
# folders, and an object has one generation.
_WITHOUT_EFFECT = frozenset({"userProject", "projection", "includeFoldersAsPrefixes", "versions"})
_ACLS = frozenset({"predefinedAcl", "predefinedDefaultObjectAcl", "destinationPredefinedAcl"})
# Lists that give no one outside of the project a right; members of the project have theirs by roles.
_OF_THE_PROJECT = frozenset({"private", "projectPrivate", "bucketOwnerRead", "bucketOwnerFullControl"})


@dataclass(frozen=True)
class Method:
    """One served method.

    Attributes:
        id: Google's name for it, e.g. "run.projects.locations.services.get".
        http: GET, POST, ...
        path: Path here, every parameter as {}.
        version: Version of the API, e.g. "v2".
        query: Kinds of its query parameters.
        required: Query parameters that must be given.
        bound: Fields of the request that the path has, where the API lets a body repeat them.
        request: Message of the body, "" for none.
        response: Message of the response, "" for none.
    """

    id: str
    http: str
    path: str
    version: str
    query: dict[str, str]
    required: tuple[str, ...] = field(default=())
    bound: tuple[str, ...] = field(default=())
    request: str = ""
    response: str = ""


@cache
def _table() -> Json:
    content: Json = json.loads((_DATA / "methods.json").read_text(encoding="utf-8"))
    return content


@cache
def served_methods() -> dict[tuple[str, str], Method]:
    """The served methods by (HTTP method, path with {} for every parameter)."""
    methods = [
        Method(**row | {key: tuple(row.get(key, ())) for key in ("required", "bound")}) for row in _table()["served"]
    ]
    return {(method.http, method.path): method for method in methods}


def method_of(http: str, route: str) -> Method | None:
    """The method that a route such as "/crm/v1/projects/{project:id}" serves; None for localcloud's own."""
    path = re.sub(r"^(/resumable)?/(upload|download)(?=/)", "", re.sub(r"\{[^}]*\}", "{}", route)).rstrip("/")
    path = _one_version(path)
    return served_methods().get((http, path)) or _served_templates().find(http, path)


def unserved_method(http: str, path: str) -> str | None:
    """Return Google's name of a method that matches a path and is not served here, None if Google has no such method.

    Args:
        http: GET, POST, ...
        path: Path of a request, still encoded; that of an upload or a download too.
    """
    path = re.sub("/compute/(?:alpha|beta)/", "/compute/v1/", _MEDIA.sub(r"\g<api>/", path, count=1))
    # A name may have a colon of its own, as `example.com:project` has.
    return _others().find(http, path) or _others().find(http, path, strict=False)


def service_of(path: str) -> str:
    """Name of the API that a path belongs to, such as "run.googleapis.com"; "" for none."""
    path = _MEDIA.sub(r"\g<api>/", path, count=1)
    return str(_table()["services"].get(path.split("/")[1], "")) if path.startswith("/") else ""


def _one_version(path: str) -> str:
    """A path with Compute Engine's versions as one: both are served alike, by the beta's document."""
    return path.replace("/compute/beta/", "/compute/v1/")


def check_query(method: Method, pairs: Iterable[tuple[str, str]], heeded: frozenset[str]) -> dict[str, str]:
    """Return the query's values by their names in camelCase.

    Args:
        method: The called method.
        pairs: Names and values as they came.
        heeded: Names that the handler uses.

    Raises:
        ApiError: INVALID_ARGUMENT for an unknown name, a value of the wrong type, a required one that is missing;
            NotServedError for one that Google has and localcloud does not serve.
    """
    values: dict[str, str] = {}
    problems = []
    for sent_name, value in pairs:
        # Prometheus's clients name a list `match[]`.
        name = sent_name.removesuffix("[]") if _PROMETHEUS in method.id else sent_name
        camel_name = name if name in method.query else camel(name)
        if name in _OF_EVERY_METHOD:
            plain = name.removeprefix("$") if name.removeprefix("$") in _WITH_DOLLAR else name
            if (plain == "alt" and value not in {"", "json", "media", NUMBERS}) or (plain == "callback" and value):
                raise _not_served(method, f"localcloud responds in JSON only: leave {name}={value} out.")
            values[plain] = value
            continue
        kind = method.query.get(camel_name, "").removeprefix("[]")
        if _is_ignored(method, camel_name, value):
            continue
        if not kind:
            text = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
            text += f" Field '{name}' could not be found in request message."
            problems.append((name, text))
        elif camel_name not in heeded and camel_name not in _WITHOUT_EFFECT:
            if value.lower() in _ABSENT[kind == "bool"]:  # gcloud sends enableObjectRetention=False
                continue
            text = f"localcloud does not serve the query parameter '{name}' of {method.id}: leave it out."
            raise _not_served(method, text)
        else:
            try:
                values[camel_name] = _normal(value, kind)
            except NotOfKindError:
                text = f"Invalid value at '{snake(camel_name)}' ({shown_kind(kind)}), {json.dumps(value)[:200]}"
                problems.append((snake(camel_name), text))
    problems += [(name, f"Required parameter: {name}") for name in method.required if not values.get(name)]
    if problems:
        raise invalid("\n".join(text for _, text in problems), *problems)
    return values


def _not_served(method: Method, text: str) -> NotServedError:
    return NotServedError(text, method.id, service_of(method.path))


def _is_ignored(method: Method, name: str, value: str) -> bool:
    """Whether Cloud Storage answers as if a parameter were not there: one that it does not know, or without effect."""
    if not method.id.startswith("storage."):
        return False
    return name not in method.query or (name in _ACLS and value in _OF_THE_PROJECT)


def _normal(value: str, kind: str) -> str:
    """A value as text in its normal form; an empty one counts as not given."""
    if kind == "bool" and value.lower() in {"true", "false"}:  # Python libraries send True and False
        return value.lower()
    if value in {"", "true", "false"} and kind in {"bool", "string"}:
        return value
    if kind.startswith("enum:") and (number := decimal(value, _MOST_OF_AN_ENUM)) is not None:
        return str(scalar(number, kind))
    return str(scalar(value, kind)) if value else ""


@cache
def _served_templates() -> PathTemplates[Method]:
    return PathTemplates((verb, template, method) for (verb, template), method in served_methods().items())


@cache
def _others() -> PathTemplates[str]:
    """Names of the methods that are not served by their templates; read when first needed."""
    lines: dict[str, str] = json.loads((_DATA / "other_methods.json").read_text(encoding="utf-8"))["others"]
    forms = ((*line.partition(" "), name) for line, name in lines.items())
    return PathTemplates((verb, template, name) for verb, _, template, name in forms)


@cache
def api_prefixes() -> frozenset[str]:
    """First segments of the paths of all known methods."""
    return frozenset(_table()["services"])
