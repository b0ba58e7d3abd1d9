"""The faults that are on: kept in the data directory, counted down as they strike, told to the containers.

One fault of a kind at a time: another of the same kind takes its place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from bezel.localcloud.core.paths import write_atomically
from bezel.localcloud.faults.kinds import KINDS, Value
from bezel.localcloud.faults.parse import FaultError, checked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_FILE = "faults.json"
_CONTAINER_FILE = "container-faults.json"


@dataclass(frozen=True)
class Fault:
    """A fault that is on.

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
        """Whether a request is one of those that it is about."""
        wanted = self.values.get("method"), self.values.get("path")
        return self.values.get("at") == at and wanted[0] in {"*", method} and fnmatchcase(path, str(wanted[1]))

    @property
    def strikes(self) -> bool:
        """Whether the next one that matches is struck: those before it pass, and so do those after the last."""
        return self.met >= self.number("after") and not self.spent

    @property
    def spent(self) -> bool:
        """Whether it has struck as often as it was to."""
        return self.values.get("count", 0) != 0 and self.met >= self.number("after") + self.number("count")

    def shown(self) -> dict[str, Any]:
        """As the API and the file show it."""
        counted = {"met": self.met} if "count" in self.values else {}
        return {"kind": self.kind, "parameters": dict(self.values)} | counted


class Faults:
    """Everything that is to go wrong in one data directory."""

    def __init__(self, root: Path) -> None:
        """Take up what is on from before a restart.

        Args:
            root: The data directory.
        """
        self._file = root / _FILE
        self.container_file = root / _CONTAINER_FILE
        self._on: dict[str, Fault] = _read(self._file)
        self._listeners: list[Callable[[], None]] = []
        self._tell_containers()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call something now and at each change."""
        self._listeners.append(listener)
        listener()

    def all(self) -> list[Fault]:
        """What is on, in the order in which it was put on."""
        return list(self._on.values())

    def find(self, kind: str) -> Fault | None:
        """The fault of a kind, if it is on."""
        return self._on.get(kind)

    def add(self, kind: str, given: object) -> Fault:
        """Put a fault on, in place of one of the same kind.

        Raises:
            FaultError: There is no such kind, or a parameter is wrong.
        """
        fault = Fault(kind, checked(kind, given))
        self._on.pop(kind, None)
        self._on[kind] = fault
        self._changed()
        return fault

    def clear(self, kind: str = "") -> list[str]:
        """Take one fault off, or all; the kinds that were on.

        Raises:
            FaultError: That one is not on.
        """
        if kind and kind not in self._on:
            on = ", ".join(self._on) or "none"
            raise FaultError(f"{kind} is not on, so there is nothing to clear. On at the moment: {on}.")
        cleared = [kind] if kind else list(self._on)
        for name in cleared:
            del self._on[name]
        self._changed()
        return cleared

    def strike(self, at: str, method: str, path: str) -> list[Fault]:
        """The faults that the next request meets; it counts for each that it matches."""
        return [fault for fault in self.all() if fault.matches(at, method, path) and self._met(fault)]

    def strike_operation(self, api: str) -> str:
        """The kind of fault that the next operation of an API meets, or ""."""
        for kind in ("operation-never-ends", "operation-fails-late"):
            fault = self._on.get(kind)
            if fault is not None and fault.values["api"] == api and self._met(fault):
                return kind
        return ""

    def _met(self, fault: Fault) -> bool:
        counted = replace(fault, met=fault.met + 1)
        # Without a limit the count says nothing that the next request would need.
        if fault.strikes and not counted.values["count"]:
            return True
        if counted.spent and KINDS[fault.kind].place == "requests":
            del self._on[fault.kind]
        else:
            # Operations that are struck stay so until the fault is cleared.
            self._on[fault.kind] = counted
        self._changed()
        return fault.strikes

    def _changed(self) -> None:
        write_atomically(self._file, _json([fault.shown() for fault in self.all()]))
        self._tell_containers()
        for listener in self._listeners:
            listener()

    def _tell_containers(self) -> None:
        told = [fault for fault in self.all() if KINDS[fault.kind].place == "container"]
        content = _json([{"kind": fault.kind, **fault.values} for fault in told])
        # An unchanged file is left alone: containers look at its time.
        if not self.container_file.exists() or self.container_file.read_bytes() != content:
            write_atomically(self.container_file, content)


def _read(file: Path) -> dict[str, Fault]:
    """What the file of an earlier run says; what this version does not know is left out."""
    found: dict[str, Fault] = {}
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        return found
    for one in content if isinstance(content, list) else []:
        try:
            fault = Fault(one["kind"], checked(one["kind"], one["parameters"]), int(one.get("met", 0)))
        except (FaultError, KeyError, TypeError, ValueError):
            continue
        found[fault.kind] = fault
    return found


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()
