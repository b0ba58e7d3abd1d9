"""Request bodies: parsing, and validation against Google's definitions: names, types, enum values.

The definitions (data/messages.json) are trimmed from Google's discovery documents by `tools.traffic.discovery_data`,
which also explains their notation. Owns the check and the normal form of accepted values: names in camelCase, int32 as
numbers, int64 as strings, enum values by name, bytes in padded base64, no output-only fields. Leaves out the meaning of
a value.
"""

import base64
import json
import math
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

from bezel_base.json_documents import TooManyValuesError, read_encodable_json
from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.http.enums import names_of

Fields = dict[str, str]  # name -> kind

_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
_TIMESTAMP = re.compile(
    r"([0-9]{4}(?:-[0-9]{2}){2}[Tt][0-9]{2}(?::[0-9]{2}){2})(?:\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_NUMBER = re.compile(r"(-?[0-9]+)(\.[0-9]+)?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_LONGEST_NUMBER, _LARGEST_EXPONENT = 40, 30
_MOST_PROBLEMS, _LONGEST_PROBLEM = 100, 400  # violations that one refusal names, characters of each
_LONGEST_DURATION = 315_576_000_000  # seconds, about ten thousand years: google.protobuf.Duration


class NotOfKindError(Exception):
    """A value that does not have its kind."""


@cache
def definitions() -> dict[str, Fields]:
    """Definition of every message that a served request may hold."""
    content = json.loads((Path(__file__).parents[1] / "data" / "messages.json").read_text(encoding="utf-8"))
    messages: dict[str, Fields] = content["messages"]
    return messages


@cache
def settable_fields(message: str) -> frozenset[str]:
    """Fields of a resource that a caller may set: all that are not output only, but its name and its etag."""
    return frozenset(name for name, kind in definitions()[message].items() if not kind.startswith("!")) - {
        "name",
        "etag",
    }


def json_object(raw: bytes, *, null_is_empty: bool = False) -> Json:
    """Return a body as a JSON object; an absent body is an empty one.

    Args:
        raw: The body.
        null_is_empty: Whether `null` is an empty one too, as some clients of Cloud Storage write it.

    Raises:
        ApiError: INVALID_ARGUMENT for a body that is no JSON (NaN and half a surrogate pair are none), is out of the
            bounds of `read_encodable_json`, or is no object.
    """
    try:
        body = read_encodable_json(raw) if raw else {}
    except TooManyValuesError as error:
        raise invalid(f"The JSON payload is too large for localcloud: {error}. Send less at once.") from None
    except ValueError:
        raise invalid("Invalid JSON payload received. Unable to parse the body.") from None
    if body is None and null_is_empty:
        return {}
    if not isinstance(body, dict):
        raise invalid("Invalid JSON payload received. Root element must be a message.")
    return body


def checked_message(body: Json, message: str, where: str, *, keep_null: bool = False) -> Json:
    """Return the body in its normal form.

    Args:
        body: The caller's JSON.
        message: Name of the definition, e.g. "run.GoogleCloudRunV2Service".
        where: Name of the field that the body is bound to, e.g. "service"; "" for the whole request.
        keep_null: Whether null has a meaning (Cloud Storage, Compute Engine: "remove this"); else it counts as absent.

    Raises:
        ApiError: INVALID_ARGUMENT with the first hundred wrong fields.
    """
    check = _Check(message.partition(".")[0], keep_null)
    normal: Json = check.message(body, message, where)
    check.finish()
    return normal


class _Check:
    """One pass over one body; collects (field, text) of every violation."""

    def __init__(self, api: str, keep_null: bool) -> None:
        self._problems: list[tuple[str, str]] = []
        self._api = api
        self._keep_null = keep_null

    def finish(self) -> None:
        """Refuse the body if anything in it was wrong."""
        if self._problems:
            raise invalid("\n".join(text for _, text in self._problems), *self._problems)

    def _report(self, field: str, text: str) -> None:
        """Note a violation; names and values in it can be as long as the body, and as many."""
        self._problems.append((_shorten(field), _shorten(text)))
        if len(self._problems) == _MOST_PROBLEMS:
            self.finish()

    def message(self, body: Any, message: str, where: str) -> Any:
        if not isinstance(body, dict):
            self._report(where, f"Invalid value at '{where}' ({message.partition('.')[2]})")
            return body
        fields = definitions()[message]
        normal = {}
        for sent_name, value in body.items():
            name = camel(sent_name)
            if name not in fields and (value is None or value == []):
                continue  # ignored as Google does: the published provider sends some names that its API does not know
            if name not in fields:
                at = f" at '{_shorten(where)}'" if where else ""
                text = f'Invalid JSON payload received. Unknown name "{sent_name[:100]}"{at}: Cannot find field.'
                self._report(where, text)
            elif value is None and not self._keep_null:
                continue
            elif value == "" and self._keep_null and fields[name].startswith("enum:"):
                continue  # as good as absent in the older APIs: the published provider sends `"versionedExpr": ""`
            else:
                path = f"{where}.{snake(name)}" if where else snake(name)
                checked = self._value(value, fields[name].removeprefix("!"), path)
                if not fields[name].startswith("!"):
                    normal[name] = checked
        return normal

    def _value(self, value: Any, kind: str, where: str) -> Any:
        if value is None and self._keep_null:
            return None
        if kind.startswith("[]") and isinstance(value, list):
            return [self._value(item, kind[2:], f"{where}[{index}]") for index, item in enumerate(value)]
        if kind.startswith("{}") and isinstance(value, dict):
            return {key: self._value(item, kind[2:], f"{where}[{key}]") for key, item in value.items()}
        if kind.startswith("@"):
            return self.message(value, f"{self._api}.{kind[1:]}", where)
        # The older APIs know enum values by name only.
        unknown = self._keep_null and kind.startswith("enum:") and not isinstance(value, str)
        try:
            return scalar(None if unknown else value, kind)
        except NotOfKindError:
            # A secret's payload is never shown, not even when it has the wrong type.
            shown = "" if where.startswith("payload") else f", {json.dumps(value)[:200]}"
            self._report(where, f"Invalid value at '{_shorten(where)}' ({shown_kind(kind)}){shown}")
            return value


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_PROBLEM else f"{text[: _LONGEST_PROBLEM - 3]}..."


def camel(name: str) -> str:
    """The camelCase of a name in snake_case."""
    return re.sub(r"_([a-z])", lambda match: match.group(1).upper(), name)


def snake(name: str) -> str:
    """The snake_case of a name in camelCase."""
    return re.sub(r"[A-Z]", lambda match: f"_{match.group().lower()}", name)


def shown_kind(kind: str) -> str:
    """Name of a kind in Google's refusals."""
    if name := {"timestamp": "Timestamp", "duration": "Duration", "mask": "FieldMask"}.get(kind):
        return f"type.googleapis.com/google.protobuf.{name}"
    return "TYPE_ENUM" if kind.startswith("enum:") else f"TYPE_{kind.strip('[]{}').upper()}"


def scalar(value: Any, kind: str) -> Any:
    """Return a single value of a kind in its normal form.

    Raises:
        NotOfKindError: If the value is not of that kind.
    """
    if kind in _RANGES:
        return _whole(value, kind)
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if kind.startswith("enum:"):
        return _enum_name(value, kind)
    raise NotOfKindError


def _enum_name(value: Any, kind: str) -> str:
    """The name of an enum value, given by name or by number; some have no known number."""
    if isinstance(value, str) and value in kind.removeprefix("enum:").split("|"):
        return value
    names = names_of(kind)
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in names:
        raise NotOfKindError
    return names[int(value)]


def _whole(value: Any, kind: str) -> int | str:
    text = str(value)
    minimum, maximum = _RANGES[kind]
    if isinstance(value, bool) or not isinstance(value, int | float | str) or len(text) > _LONGEST_NUMBER:
        raise NotOfKindError
    if not (match := _NUMBER.fullmatch(text)) or abs(int(match[3] or 0)) > _LARGEST_EXPONENT:
        raise NotOfKindError
    exact = Decimal(text)
    if exact != exact.to_integral_value() or not minimum <= exact <= maximum:
        raise NotOfKindError
    number = int(exact)
    return str(number) if kind.endswith("64") else number


def _text(value: Any) -> str:
    return str(_check_type(value, str))


def _check_type(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise NotOfKindError
    return value


def _real(value: Any) -> float:
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise NotOfKindError
    return value


def _bytes(value: Any) -> str:
    """Normalize base64, also URL-safe or without padding, which protobuf's JSON accepts."""
    text = _text(value).replace("-", "+").replace("_", "/")
    body = text.rstrip("=")
    if not re.fullmatch(r"[A-Za-z0-9+/]*", body) or len(body) % 4 == 1 or len(text) - len(body) > 2:
        raise NotOfKindError
    return base64.b64encode(base64.b64decode(body + "=" * (-len(body) % 4))).decode()


def _timestamp(value: Any) -> str:
    match = _TIMESTAMP.fullmatch(_text(value))
    if match is None:
        raise NotOfKindError
    try:
        datetime.fromisoformat(match[1].upper() + match[2].upper())
    except ValueError:
        raise NotOfKindError from None
    return str(value)


def _duration(value: Any) -> str:
    match = re.fullmatch(r"-?([0-9]{1,12})(\.[0-9]{1,9})?s", _text(value))
    if match is None or int(match[1]) > _LONGEST_DURATION:
        raise NotOfKindError
    return str(value)


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "mask": _text,
    "bool": partial(_check_type, kind=bool),
    "double": _real,
    "bytes": _bytes,
    "timestamp": _timestamp,
    "duration": _duration,
    "any": lambda value: value,
}
