"""Use of keys as JSON files, one a day and instance of the door: written, read, and added up. Pure.

Owns the counts and the names of the objects. An instance writes its own object only, so no two writers meet; a day's
use is the sum of the objects of that day. Leaves out when they are written (`bezel_door.accounts.bucket_sync`).
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from typing import Final

USAGE_FOLDER: Final = "usage/"
LONGEST_FILE: Final = 4 * 1024 * 1024

_VERSION = 1
_ID = re.compile(r"[a-z0-9]{8}")
_MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_MOST = 10**15


class UsageFileError(ValueError):
    """A file that is no file of use; the text says where."""


@dataclass(frozen=True, slots=True)
class KeyUsage:
    """What one key used.

    Attributes:
        requests: Requests that were sent to the server; those of `refused` are not among them.
        failures: Those of them that ended with a status of 400 or more, or broke.
        refused: Requests that a limit of the key refused.
        prompt_tokens: Tokens of prompts.
        completion_tokens: Tokens of answers.
        estimated_requests: Requests whose tokens are an estimate: the server reported none.
    """

    requests: int = 0
    failures: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_requests: int = 0

    def __add__(self, other: "KeyUsage") -> "KeyUsage":
        return KeyUsage(*(getattr(self, name) + getattr(other, name) for name in _COUNTS))


@dataclass(frozen=True, slots=True)
class MinuteUse:
    """What one key used in one clock minute (UTC), for its limits by the minute.

    Attributes:
        minute: The minute, as `2026-11-29T08:15`.
        requests: Requests that were sent to the server.
        tokens: Tokens in and out.
    """

    minute: str
    requests: int
    tokens: int


@dataclass(frozen=True, slots=True)
class UsageFile:
    """Use of one day by one instance.

    Attributes:
        keys: Use by a key's id.
        minutes: Use of the last minute of a key, by its id.
    """

    keys: Mapping[str, KeyUsage]
    minutes: Mapping[str, MinuteUse]


_COUNTS = tuple(field.name for field in fields(KeyUsage))


def usage_folder(day: date) -> str:
    """Prefix of the objects of a day (UTC)."""
    return f"{USAGE_FOLDER}{day.isoformat()}/"


def usage_object(day: date, instance: str) -> str:
    """Name of the object of a day (UTC) and an instance of the door."""
    return f"{usage_folder(day)}{instance}.json"


def write_usage(usage: UsageFile) -> bytes:
    """Write the use of one day by one instance."""
    keys = {identifier: asdict(usage.keys[identifier]) for identifier in sorted(usage.keys)}
    minutes = {identifier: asdict(usage.minutes[identifier]) for identifier in sorted(usage.minutes)}
    return json.dumps({"version": _VERSION, "keys": keys, "minutes": minutes}).encode() + b"\n"


def read_usage(content: bytes) -> UsageFile:
    """Read the use of one day by one instance.

    Raises:
        UsageFileError: It is no such file.
    """
    if len(content) > LONGEST_FILE:
        raise UsageFileError(f"{len(content)} bytes; a file of use has {LONGEST_FILE} at most")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise UsageFileError("it is not JSON") from None
    if not isinstance(document, dict) or not {"version", "keys"} <= set(document) <= {"version", "keys", "minutes"}:
        raise UsageFileError("expected an object of version, keys and minutes")
    if document["version"] != _VERSION or isinstance(document["version"], bool):
        raise UsageFileError(f"version {document['version']!r:.40}; this program reads version {_VERSION}")
    keys, minutes = _records(document["keys"]), _records(document.get("minutes", {}))
    return UsageFile(
        {name: KeyUsage(**_counts(name, record, _COUNTS)) for name, record in keys.items()},
        {name: _minute(name, record) for name, record in minutes.items()},
    )


def sum_usage(usages: Iterable[Mapping[str, KeyUsage]]) -> dict[str, KeyUsage]:
    """Add up the use of several instances or days, by a key's id."""
    total: dict[str, KeyUsage] = {}
    for usage in usages:
        for identifier, use in usage.items():
            total[identifier] = total.get(identifier, KeyUsage()) + use
    return total


def _records(value: object) -> dict[str, dict[str, object]]:
    if not isinstance(value, dict):
        raise UsageFileError("keys and minutes: expected objects")
    for name, record in value.items():
        if not _ID.fullmatch(name) or not isinstance(record, dict):
            raise UsageFileError(f"{name!r:.40}: expected counts by the id of a key")
    return value


def _counts(name: str, record: Mapping[str, object], counts: tuple[str, ...]) -> dict[str, int]:
    if set(record) != set(counts):
        raise UsageFileError(f"{name}: expected an object of {', '.join(counts)}")
    return {count: _whole(f"{name}.{count}", record[count]) for count in counts}


def _minute(name: str, record: Mapping[str, object]) -> MinuteUse:
    minute = record.get("minute")
    if not isinstance(minute, str) or not _MINUTE.fullmatch(minute):
        raise UsageFileError(f"{name}.minute: expected a minute such as 2026-11-29T08:15")
    rest = {field: value for field, value in record.items() if field != "minute"}
    return MinuteUse(minute, **_counts(name, rest, ("requests", "tokens")))


def _whole(place: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST:
        raise UsageFileError(f"{place}: expected a whole number")
    return value
