"""Entries that a caller writes: defaults, checks, and duplicates. Pure.

Owns the normal form of a written entry and what is refused about it. Leaves the store and the permission to api.py.
Source: discovery document of logging.v2, WriteLogEntriesRequest and LogEntry.
"""

import json
import re
import uuid
from datetime import datetime

from bezel_localcloud.core.errors import ERRORS, ApiError, invalid, permission_denied, unserved_error
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER

CREATE = "logging.logEntries.create"
_LOG = re.compile(r"/?((?:projects|organizations|folders|billingAccounts)/[^/]+)/logs/([\w.%-]{1,511})", re.ASCII)
_OWN = frozenset({f"projects/{PROJECT}", f"projects/{PROJECT_NUMBER}"})
_PAYLOADS = ("textPayload", "jsonPayload", "protoPayload")
_LARGEST, _MOST_LABELS = 256 * 1024, 64  # source: Cloud Logging's page of quotas
_LARGEST_WRITE = 64 << 20  # bytes of a request's entries as they are stored; its body has 10 MiB at most
_KEPT_SECONDS, _AHEAD_SECONDS = 30 * 86_400, 86_400


def check_shared(request: Json) -> None:
    """Check the size of what each entry of a request gets from it: it is stored as many times as there are entries.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    size = len(json.dumps([request.get(name) for name in ("logName", "resource", "labels")]))
    if size > _LARGEST or len(request["entries"]) * size > _LARGEST_WRITE:
        text = f"With the labels and the resource of the request, its entries have more than {_LARGEST_WRITE} bytes"
        raise invalid(f"{text}: send fewer at once.", ("entries", "are too large"))


def written_entry(entry: Json, request: Json, now: float) -> Json:
    """An entry as it is stored: with the request's defaults, its time and its id.

    Raises:
        ApiError: INVALID_ARGUMENT, PERMISSION_DENIED for another project's log; NotServedError for a protoPayload.
    """
    parent, log = _log_of(entry.get("logName") or request.get("logName", ""))
    if parent not in _OWN:
        raise permission_denied(CREATE, parent)
    resource = entry.get("resource") or request.get("resource") or {}
    if not resource.get("type"):
        raise invalid("A monitored resource must be specified for each log entry.", ("resource", "is required"))
    payloads = [name for name in _PAYLOADS if name in entry]
    if len(payloads) > 1:
        raise invalid(f"{' and '.join(payloads)}: an entry has one payload.", ("payload", "is a oneof"))
    if "protoPayload" in payloads:
        raise unserved_error("protoPayload of an entry", "use jsonPayload")
    labels_of_both = [each.get("labels", {}) for each in (request, entry)]
    if (
        sum(map(len, labels_of_both)) > _MOST_LABELS
        and len(labels_of_both[0].keys() | labels_of_both[1].keys()) > _MOST_LABELS
    ):
        raise invalid(f"A log entry has at most {_MOST_LABELS} labels.", ("labels", "too many"))
    labels = {**labels_of_both[0], **labels_of_both[1]}
    stored = entry | {
        "logName": f"projects/{PROJECT}/logs/{log}",
        "resource": resource,
        "timestamp": timestamp(time_of(entry, now)),
        "receiveTimestamp": timestamp(now),
        "insertId": entry.get("insertId") or uuid.uuid4().hex[:20],
        **({"labels": labels} if labels else {}),
    }
    size = len(json.dumps(stored))
    if size > _LARGEST:
        raise invalid(f"Log entry with size {size} exceeds maximum size of {_LARGEST}.", ("entries", "is too large"))
    return stored


def time_of(entry: Json, now: float) -> float:
    """The time of an entry in Unix seconds; that of its arrival where it names none."""
    text = re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", entry.get("timestamp", ""))
    return datetime.fromisoformat(text.upper()).timestamp() if text else now


def is_kept(time: float, now: float) -> bool:
    """Whether an entry of that time can be listed: neither older than the retention nor far in the future."""
    return now - _KEPT_SECONDS <= time <= now + _AHEAD_SECONDS


def partial_error(errors: dict[int, ApiError]) -> ApiError:
    """The refusal of a request whose other entries were written."""
    first = errors[min(errors)]
    listed = {
        str(index): {"code": ERRORS["codes"][error.code][0], "message": error.message}
        for index, error in errors.items()
    }
    kind = "type.googleapis.com/google.logging.v2.WriteLogEntriesPartialErrors"
    return ApiError(first.code, first.message, [{"@type": kind, "logEntryErrors": listed}])


def _log_of(name: str) -> tuple[str, str]:
    """(parent, id) of a log's name."""
    match = _LOG.fullmatch(name)
    if match is None:
        text = f"Invalid log name {name!r}: expected projects/PROJECT/logs/LOG, with %2F for each slash in LOG."
        raise invalid(text, ("log_name", "is invalid"))
    return match[1], match[2]
