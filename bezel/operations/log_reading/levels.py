"""Levels of a log's lines: as the server wrote them, and of lines without one that continue an error. Pure.

vLLM writes its level into its lines, uvicorn before them, PyTorch as one letter; none of them is a severity for the
platform. An uncaught exception has no level at all: its traceback, its message of any number of lines and the exception
that it was raised from are one error, which ends before the stream's next line of a level, or of progress.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from bezel.operations.log_reading.entries import LogEntry, level_of

_TRACEBACK = re.compile(r"^[\s|+-]*(?:Exception Group )?Traceback \(most recent call last\):")
# An error's first line that no traceback precedes: a parser's, the interpreter's, the C++ runtime's, the kernel's.
_FATAL = re.compile(
    r"^(?:\S.{0,80}?: error: |Fatal Python error: |terminate called |Segmentation fault|Aborted\b|Process \S+:$|"
    r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception): )"
)
_ERRORS = frozenset({"ERROR", "CRITICAL", "ALERT", "EMERGENCY"})
_PROGRESS = re.compile(r"\d+%(?:\||\s+Completed)|\bit/s\]|^usage: ")


def with_levels(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """The entries, oldest first, with the severity ERROR for every line of an error that has none of its own.

    A stream of one container is read by itself: what another one prints meanwhile does not end its traceback.
    """
    open_errors: set[tuple[str, str, str, str]] = set()
    result = []
    for entry in entries:
        key = (entry.resource, entry.instance, entry.container, entry.log)
        if entry.source not in {"container", "console"}:
            result.append(entry)
            continue
        level = level_of(entry.text) if entry.severity in {"", "DEFAULT"} else entry.severity
        if level:
            (open_errors.add if level in _ERRORS else open_errors.discard)(key)
            result.append(entry)
            continue
        if _TRACEBACK.match(entry.text) or _FATAL.match(entry.text):
            open_errors.add(key)
        elif _PROGRESS.search(entry.text):
            open_errors.discard(key)
        result.append(replace(entry, severity="ERROR") if key in open_errors else entry)
    return result
