"""One process that sends load: connects, waits for the start, sends each request when due, returns the samples.

Owns the timing of requests (by the plan's windows and instants), their deadlines, and the consequence of a broken
connection. Leaves out the plan (`bezel_bench.load.patterns`), several processes (`bezel_bench.client.workers`) and
every figure.
"""

import contextlib
import gc
import itertools
import math
import random
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from time import monotonic_ns
from typing import Final

from bezel_base.errors import UserError
from bezel_bench.client.connection import Connection
from bezel_bench.client.loop import Loop
from bezel_bench.client.pool import Pool, allow_files
from bezel_bench.client.read_coalescing import LONGEST_NS, rest_after
from bezel_bench.client.response_buffer import Backlog, ResponseBuffer
from bezel_bench.client.route import Route
from bezel_bench.client.silence import Silence
from bezel_bench.load.patterns import User, instants, user_windows
from bezel_bench.load.plan import Bodies, Burst, Constant, Load, Poisson, ReplyingBodies, Staged, TokenSource, is_closed
from bezel_bench.result import sample as kinds
from bezel_bench.result.failures import connection_problem, of_broken, of_connecting
from bezel_bench.result.sample import ClientHealth, Measured, Sample
from bezel_bench.result.spill import Spill

_SECOND: Final = 1_000_000_000
_OK: Final = 200
# After a failure without a response a user waits, so that requests to a lost server are not sent in a tight loop.
_PAUSE_NS: Final = 100_000_000
# So many failures in a row, and of every user so many, end a load: the rest would say nothing else.
_FAILURES_IN_A_ROW: Final = 200
_FAILURES_A_USER: Final = 4
# A share of failed requests is one of at least so many.
_LEAST_ENDED: Final = 50
# Idle connections that an open loop holds ready beyond those in use.
_SPARE: Final = 16
_MOST_AHEAD: Final = 1024


class Sender:
    """One process's share of a load: `run`, or `connect` and then `send`.

    Attributes:
        samples: One for each request begun, in the order of their beginning.
    """

    # Slots, as Python finds each of more than 30 attributes slower.
    __slots__ = (
        *("_asking", "_backlog", "_began", "_bodies", "_cancel_ns", "_cancel_share", "_cancelled", "_coming"),
        *("_conversation", "_crowd", "_done", "_due_later", "_ends", "_failed", "_failed_share", "_failing", "_fails"),
        *("_hangs", "_headers", "_interrupted", "_limit", "_load", "_loop", "_most_at_once", "_most_failed"),
        *("_most_failing", "_places", "_pool", "_replying", "_rest", "_route", "_silence", "_spill", "_think"),
        *("_turns", "_users", "_waited", "_worker", "samples"),
    )

    def __init__(
        self, load: Load, bodies: Bodies, headers: TokenSource, worker: int = 0, spill: Path | None = None
    ) -> None:
        """Resolve the server's name, without connecting.

        Args:
            load: The load of all workers together.
            bodies: The bodies of the requests.
            headers: Source of the headers that authorise them.
            worker: The number of this worker.
            spill: A file for the samples so far, readable after a kill.

        Raises:
            UserError: The server has no address.
        """
        self.samples: list[Sample] = []
        self._load, self._bodies, self._headers, self._worker = load, bodies, headers, worker
        self._limit = math.inf if load.stop.requests is None else load.stop.requests
        self._route = Route(load.target)
        self._spill = Spill(spill) if spill else None
        self._backlog = Backlog(self._keep if spill else None)
        self._loop = Loop(self._backlog.read_one)
        self._loop.each_tick(self._expire)
        self._pool = Pool(lambda: Connection(self._loop, self._route, self), self._ask, self._fail_connecting)
        self._users: list[User] = []
        if is_closed(load.pattern):
            windows = user_windows(load)
            self._users = [User(n, windows[n]) for n in range(worker, len(windows), load.workers)]
        # In the order of sending, which is the order of deadlines.
        self._asking: dict[ResponseBuffer, Connection] = {}
        self._conversation, self._turns = worker, bodies.turns
        # Users who may send more, or 1 for an open loop that may.
        self._coming = 0
        self._began = self._done = 0
        self._replying = bodies if isinstance(bodies, ReplyingBodies) else None
        self._rest = LONGEST_NS
        # No more is sent: the load was interrupted, or the server hangs or fails too many requests.
        self._ends = self._interrupted = False
        self._silence = Silence(round(load.deadline_seconds * _SECOND))
        self._hangs = False
        self._failing, self._fails = 0, False
        self._crowd = 0
        self._cancel_share, self._cancel_ns = load.cancel_share, round(load.cancel_seconds * _SECOND)
        self._failed, self._cancelled, self._failed_share = 0, 0, 0.0
        self._most_failed = math.inf if load.max_failed_share is None else load.max_failed_share
        # Requests that are due and wait for a place, of those that this worker may have under way.
        self._due_later: deque[ResponseBuffer] = deque()
        self._waited, self._places = 0, _share(load.max_concurrency, load, worker)
        self._most_at_once = _share(load.max_in_flight, load, worker)
        self._most_failing = max(_FAILURES_IN_A_ROW, _FAILURES_A_USER * len(self._users))
        self._think = round(load.think_seconds * _SECOND)

    def run(self) -> Measured:
        """Connect, then send at once: the whole life of a load's only sender."""
        self.connect()
        with gc_disabled():
            return self.send(monotonic_ns())

    def connect(self) -> None:
        """Open the connections that the load begins with.

        Raises:
            UserError: None could be opened, or the system allows too few open files.
        """
        wanted = len(self._users) or _ahead(self._load)
        allow_files(wanted)
        self._pool.fill(wanted)
        self._loop.run(lambda: self._pool.is_filled or self._interrupted)
        if not self._pool.made and self._pool.error:
            raise UserError(connection_problem(self._load.target.url, self._pool.error))

    def send(self, began: int) -> Measured:
        """Send the load from an instant (ns) on, wait for every response, and return the measurement."""
        connected = self._pool.made
        try:
            cpu = self._send_all(began)
        finally:
            opened: list[Connection | Pool | Loop | Spill | None]
            opened = [*self._asking.values(), self._pool, self._loop, self._spill]
            for part in opened:
                if part:
                    part.close()
        for sample in self.samples:
            if sample.detail:
                sample.detail = self._route.without_secrets(sample.detail)
        ended = max((sample.done for sample in self.samples), default=monotonic_ns())
        wall = (ended - began) / _SECOND
        health = ClientHealth(
            workers=1,
            cpu_seconds=cpu,
            busiest_cpu_share=cpu / wall if wall > 0 else 0.0,
            wall_seconds=wall,
            loop_lag_p99_ms=self._loop.lag.p99_ms,
            loop_lag_max_ms=self._loop.lag.max_ms,
            stall_p99_ms=self._loop.stalls.p99_ms,
            connections=self._pool.made,
            reconnections=self._pool.made - connected,
            connect_failures=self._pool.failed,
            backlog=self._backlog.most,
            interrupted=self._interrupted,
            silent_seconds=self._silence.lasted / _SECOND if self._hangs else 0.0,
            failing_requests=self._failing if self._fails else 0,
            failed_share=self._failed_share,
            crowd=self._crowd,
            waited=self._waited,
        )
        return Measured(sorted(self.samples, key=attrgetter("index")), began, ended, health)

    def _send_all(self, began: int) -> float:
        """Send, and wait for every response; return the CPU seconds used."""
        self._began = began
        if self._spill:
            self._spill.begin(began)
        if self._users:
            for user in self._users:
                self._coming += 1
                self._loop.at(began, partial(self._next, user, began))
        else:
            plan = instants(self._load.pattern, self._load.stop, self._load.prompts.seed)
            self._pool.keep_spare(_SPARE)
            self._coming = 1
            self._prepare(itertools.islice(plan, self._worker, None, self._load.workers))
        self._loop.lag.clear()
        self._loop.stalls.clear()
        cpu = time.process_time()
        self._loop.run(self._is_over)
        self._abandon()
        self._backlog.read_all()
        return time.process_time() - cpu

    def interrupt(self) -> None:
        """Send nothing more and wait for nothing; may be called by a signal's handler."""
        self._interrupted = self._ends = True

    def progress(self) -> tuple[int, int, int, int]:
        """Return requests begun, ended, and awaited, and for how long (ns) none of these got a response."""
        awaited = len(self._asking)
        return len(self.samples), self._done, awaited, self._silence.so_far(monotonic_ns()) if awaited else 0

    def _is_over(self) -> bool:
        """Whether the load was ended, or no request is to be made or to be answered."""
        return self._ends or not (self._coming or self._asking or self._pool.waiting or self._due_later)

    # Notifications of a connection.

    def on_open(self, connection: Connection) -> None:
        """The connection can send."""
        self._pool.add_opened(connection)

    def on_open_failure(self, connection: Connection, error: OSError) -> None:
        """The connection could not be made."""
        self._pool.drop_unopened(connection, error)

    def on_close(self, connection: Connection) -> None:
        """The server closed the connection while it was idle."""
        self._pool.drop_closed(connection)

    def more(self, answer: ResponseBuffer) -> None:
        """Enough of a response has arrived to be read."""
        self._backlog.add(answer)

    def on_response(self, connection: Connection, answer: ResponseBuffer, *, kept: bool) -> None:
        """A response is complete; `kept` is whether the connection can send another request."""
        del self._asking[answer]
        self._silence.hears(monotonic_ns())
        if kept:
            self._pool.give(connection)
        self._finish(answer)

    def on_break(self, answer: ResponseBuffer, *, begun: bool, error: Exception | None) -> None:
        """The connection ended before the response did."""
        del self._asking[answer]
        if failure := of_broken(error, begun=begun, status=answer.sample.status):
            answer.failure = failure
        else:
            answer.cut = True
        if begun:
            self._silence.hears(monotonic_ns())
        else:
            self._listen(answer)
        self._finish(answer)

    # Sending.

    def _next(self, user: User, planned: int) -> None:
        """Send a user's next request, which is ready to be sent at `planned`."""
        ready = planned - self._began
        begin = None if self._ends else user.present(ready)
        if begin is None:
            self._coming -= 1
            return
        if begin > ready:
            later = begin + self._began
            self._loop.at(later, partial(self._next, user, later))
            return
        if not user.turn:
            user.conversation, self._conversation = self._conversation, self._conversation + self._load.workers
        index = user.conversation * self._turns + user.turn
        if index >= self._limit:
            self._coming -= 1
            return
        if self._replying:
            body = self._replying.reply(user.conversation, user.turn, user.said)
        else:
            body = self._bodies.body(user.conversation, user.turn)
        sample = Sample(index, self._worker, user.number, user.turn, body.group, planned)
        sample.asked_tokens = body.asked_tokens
        user.turn = (user.turn + 1) % self._turns
        # (No keyword: for a class's it costs a dictionary.)
        self._send(ResponseBuffer(sample, body.data, user, self._replying is not None))

    def _prepare(self, plan: Iterator[float]) -> None:
        """Make the open loop's next request, before it is due."""
        at = next(plan, None)
        if at is None or self._ends:
            self._coming = 0
            return
        index, self._conversation = self._conversation, self._conversation + self._load.workers
        body = self._bodies.body(index)
        sample = Sample(index, self._worker, group=body.group, planned=self._began + round(at * _SECOND))
        sample.asked_tokens = body.asked_tokens
        answer = ResponseBuffer(sample, body.data)
        self._loop.at(sample.planned, partial(self._due, answer, plan))

    def _due(self, answer: ResponseBuffer, plan: Iterator[float]) -> None:
        if (under_way := len(self._asking) + len(self._pool.waiting)) >= self._most_at_once:
            self._crowd, self._coming = under_way, 0
            return
        self._send(answer)
        self._prepare(plan)

    def _send(self, answer: ResponseBuffer) -> None:
        answer.sample.begun = monotonic_ns()
        self.samples.append(answer.sample)
        if self._places == math.inf or len(self._asking) + len(self._pool.waiting) < self._places:
            self._pool.want(answer)
        else:
            self._waited += 1
            self._due_later.append(answer)

    def _ask(self, connection: Connection, answer: ResponseBuffer) -> None:
        if not self._asking:
            self._silence.waits(monotonic_ns())
        self._asking[answer] = connection
        connection.ask(self._route.request(self._headers(), answer.body), answer)
        answer.body = b""
        if self._cancel_share and self._is_cancelled(answer.sample.index):
            self._loop.at(answer.sample.sent + self._cancel_ns, partial(self._hang_up, answer))

    def _is_cancelled(self, index: int) -> bool:
        # The same requests in every run of a seed, whichever process sends them.
        dice = random.Random(f"{self._load.prompts.seed}/cancel/{index}")  # noqa: S311 - no secret
        return dice.random() < self._cancel_share

    def _hang_up(self, answer: ResponseBuffer) -> None:
        """End a request whose client leaves, unless its response is complete."""
        if connection := self._asking.pop(answer, None):
            connection.close()
            self._cancelled += 1
            self._fail(answer, (kinds.CANCELLED, ""), listens=False)

    def _keep(self, sample: Sample) -> None:
        """Write an ended request to the spill file, so that it survives a kill."""
        if sample.detail:
            sample.detail = self._route.without_secrets(sample.detail)
        if self._spill:
            self._spill.add(sample)

    # Ends of requests.

    def _fail_connecting(self, answer: ResponseBuffer, error: OSError) -> None:
        self._fail(answer, of_connecting(error), listens=True)

    def _fail(self, answer: ResponseBuffer, failure: tuple[str, str], *, listens: bool) -> None:
        answer.failure, answer.at = failure, monotonic_ns()
        if listens:
            self._listen(answer)
        self._finish(answer)

    def _listen(self, answer: ResponseBuffer) -> None:
        """Check, after a request failed without a response, whether the server hangs."""
        if self._silence.misses(answer.sample.sent or answer.sample.planned, answer.at) and self._has_more(answer):
            self._hangs = self._ends = True

    def _has_more(self, answer: ResponseBuffer) -> bool:
        """Whether more is to be sent after a response; else each awaited request has its own deadline."""
        planned = self._coming and self._conversation * self._turns < self._limit
        present = answer.user is None or answer.user.present(answer.at - self._began) is not None
        return not self._ends and bool(self._due_later or (planned and present))

    def _finish(self, answer: ResponseBuffer) -> None:
        self._done += 1
        status, failure = answer.sample.status, answer.failure[0]
        if status == _OK and not (answer.cut or failure):
            self._failing = 0
        elif failure != kinds.CANCELLED and not self._ends:
            self._failing += 1
            self._failed += 1
            judged = self._done - self._cancelled
            if self._failed > self._most_failed * max(judged, _LEAST_ENDED) and self._has_more(answer):
                self._failed_share, self._ends = self._failed / judged, True
            if self._failing >= self._most_failing and self._has_more(answer):
                self._fails = self._ends = True
        if self._rest:
            self._rest = self._loop.rest = rest_after(self._rest, answer.sample, answer.at)
        if user := answer.user:
            if self._replying:
                self._hear(user, answer)
            if wait := self._think if status or failure == kinds.CANCELLED else max(self._think, _PAUSE_NS):
                self._loop.at(answer.at + wait, partial(self._next, user, answer.at + wait))
            else:
                self._next(user, answer.at)
        self._backlog.add(answer)
        if self._due_later and not self._ends:
            self._pool.want(self._due_later.popleft())

    def _hear(self, user: User, answer: ResponseBuffer) -> None:
        """Keep a response for the next turn; without one its conversation ends."""
        answer.read()
        if answer.sample.failure or not user.turn:
            user.turn = 0
            user.said.clear()
        else:
            user.said.append(answer.text)

    def _expire(self, now: int) -> None:
        """Give up requests past their deadline."""
        self._pool.expire(now)
        seconds = self._load.deadline_seconds
        earliest = now - round(seconds * _SECOND)
        late = [*itertools.takewhile(lambda asked: asked[0].sample.sent <= earliest, self._asking.items())]
        for answer, connection in late:
            kind = kinds.TIMEOUT if answer.sample.status else kinds.NO_ANSWER
            self._give_up(answer, connection, (kind, f"not answered within {seconds:g} s"))

    def _give_up(self, answer: ResponseBuffer, connection: Connection, failure: tuple[str, str]) -> None:
        del self._asking[answer]
        connection.close()
        self._fail(answer, failure, listens=not self._ends)

    def _abandon(self) -> None:
        """End the requests left open by an interruption, which is not the server's failure, or by its silence."""
        for answer, connection in [*self._asking.items()]:
            self._give_up(answer, connection, self._why_abandoned(answer))
        while waiting := self._pool.waiting or self._due_later:
            answer = waiting.popleft()
            self._fail(answer, self._why_abandoned(answer), listens=False)

    def _why_abandoned(self, answer: ResponseBuffer) -> tuple[str, str]:
        if self._interrupted:
            return kinds.CLIENT, "interrupted by the user"
        kind = kinds.TIMEOUT if answer.sample.status else kinds.NO_ANSWER
        if self._failed_share:
            return kinds.CLIENT, f"given up, as {self._failed_share:.1%} of the requests had failed (--max-failed)"
        if self._fails:
            return kind, f"given up, as the last {self._failing} requests had all failed"
        return kind, f"given up, as no request at all was answered for {self._silence.lasted / _SECOND:.3g} s"


@contextlib.contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable the garbage collector: a collection takes tens of milliseconds in a process with many samples."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _share(most: int | None, load: Load, worker: int) -> float:
    """Return a worker's share of the most requests that a load may have under way at once; infinite without a limit."""
    return math.inf if most is None else most // load.workers + (worker < most % load.workers)


def _ahead(load: Load) -> int:
    """Return the connections that an open loop's worker opens before the start: enough for responses of one second."""
    match load.pattern:
        case Constant(rate) | Poisson(rate) | Burst(rate, _):
            level = rate
        case Staged(_, stages):
            level = max(stage.level for stage in stages)
        case _:
            level = 0.0
    max_ahead = _MOST_AHEAD if load.stop.requests is None else min(_MOST_AHEAD, load.stop.requests)
    return min(max_ahead, max(_SPARE, math.ceil(level / load.workers)))
