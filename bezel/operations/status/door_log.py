"""Failures of a door by its log: at its bucket, for its identity, at the server behind it. Reads only.

Cloud Run has a door as ready once it has started. A grant that is taken away later shows in the lines that the door
writes about itself, and in no condition. A request to the door would start an instance, so none is sent: without
callers nothing is known. Owns which lines mean what, and until when: a request that was served later takes them back.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from bezel.leases.clock import unix
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService
from bezel.operations.log_reading.bounds import rfc3339
from bezel.operations.log_reading.entries import LogEntry, narrow_filter, quote_value, read_page, service_filter
from bezel.operations.redaction import clean_text

WINDOW_SECONDS: Final = 900
"""Age of the oldest line that is read."""
_BESIDE_SECONDS = 15.0
"""Time by which a served request has to be later: a door whose bucket fails serves its last keys for minutes."""
_TEXT = 300
_SERVED = re.compile(r"/\S+ [1-4]\d\d")
_SERVED_TERM = "(jsonPayload.key:* AND jsonPayload.status<500)"


class DoorFailure(NamedTuple):
    """Why callers by key get no answer, or are not counted.

    Attributes:
        text: What fails, and its reason.
        is_served: Whether they get an answer all the same.
    """

    text: str
    is_served: bool = False


MEANINGS: Final = {
    "the keys cannot be read: ": DoorFailure("it cannot read its keys; after 5 minutes callers get 503 ({})"),
    "the platform in front of the server answered HTTP 40": DoorFailure("the server refuses it: callers get 502 ({})"),
    "the server cannot be reached: ": DoorFailure("it does not reach the server: callers get 503 ({})"),
    "the metadata server ": DoorFailure("it gets no identity: callers get 502 ({})"),
    "counts cannot be exchanged: ": DoorFailure("it cannot exchange the use of keys ({})", is_served=True),
}
"""The begin of a line -> what it means."""
_FIELDS = ("textPayload", "jsonPayload.message")


def read_failures(context: Context, door: DeployedService) -> tuple[DoorFailure, ...]:
    """What a door fails at, by its log of the last minutes.

    Raises:
        RestError: Cloud Logging refused, or did not answer.
    """
    texts = " OR ".join(f"{field}:{quote_value(text)}" for text in MEANINGS for field in _FIELDS)
    query = f"{service_filter(door, (), ('container',))} AND ({texts} OR {_SERVED_TERM})"
    bounded = narrow_filter(query, since=rfc3339(context.clock.now() - WINDOW_SECONDS))
    return judge_lines(read_page(context, context.google, door.project, bounded).entries)


def judge_lines(entries: Iterable[LogEntry]) -> tuple[DoorFailure, ...]:
    """The failures that lines of a door name, newest line first. Pure."""
    newest: dict[str, tuple[float, str]] = {}
    served = 0.0
    for entry in entries:
        at = unix(entry.time) or 0.0
        if _SERVED.fullmatch(entry.text):
            served = max(served, at)
        begin = next((text for text in MEANINGS if entry.text.startswith(text)), "")
        if begin:
            newest.setdefault(begin, (at, entry.text))
    return tuple(
        meaning._replace(text=meaning.text.format(clean_text(newest[begin][1], _TEXT)))
        for begin, meaning in MEANINGS.items()
        if begin in newest and newest[begin][0] + _BESIDE_SECONDS > served
    )
