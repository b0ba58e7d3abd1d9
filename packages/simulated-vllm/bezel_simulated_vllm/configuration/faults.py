"""Faults injected into this instance's process, during its start and while it serves.

LOCALCLOUD_FAULTS names a JSON file with a list of objects, each with a "kind". Faults of a start are read once; those
of a serving server are read again whenever the file changes. Kinds that do not concern the container (an API that
returns 429, a front that drops connections) are ignored. Without the variable no fault is injected.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VARIABLE = "LOCALCLOUD_FAULTS"
_READ_SECONDS = 0.2
_UNASKED_SECONDS = 15.0  # until a server without a request counts as healthy: its probe only connects


@dataclass(frozen=True)
class StartFaults:
    """The faults of a start, before the port opens.

    Attributes:
        unknown: options that this image's vLLM does not have.
        out_of_memory: the engine's allocations exceed the accelerator's memory.
        disk_full: the compile cache cannot be written.
        slowness: factor by which loading and compiling take longer.
        never_listens: the process lives and never opens its port.
    """

    unknown: frozenset[str] = frozenset()
    out_of_memory: bool = False
    disk_full: bool = False
    slowness: float = 1.0
    never_listens: bool = False


def start_faults(environment: Mapping[str, str]) -> StartFaults:
    """Return the faults of a start from the file that LOCALCLOUD_FAULTS names.

    Raises:
        UserError: the file is not a list of faults.
    """
    orders = _read(Path(environment[VARIABLE])) if environment.get(VARIABLE) else []
    by_kind = {str(fault["kind"]): fault for fault in orders}
    unknown = [str(fault["argument"]) for fault in orders if fault["kind"] == "unknown-argument"]
    return StartFaults(
        unknown=frozenset("--" + name.lstrip("-").replace("_", "-") for name in unknown),
        out_of_memory="out-of-memory" in by_kind,
        disk_full="disk-full" in by_kind,
        slowness=float(by_kind.get("slow-start", {}).get("factor", 1)),
        never_listens="never-healthy" in by_kind,
    )


class ServingFaults:
    """The faults of a serving server; `clock` returns monotonic seconds."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._started = clock()
        self._answered: float | None = None
        self._read_at = float("-inf")
        self._changed = -1
        self._faults: list[dict[str, Any]] = []
        self._calls = 0
        self._before = 0

    def note_answer(self) -> None:
        """Note that a request was answered: with the first one, that of a probe, the container is healthy."""
        if self._answered is None:
            self._answered = self._clock()

    def crashes(self) -> bool:
        """Whether a crash loop's time from a healthy container to its crash has passed."""
        healthy = self._started + _UNASKED_SECONDS if self._answered is None else self._answered
        served = self._clock() - healthy
        return any(served >= float(fault.get("after_seconds", 0)) for fault in self._of_kind("crash-loop"))

    def take(self) -> int:
        """Count a call; return its number, from 1."""
        self._refresh()
        self._calls += 1
        return self._calls

    def kills_engine(self, number: int) -> bool:
        """Whether the engine dies at the call of that number; calls before the fault was set do not count."""
        nth = number - self._before
        return any(nth >= int(fault.get("after_requests", 1)) for fault in self._of_kind("engine-death"))

    def _of_kind(self, kind: str) -> list[dict[str, Any]]:
        self._refresh()
        return [fault for fault in self._faults if fault["kind"] == kind]

    def _refresh(self) -> None:
        if self._clock() - self._read_at < _READ_SECONDS:
            return
        self._read_at = self._clock()
        try:
            changed = self._path.stat().st_mtime_ns
            if changed == self._changed:
                return
            faults = _read(self._path)
        except FileNotFoundError:
            changed, faults = -1, []
        except (OSError, UserError):
            return  # half written: it is read again
        if faults != self._faults:
            self._before = self._calls
        self._changed, self._faults = changed, faults


def _read(path: Path) -> list[dict[str, Any]]:
    key, repair = f"{VARIABLE}={path}", 'write a list of objects with the key "kind".'
    try:
        orders = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise UserError(Problem(key, None, f"the file is not JSON: {error}.", repair)) from None
    if not isinstance(orders, list) or not all(isinstance(fault, dict) and "kind" in fault for fault in orders):
        raise UserError(Problem(key, None, "the file is not a list of faults.", repair))
    return orders
