"""Report of what the engine waits for while nothing happens: the operations under way, and for how long.

The published provider tries a refused request again for minutes without a word, and in a log file the engine shows
dots. Reads the engine's event log, which it writes as it goes; on a terminal the engine's own display shows the same,
and there is no report. Leaves out limits: those of `stacks/bezel_stacks/limits.py` end each wait.
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
_VERBS = {
    "create": "creating",
    "create-replacement": "creating",
    "update": "updating",
    "delete": "deleting",
    "delete-replaced": "deleting",
    "read": "reading",
    "refresh": "reading",
    "import": "reading",
}


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
    under_way: dict[str, tuple[str, float]] = field(default_factory=dict)
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
            for text, since in self.under_way.values():
                self.show(f"  no progress: still {text} ({self.now() - since:.0f} s)")

    def _take(self, event: dict[str, Any]) -> None:
        if begun := event.get("resourcePreEvent"):
            metadata = begun["metadata"]
            if verb := _VERBS.get(str(metadata["op"])):
                kind, _, name = str(metadata["urn"]).rpartition("::")
                self.under_way[metadata["urn"]] = (
                    f"{verb} {kind.rpartition('$')[2].rpartition('::')[2]} {name}",
                    self.now(),
                )
                if self.each and verb != "reading":
                    self.show(f"  {self.under_way[metadata['urn']][0]}")
        for key, word in (("resOutputsEvent", "done"), ("resOpFailedEvent", "failed")):
            if (ended := event.get(key)) and (started := self.under_way.pop(ended["metadata"]["urn"], None)):
                text, since = started
                if self.each and (word == "failed" or not text.startswith("reading")):
                    self.show(f"  {word}: {text} ({self.now() - since:.0f} s)")


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
