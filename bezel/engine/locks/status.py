"""Status of a stack's lock for people: who holds it, whether the owner has ended, and its removal by hand."""

from dataclasses import dataclass

from bezel.engine.locks.engine_locks import EngineLock, read_engine_locks
from bezel.engine.locks.process import is_alive
from bezel.engine.locks.record import Lock, Verdict, judge, object_name, parse, run_of
from bezel.engine.locks.taker import Surroundings
from bezel.engine.outcomes import LockedError
from bezel.engine.state.bucket import PreconditionError, StateBucket
from bezel_base.errors import Problem
from bezel_base.text.markdown import prose
from bezel_base.text.shell import shell_word

_LONGEST = 1000


@dataclass(frozen=True)
class LockStatus:
    """The lock of a stack and the engine's own locks, as a report.

    Attributes:
        stack: The stack.
        generation: Generation of the lock's object; 0 if there is none.
        lock: The lock; None if there is none, or another version wrote it.
        verdict: Whether its owner has ended; None without an object.
        engine_locks: The engine's own.
    """

    stack: str
    generation: int
    lock: Lock | None
    verdict: Verdict | None
    engine_locks: tuple[EngineLock, ...]

    def as_json(self) -> dict[str, object]:
        """The content as JSON."""
        owner = self.lock.owner if self.lock else None
        return {
            "kind": "lock",
            "stack": self.stack,
            "locked": self.generation != 0,
            "generation": str(self.generation) if self.generation else None,
            "since": self.lock.since if self.lock else None,
            "user": owner.user if owner else None,
            "host": owner.host if owner else None,
            "run": vars(owner.run) if owner and owner.run else None,
            "owner_has_ended": self.verdict.has_ended if self.verdict else None,
            "reason": self.verdict.reason if self.verdict else None,
            "engine_locks": [vars(lock) for lock in self.engine_locks],
        }

    def text(self) -> str:
        """The content for a terminal."""
        return "".join(f"{line}\n" for line in self._lines())

    def markdown(self) -> str:
        """The content for the forge."""
        return "".join(f"- {prose(line, _LONGEST)}\n" for line in self._lines())

    def _lines(self) -> list[str]:
        if not self.generation:
            lines = [f"{self.stack} is not locked"]
        else:
            owner = self.lock.text if self.lock else "an unknown owner"
            lines = [f"{self.stack} is locked by {owner} (generation {self.generation})"]
            if self.verdict:
                effect = "the next run takes the lock over" if self.verdict.has_ended else "it counts as living"
                lines.append(f"{self.verdict.reason}: {effect}")
        return lines + [f"an engine works on {self.stack}: {lock.text}" for lock in self.engine_locks]


def status_of(states: StateBucket, project: str, stack: str, around: Surroundings) -> LockStatus:
    """Read the status of a stack's lock.

    Raises:
        UserError: It cannot be read, or no stack has that name.
    """
    stored = states.read(object_name(project, stack))
    engines = tuple(read_engine_locks(states, project, stack))
    if stored is None:
        return LockStatus(stack, 0, None, None, engines)
    lock = parse(stored[0])
    verdict = judge(lock, run_of(around.environ), is_alive=is_alive, run_state=around.state_of)
    return LockStatus(stack, stored[1], lock, verdict, engines)


def remove_lock(states: StateBucket, project: str, stack: str, generation: int, around: Surroundings) -> LockStatus:
    """Remove the lock that a person has seen and names by its generation; return its last status.

    Raises:
        LockedError: The lock has another generation by now.
        UserError: It cannot be removed.
    """
    status = status_of(states, project, stack, around)
    if status.generation != generation:
        raise _another(stack, generation, status)
    try:
        states.delete(object_name(project, stack), generation)
    except PreconditionError:
        raise _another(stack, generation, status_of(states, project, stack, around)) from None
    return status


def _another(stack: str, generation: int, status: LockStatus) -> LockedError:
    now = status.text().splitlines()[0]
    consequence = f"nothing was removed: {now}."
    return LockedError(
        Problem("--break", str(generation), consequence, f"look at it: `bezel ci lock {shell_word(stack)} --show`.")
    )
