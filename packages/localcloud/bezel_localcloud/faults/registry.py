"""Active faults: stored in the data directory, counted down as they strike, written to the containers' file.

One fault of a kind is active at a time: another of the same kind replaces it.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem
from bezel_localcloud.core.patterns import shell_pattern_fits
from bezel_localcloud.faults.kinds import KINDS, FaultError, Value, parse_parameters

_FILE = "faults.json"
_CONTAINER_FILE = "container-faults.json"


@dataclass(frozen=True)
class Fault:
    """An active fault.

    Attributes:
        values: Every parameter of its kind.
        met: Requests, or operations, that have matched it so far.
    """

    kind: str
    values: Mapping[str, Value]
    met: int = 0

    def number(self, name: str) -> float:
        """A parameter that is a number."""
        return float(self.values[name])

    def text(self, name: str) -> str:
        """A parameter that is a text."""
        return str(self.values[name])

    def matches(self, at: str, method: str, path: str) -> bool:
        """Whether a request matches the fault."""
        if self.values.get("at") != at or self.values["method"] not in {"*", method}:
            return False
        return shell_pattern_fits(self.text("path"), path)

    @property
    def strikes(self) -> bool:
        """Whether the next match is struck: matches before the first and after the last struck one pass."""
        return self.met >= self.number("after") and not self.is_spent

    @property
    def is_spent(self) -> bool:
        """Whether it has struck as often as its count allows."""
        return self.values.get("count", 0) != 0 and self.met >= self.number("after") + self.number("count")

    def as_json(self) -> dict[str, Any]:
        """JSON form of the API and of the file."""
        counted = {"met": self.met} if "count" in self.values else {}
        return {"kind": self.kind, "parameters": dict(self.values)} | counted


class Faults:
    """The active faults of one data directory."""

    def __init__(self, root: Path) -> None:
        """Load the faults that were active before a restart.

        Args:
            root: The data directory.
        """
        self._file = root / _FILE
        self.container_file = root / _CONTAINER_FILE
        self._on: dict[str, Fault] = _read(self._file)
        self._listeners: list[Callable[[], None]] = []
        self._write_container_file()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a listener now and at each change."""
        self._listeners.append(listener)
        listener()

    def all(self) -> list[Fault]:
        """Active faults in the order in which they were added."""
        return list(self._on.values())

    def find(self, kind: str) -> Fault | None:
        """The active fault of a kind, if any."""
        return self._on.get(kind)

    def add(self, kind: str, parameters: object) -> Fault:
        """Add a fault, in place of one of the same kind.

        Raises:
            FaultError: There is no such kind, or a parameter is wrong.
        """
        fault = Fault(kind, parse_parameters(kind, parameters))
        self._on.pop(kind, None)
        self._on[kind] = fault
        self._publish_change()
        return fault

    def clear(self, kind: str = "") -> list[str]:
        """Clear one fault, or all, and return the kinds that were active.

        Raises:
            FaultError: No fault of that kind is active.
        """
        if kind and kind not in self._on:
            repair = f"choose an active fault: {', '.join(self._on)}." if self._on else "add a fault first."
            raise FaultError(Problem("fault", kind, "is not active, so there is nothing to clear.", repair))
        cleared = [kind] if kind else list(self._on)
        for name in cleared:
            del self._on[name]
        self._publish_change()
        return cleared

    def strike(self, at: str, method: str, path: str) -> list[Fault]:
        """Return the faults that strike the next request; count it for each fault that it matches."""
        return [fault for fault in self.all() if fault.matches(at, method, path) and self._count_match(fault)]

    def strike_operation(self, api: str) -> str:
        """Return the kind of the fault that strikes the next operation of an API, or ""."""
        for kind in ("operation-never-ends", "operation-fails-late"):
            fault = self._on.get(kind)
            if fault is not None and fault.values["api"] == api and self._count_match(fault):
                return kind
        return ""

    def _count_match(self, fault: Fault) -> bool:
        counted = replace(fault, met=fault.met + 1)
        # Without a limit the count does not affect the next request, so it is not stored.
        if fault.strikes and not counted.values["count"]:
            return True
        if counted.is_spent and KINDS[fault.kind].place == "requests":
            del self._on[fault.kind]
        else:
            # Struck operations stay affected until the fault is cleared.
            self._on[fault.kind] = counted
        self._publish_change()
        return fault.strikes

    def _publish_change(self) -> None:
        # Each struck request changes a count, on the daemon's event loop: it does not wait for the disk.
        write_whole(self._file, _json([fault.as_json() for fault in self.all()]), mode=0o600, durable=False)
        self._write_container_file()
        for listener in self._listeners:
            listener()

    def _write_container_file(self) -> None:
        container_faults = [fault for fault in self.all() if KINDS[fault.kind].place == "container"]
        content = _json([{"kind": fault.kind, **fault.values} for fault in container_faults])
        # An unchanged file is not rewritten: containers watch its modification time.
        if not self.container_file.exists() or self.container_file.read_bytes() != content:
            write_whole(self.container_file, content, mode=0o600, durable=False)


def _read(file: Path) -> dict[str, Fault]:
    """Load the faults of an earlier run's file; kinds that this version does not know are left out."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = []
    faults: dict[str, Fault] = {}
    for row in content if isinstance(content, list) else []:
        with suppress(FaultError, KeyError, TypeError, ValueError):
            faults[row["kind"]] = Fault(
                row["kind"], parse_parameters(row["kind"], row["parameters"]), int(row.get("met", 0))
            )
    return faults


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()
