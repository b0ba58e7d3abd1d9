"""The engine's own locks in the state bucket, and those that a dead run left.

The engine writes one object for each command that changes a stack, with its process id, host and time, and deletes it
at its end; a killed engine leaves it, and each later command is refused. Removing such an object is what `pulumi
cancel` does with every lock of the stack, a living engine's too; here one object is deleted, at its generation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from bezel.engine.locks.process import Process
from bezel.engine.state.bucket import StateBucket
from bezel_base.errors import format_value
from bezel_base.json_documents import read_json, whole_number
from bezel_base.process_status import MOST_PID

STOP_SECONDS = 180.0
"""Until the engine of a run on another machine has stopped after its lock was taken over: the run reads its lock at
least once in `WATCH_SECONDS`, or gives up after `BLIND_SECONDS`, and its engine gets 70 s to end."""

_CLOCK_SLACK = 2.0


class EngineOwner(Protocol):
    """Who ran an engine: a user on a host, in a process."""

    @property
    def user(self) -> str:
        """Its name on the host."""

    @property
    def host(self) -> str:
        """The host's name."""

    @property
    def process(self) -> Process:
        """The process that started the engine."""


@dataclass(frozen=True)
class EngineLock:
    """A lock of an engine, as it describes itself; host "" if it does not."""

    name: str
    generation: int
    pid: int
    user: str
    host: str
    since: str

    @property
    def text(self) -> str:
        """The lock for a reader."""
        if not self.host:
            return f"an engine's lock that cannot be read ({format_value(self.name)})"
        return (
            f"the engine of {format_value(self.user)} on {format_value(self.host)} (process {self.pid}), since "
            f"{format_value(self.since)}"
        )


def read_engine_locks(states: StateBucket, project: str, stack: str) -> list[EngineLock]:
    """The engine's locks on a stack.

    Raises:
        RestError: They cannot be read.
    """
    entries = states.list(f".pulumi/locks/organization/{project}/{stack}/")
    names = [entry.name for entry in entries if entry.name.endswith(".json")]
    return [_parse_lock(name, *stored) for name in names if (stored := states.read(name)) is not None]


def _parse_lock(name: str, content: bytes, generation: int) -> EngineLock:
    try:
        fields = read_json(content)
        user, host, since = (str(fields[key]) for key in ("username", "hostname", "timestamp"))
        return EngineLock(name, generation, whole_number(fields["pid"], 1, MOST_PID), user, host, since)
    except (ValueError, KeyError, TypeError):
        return EngineLock(name, generation, 0, "", "", "")


def state_of(
    lock: EngineLock,
    ended: Sequence[tuple[str, EngineOwner]],
    *,
    machine: str,
    started_at: Callable[[int], float | None],
    seconds_since_takeover: float,
) -> Literal["left", "stopping", "living"]:
    """Whether a lock was left by an ended run's engine. Pure.

    Args:
        lock: The engine's lock.
        ended: The ended runs and when each took the stack's lock.
        machine: This machine, as in a process's identity.
        started_at: The start of a process of this machine.
        seconds_since_takeover: Since the stack's lock was taken over from the last of them.
    """
    owner = next((owner for since, owner in ended if _is_of(lock, since, owner)), None)
    if owner is None:
        return "living"
    if _is_here(owner.process, machine):
        start, taken = started_at(lock.pid), _unix(lock.since)
        # A process that began after the lock was written is another one with the same id.
        is_engine = start is not None and (taken is None or start <= taken + _CLOCK_SLACK)
        return "living" if is_engine else "left"
    return "left" if seconds_since_takeover >= STOP_SECONDS else "stopping"


def _is_here(process: Process, machine: str) -> bool:
    return bool(machine) and process.machine == machine


def _is_of(lock: EngineLock, since: str, owner: EngineOwner) -> bool:
    """Whether an engine took its lock under a run's: one user of one host, whose clock gave both times."""
    taken, begin = _unix(lock.since), _unix(since)
    is_after = taken is not None and begin is not None and taken >= begin - _CLOCK_SLACK
    return is_after and (lock.user, lock.host) == (owner.user, owner.host)


def _unix(moment: str) -> float | None:
    try:
        return datetime.fromisoformat(moment).timestamp()
    except (ValueError, OverflowError):
        return None  # a time that no clock shows, such as one of the year 1
