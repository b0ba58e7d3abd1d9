"""Report of what the engine waits for while nothing happens: the operations under way, and for how long.

The published provider tries a refused request again for minutes without a word, and in a log file the engine shows
dots. Reads the engine's event log, which it writes as it goes; on a terminal the engine's own display shows the same,
and there is no report. Leaves out limits: those of `services/bezel_services/limits.py` end each wait.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bezel.engine.events.reader import Tail
from bezel_base.console import say

QUIET_SECONDS = 60.0
"""Time without an event until the first report, and from one report to the next."""
_LOOK_SECONDS = 1.0
_READING = "reading"
_VERBS = {
    "create": "creating",
    "create-replacement": "creating",
    "update": "updating",
    "delete": "deleting",
    "delete-replaced": "deleting",
    "read": _READING,
    "refresh": _READING,
    "import": _READING,
}


@dataclass(frozen=True)
class _UnderWay:
    """An operation under way: what is done to which resource, and since when."""

    verb: str
    resource: str
    since: float

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


@dataclass
class Waiting:
    """The operations under way, from the events of a run.

    Attributes:
        now: Seconds since an arbitrary moment.
        show: Prints a line.
        each: Whether the begin and the end of each operation are shown too.
    """

    events: Path
    now: Callable[[], float] = time.monotonic
    show: Callable[[str], None] = say
    each: bool = False
    under_way: dict[str, _UnderWay] = field(default_factory=dict)
    _tail: Tail = field(init=False)
    _quiet_since: float = 0.0

    def __post_init__(self) -> None:
        self._quiet_since = self.now()
        self._tail = Tail(self.events)

    def look(self) -> None:
        """Read the new events; report what is under way if there was none for a while."""
        events = self._tail.events()
        for event in events:
            self._take(event)
        if events:
            self._quiet_since = self.now()
        elif self.under_way and self.now() - self._quiet_since >= QUIET_SECONDS:
            self._quiet_since = self.now()
            for each in self.under_way.values():
                self.show(f"  no progress: still {each} ({self.now() - each.since:.0f} s)")

    def _take(self, event: dict[str, Any]) -> None:
        if begun := event.get("resourcePreEvent"):
            metadata = begun["metadata"]
            if verb := _VERBS.get(str(metadata["op"])):
                kind, _, name = str(metadata["urn"]).rpartition("::")
                resource = f"{kind.rpartition('$')[2].rpartition('::')[2]} {name}"
                self.under_way[metadata["urn"]] = _UnderWay(verb, resource, self.now())
                if self.each and verb != _READING:
                    self.show(f"  {self.under_way[metadata['urn']]}")
        for key, word in (("resOutputsEvent", "done"), ("resOpFailedEvent", "failed")):
            ended = event.get(key)
            started = self.under_way.pop(ended["metadata"]["urn"], None) if ended else None
            if started and self.each and (word == "failed" or started.verb != _READING):
                self.show(f"  {word}: {started} ({self.now() - started.since:.0f} s)")


@contextmanager
def report_waiting(waiting: Waiting) -> Iterator[None]:
    """Report, in a thread of its own, while the block runs."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            waiting.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if waiting.each:
            waiting.look()  # the end of a short run
