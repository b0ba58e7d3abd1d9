"""Stalls of a thread: how long the machine kept it from a CPU, whatever the thread itself had to do.

A client that is late because it has too much to do is the limit of its load. One that is late because other work had
the CPU is not, and only the kernel can tell the two apart: `/proc/thread-self/schedstat` counts the time on a CPU and
the time ready without one. Leaves out the consequence (`bezel_bench.result.cell_status`).
"""

import contextlib
import os
from array import array
from pathlib import Path
from typing import Final

_FILE: Final = Path("/proc/thread-self/schedstat")
_LONGEST_LINE: Final = 96


class Stalls:
    """Stalls of the thread that created it, one observation for each tick's time.

    An observation (ns) is the time for which the thread was ready without a CPU, or the lateness of the tick beyond the
    thread's own work, whichever is more: a hypervisor that takes the CPU away leaves no other trace.
    """

    def __init__(self, every: int, file: Path = _FILE) -> None:
        """Begin with what the kernel has counted so far.

        Args:
            every: The time between two ticks (ns).
            file: The kernel's file of the thread.
        """
        self._every = every
        self._observations = array("q")
        self._file = -1
        with contextlib.suppress(OSError):
            self._file = os.open(file, os.O_RDONLY)
        self._worked, self._waited = self._read() or (0, 0)

    def tick(self, late: int) -> None:
        """Take an observation at a tick that came `late` ns after it was due, as often as ticks were missed."""
        if (now := self._read()) is None:
            return
        worked, waited = now[0] - self._worked, now[1] - self._waited
        self._observations.extend([max(waited, late - worked, 0)] * (1 + late // self._every))
        self._worked, self._waited = now

    def clear(self) -> None:
        """Discard the observations before the clock started."""
        del self._observations[:]

    def close(self) -> None:
        """Close the kernel's file; no further observation is taken."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @property
    def p99_ms(self) -> float | None:
        """Return the 99th percentile (nearest rank); None before the first observation, or where none can be taken."""
        ordered = sorted(self._observations)
        return ordered[-(-len(ordered) * 99 // 100) - 1] / 1e6 if ordered else None

    def _read(self) -> tuple[int, int] | None:
        """Return the time on a CPU and the time ready without one (ns); None where the kernel does not tell."""
        if self._file < 0:
            return None
        try:
            worked, waited, *_ = os.pread(self._file, _LONGEST_LINE, 0).split()
            return int(worked), int(waited)
        except (OSError, ValueError):
            self.close()
            return None
