"""Stack locks taken: `hold` waits for a stack's lock, keeps it while its block runs, and releases it.

Two takers never both win: a lock is created where none is, or replaces one generation of an ended owner's. Leaves out
the rules (`record`, `engine_locks`) and what is done under the lock.
"""

import contextlib
import os
import pwd
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import FrameType
from typing import NoReturn

from bezel.engine.locks import engine_locks
from bezel.engine.locks.held import TOKEN, HeldLock
from bezel.engine.locks.process import is_alive, started_at, this_process
from bezel.engine.locks.record import Lock, Owner, Run, Verdict, judge, object_name, parse, run_of, to_json
from bezel.engine.outcomes import LockedError
from bezel.engine.state.bucket import PreconditionError, StateBucket
from bezel.forge import Forge, RunState, forge_of
from bezel.rest import RestError
from bezel_base.console import note
from bezel_base.errors import Problem, UserError, one_line
from bezel_base.text.shell import shell_word
from bezel_catalog.quantities import duration_text

_LOOK_SECONDS = 5.0
_ASK_SECONDS = 20.0
_SAY_SECONDS = 60.0


@dataclass(frozen=True)
class Surroundings:
    """Process and forge of a taker; a test passes its own.

    Attributes:
        environ: The variables of the process.
        run_state: Asks the forge for a run's state.
        say: Gets each line of progress.
        clock: A monotonic clock in seconds.
        sleep: Waits that many seconds.
        now: The time.
    """

    environ: Mapping[str, str]
    run_state: Callable[[Run], RunState]
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def state_of(self, run: Run) -> RunState:
        """The state of a run; unknown if the forge fails, which is reported."""
        try:
            return self.run_state(run)
        except UserError as error:
            self.say(f"the forge does not say whether {run.url} has ended: {one_line(error)}")
            return "unknown"


def surroundings(environ: Mapping[str, str]) -> Surroundings:
    """Those of this process, with the forge that its variables name.

    Raises:
        ForgeError: A variable has an impossible value.
    """
    forge = forge_of(environ)
    return Surroundings(environ, lambda run: run_state(forge, run, run_of(environ)), note)


def run_state(forge: Forge | None, run: Run, own_run: Run | None) -> RunState:
    """The state of a run, asked at the forge.

    Raises:
        ForgeError: It refuses, or does not answer.
    """
    if forge is None:
        return "unknown"
    # Gitea counts the attempts of each job: those of two jobs cannot be compared.
    is_counted_alike = forge.facts.kind == "github" or (own_run is not None and own_run.job == run.job)
    attempt = run.attempt_number if is_counted_alike and run.attempt_number else None
    return forge.run_state(run.id, attempt=attempt, repository=run.repository, server_url=run.server)


@contextlib.contextmanager
def hold(
    states: StateBucket, project: str, stack: str, wait_seconds: float, around: Surroundings
) -> Iterator[HeldLock]:
    """Take a stack's lock, waiting for it, and release it at the end of the block, also on SIGTERM and SIGHUP.

    Args:
        states: The bucket of the states.
        project: The Pulumi project.
        stack: The stack.
        wait_seconds: Time limit of the wait for another owner.
        around: The process and its forge.

    Raises:
        LockedError: Another run, or an engine, holds it.
        RestError: The bucket cannot be used.
    """
    taker = _Taker(states, project, stack, around, around.clock() + wait_seconds)
    with _ending_on_signals():
        try:
            held_lock = taker.take()
            if held_lock.is_own:
                taker.await_engines(held_lock)
            yield held_lock
        finally:
            taker.release()


def owner_of(environ: Mapping[str, str]) -> Owner:
    """The owner that this process is."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = environ.get("USER") or str(os.getuid())
    return Owner(user, socket.gethostname(), this_process(), run_of(environ))


@dataclass
class _Taker:
    """One attempt to take a lock, with its deadline."""

    states: StateBucket
    project: str
    stack: str
    around: Surroundings
    end: float
    _written: Lock | None = None
    _held_lock: HeldLock | None = None
    _last_message: tuple[str, float] = ("", 0.0)
    _asked: tuple[Run | None, float, RunState] = (None, 0.0, "unknown")

    def take(self) -> HeldLock:
        """Wait for the lock and take it.

        Raises:
            LockedError: Another run holds it beyond the deadline.
            RestError: The bucket cannot be used.
        """
        own_lock = self._new_lock()
        while True:
            stored = self.states.read(self._name)
            if stored is None:
                if held_lock := self._put(own_lock, 0):
                    return held_lock
                continue
            current, generation = parse(stored[0]), stored[1]
            if current and current.token == self.around.environ.get(TOKEN):
                return HeldLock(self.states, current, generation, is_own=False)
            verdict = judge(current, own_lock.owner.run, is_alive=is_alive, run_state=self._state_of)
            owner = current.text if current else "an unknown owner"
            if not verdict.has_ended:
                self._wait(owner, verdict.reason, _locked_error(self.stack, owner, generation, verdict))
            elif held_lock := self._put(own_lock.taken_over(current), generation):
                self.around.say(f"took over the lock of {self.stack} from {owner}: {verdict.reason}")
                return held_lock

    def await_engines(self, held_lock: HeldLock) -> None:
        """Wait until no engine works on the stack, and remove the locks that ended runs' engines left.

        Raises:
            LockedError: An engine holds the stack beyond the deadline.
            RestError: The bucket cannot be used.
        """
        taken = self.around.clock()
        if held_lock.lock.after:
            # An ended run's engine may need this long to stop, whatever the deadline of the wait.
            self.end = max(self.end, taken + engine_locks.STOP_SECONDS + _LOOK_SECONDS)
        while locks := engine_locks.read_engine_locks(self.states, self.project, self.stack):
            for lock in locks:
                state = engine_locks.state_of(
                    lock,
                    held_lock.lock.after,
                    machine=held_lock.lock.owner.process.machine,
                    started_at=started_at,
                    seconds_since_takeover=self.around.clock() - taken,
                )
                if state != "left":
                    why = "the ended run's engine may be stopping" if state == "stopping" else "the engine's own lock"
                    self._wait(lock.text, why, _engine_locked(self.stack, lock))
                    break
                with contextlib.suppress(PreconditionError):
                    self.states.delete(lock.name, lock.generation)
                self.around.say(f"removed the engine's lock that the ended run left: {lock.text}")

    def release(self) -> None:
        """Release what was taken, or may have been: an answer can be lost, and a signal can come at any moment."""
        if self._held_lock is not None:
            self._held_lock.release(self.around.say)
        elif self._written is not None:
            with contextlib.suppress(RestError):
                stored = self.states.read(self._name)
                if stored and stored[0] == to_json(self._written):
                    self.states.delete(self._name, stored[1])

    @property
    def _name(self) -> str:
        return object_name(self.project, self.stack)

    def _new_lock(self) -> Lock:
        since = self.around.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        return Lock(self.project, self.stack, secrets.token_hex(16), since, owner_of(self.around.environ))

    def _put(self, lock: Lock, generation: int) -> HeldLock | None:
        """Write the lock in place of a generation, 0 for none; None if another run was faster."""
        self._written, content = lock, to_json(lock)
        try:
            states = self.states
            put = states.replace(self._name, content, generation) if generation else states.create(self._name, content)
        except PreconditionError:
            self._written = None
            return None
        self._held_lock = HeldLock(self.states, lock, put, is_own=True)
        return self._held_lock

    def _state_of(self, run: Run) -> RunState:
        """The state of a run, asked again after a while."""
        last_run, asked, state = self._asked
        if run == last_run and self.around.clock() - asked < _ASK_SECONDS:
            return state
        state = self.around.state_of(run)
        self._asked = (run, self.around.clock(), state)
        return state

    def _wait(self, owner: str, reason: str, refusal: LockedError) -> None:
        """Wait a moment; name the owner at first, when it changes, and each minute.

        Raises:
            LockedError: The deadline has passed.
        """
        now = self.around.clock()
        if now >= self.end:
            raise refusal
        if self._last_message[0] != owner or now - self._last_message[1] >= _SAY_SECONDS:
            left = duration_text(self.end - now)
            self.around.say(f"waiting for the lock of {self.stack}, {left} at most: {owner} ({reason})")
            self._last_message = (owner, now)
        self.around.sleep(min(_LOOK_SECONDS, self.end - now))


def _locked_error(stack: str, owner: str, generation: int, verdict: Verdict) -> LockedError:
    consequence = f"it is locked by {owner}; {verdict.reason}."
    repair = (
        "wait for its end, or cancel that run. If it has ended for certain, remove its lock by hand: "
        f"`bezel ci lock {shell_word(stack)} --break {shell_word(generation)}`."
    )
    return LockedError(Problem(f"stack {stack}", None, consequence, repair))


def _engine_locked(stack: str, lock: engine_locks.EngineLock) -> LockedError:
    consequence = f"an engine works on it: {lock.text}."
    command = f"pulumi cancel --yes --stack {shell_word(stack)}"
    repair = f"wait for its end. If it has ended for certain, remove its lock by hand: `{command}`."
    return LockedError(Problem(f"stack {stack}", None, consequence, repair))


@contextlib.contextmanager
def _ending_on_signals() -> Iterator[None]:
    """End the block on SIGTERM and SIGHUP as on an interrupt, so that what it holds is released."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
