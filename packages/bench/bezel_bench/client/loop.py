"""Event loop of one sender: epoll, timers exact to some tens of microseconds, idle work, and its own lag.

Not asyncio, because only a loop that reads the sockets itself gets the kernel's receive stamps (SO_TIMESTAMPNS), which
stay right while the loop or the machine is busy; and timers of whole milliseconds would be an error of the schedule.
Leaves out the content of reads and writes (`bezel_bench.client.connection`).
"""

import heapq
import select
from array import array
from collections.abc import Callable
from time import monotonic_ns, sleep, time_ns
from typing import Final

from bezel_bench.client.stalls import Stalls

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
ERROR: Final = select.EPOLLERR
"""The connection broke, or the kernel's stamp of something sent has come."""
ENDS: Final = select.EPOLLRDHUP | select.EPOLLHUP | ERROR
"""The other side sends nothing more, or an `ERROR`."""
ARRIVES: Final = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
"""Edge-triggered: else the kernel checks every socket again that was just read. A reader that leaves data unread
re-arms by `Loop.change`; the end of a connection is read after the data before it."""
# Sockets served before the timers are checked again: about 2 ms of work.
_BATCH: Final = 128
# epoll rounds up to whole milliseconds: select, which takes microseconds, waits for the rest.
_COARSE_NS: Final = 2_000_000
# select(2) refuses file descriptors from FD_SETSIZE on.
_SELECTED_FILES: Final = 1024
# A shorter rest is not worth a sleep.
_SHORTEST_NS: Final = 100_000
Ready = Callable[[int], None]
TICK_NS: Final = 10_000_000
"""How often the loop wakes for nothing else (10 ms): the lateness of each is one observation."""


class Lag:
    """Lateness of the loop's ticks."""

    def __init__(self) -> None:
        self._late = array("q")

    def tick(self, due: int, now: int) -> None:
        """Take one observation: when the loop should have woken and when it did (ns)."""
        self._late.append(max(0, now - due))

    def clear(self) -> None:
        """Discard the observations before the clock started."""
        del self._late[:]

    @property
    def p99_ms(self) -> float:
        """Return the 99th percentile (nearest rank); 0 before the first tick."""
        late = sorted(self._late)
        return late[-(-len(late) * 99 // 100) - 1] / 1e6 if late else 0.0

    @property
    def max_ms(self) -> float:
        """Return the largest lateness; 0 before the first tick."""
        return max(self._late, default=0) / 1e6


class Loop:
    """Serves watched sockets, then timers, then idle work, until it is stopped.

    Attributes:
        offset: CLOCK_MONOTONIC less CLOCK_REALTIME (ns), as of the last tick.
        lag: The lateness of its ticks.
        stalls: The part of it that is the machine's doing.
        rest: After sockets were served, none is read for this long (ns), unless a timer is due: see
            `bezel_bench.client.read_coalescing`.
        since: What is read in this round arrived after this instant (ns).
        stamped: Whether the kernel stamps arrivals; after one read without a stamp, the loop rests no more.
    """

    def __init__(self, idle: Callable[[], bool]) -> None:
        """Args: idle: does a little of the pending work, if there is any; returns whether more is pending."""
        self.lag = Lag()
        self.stalls = Stalls(TICK_NS)
        self.offset = _offset()
        self.rest = self.since = 0
        self.stamped = True
        self._idle = idle
        self._epoll = select.epoll()
        self._watched: dict[int, Ready] = {}
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._tick = 0
        self._ticks: list[Callable[[int], None]] = []

    def close(self) -> None:
        """Close the loop's own file descriptors."""
        self._epoll.close()
        self.stalls.close()

    def watch(self, file: int, events: int, ready: Ready) -> None:
        """Watch a socket; `ready` is called with its events."""
        self._watched[file] = ready
        self._epoll.register(file, events)

    def change(self, file: int, events: int, ready: Ready) -> None:
        """Change the events or the callback of a watched socket."""
        self._watched[file] = ready
        self._epoll.modify(file, events)

    def forget(self, file: int) -> None:
        """Stop watching a socket."""
        if self._watched.pop(file, None):
            self._epoll.unregister(file)

    def at(self, instant: int, call: Callable[[], None]) -> None:
        """Call once at the instant (ns)."""
        self._count += 1
        heapq.heappush(self._timers, (instant, self._count, call))

    def each_tick(self, call: Callable[[int], None]) -> None:
        """Call with the instant at every tick."""
        self._ticks.append(call)

    def run(self, finished: Callable[[], bool]) -> None:
        """Serve until `finished` returns true; it is checked after every round."""
        poll, watched, timers = self._epoll.poll, self._watched, self._timers
        busy = True
        happened: list[tuple[int, int]] = []
        self._tick = monotonic_ns() + TICK_NS
        while not finished():
            now = monotonic_ns()
            if now >= self._tick:
                self._on_tick(now)
            while timers and timers[0][0] <= now:
                heapq.heappop(timers)[2]()
            if busy:
                happened = poll(0, _BATCH)
            else:
                if self.rest and happened and self.stamped:
                    self._rest(now)
                waits = monotonic_ns()
                happened = self._wait()
                if (woken := monotonic_ns()) - waits > _SHORTEST_NS:
                    # Nothing had arrived, and what did woke the loop at once: else the machine was busy (`stalls`).
                    self.since = now = woken
            for file, event in happened:
                # A socket served earlier in this round may have closed this one.
                if (ready := watched.get(file)) is not None:
                    ready(event)
            if len(happened) < _BATCH:
                # All that had arrived by then was read.
                self.since = now
            busy = self._idle()

    def _rest(self, begun: int) -> None:
        until = min(begun + self.rest, self._due())
        if (left := until - monotonic_ns()) > _SHORTEST_NS:
            sleep(left / 1e9)

    def _due(self) -> int:
        return min(self._tick, self._timers[0][0]) if self._timers else self._tick

    def _wait(self) -> list[tuple[int, int]]:
        left = self._due() - monotonic_ns()
        if left <= 0:
            return []
        if left > _COARSE_NS:
            return self._epoll.poll((left - _COARSE_NS // 2) / 1e9, _BATCH)
        if self._epoll.fileno() >= _SELECTED_FILES:
            return self._epoll.poll(left / 1e9, _BATCH)  # to the next millisecond
        select.select((self._epoll,), (), (), left / 1e9)
        return self._epoll.poll(0, _BATCH)

    def _on_tick(self, now: int) -> None:
        self.lag.tick(self._tick, now)
        self.stalls.tick(now - self._tick)
        self._tick = now + TICK_NS
        self.offset = _offset()
        for call in self._ticks:
            call(now)


def _offset() -> int:
    """Return CLOCK_MONOTONIC less CLOCK_REALTIME; the tightest of three reads, as one may be interrupted."""
    looks = []
    for _ in range(3):
        before, wall, after = monotonic_ns(), time_ns(), monotonic_ns()
        looks.append((after - before, (before + after) // 2 - wall))
    return min(looks)[1]
