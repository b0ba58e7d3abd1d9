"""Record of a lock: its owner, in JSON and in words, and the rules that say when the owner has ended. Pure.

Leaves out reading and writing it, and asking a machine or a forge.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote

from bezel.engine.locks.process import Process
from bezel.forge import RunState
from bezel_base.errors import Problem, UserError, format_value
from bezel_base.json_documents import read_json, whole_number
from bezel_base.process_status import MOST_PID

VERSION = 1
_STACK = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_PREDECESSORS = 5
_MOST_DIGITS = 9  # of the number of an attempt
_MOST_TICKS = 2**63 - 1


@dataclass(frozen=True)
class Run:
    """A run of a pipeline, by the variables of the forge."""

    server: str
    repository: str
    id: str
    attempt: str
    job: str
    actor: str
    commit: str
    url: str

    @property
    def attempt_number(self) -> int:
        """The attempt as a number; 0 if the forge gave none."""
        return int(self.attempt) if self.attempt.isdecimal() and len(self.attempt) <= _MOST_DIGITS else 0

    def is_of_same_run(self, other: "Run") -> bool:
        """Whether both are the same run of the same forge, in any job and attempt."""
        return (self.server, self.repository, self.id) == (other.server, other.repository, other.id)


@dataclass(frozen=True)
class Owner:
    """Holder of a lock: a user on a host, and the run that started it, if a forge did."""

    user: str
    host: str
    process: Process
    run: Run | None = None

    @property
    def text(self) -> str:
        """The owner for a reader."""
        if self.run is None:
            return f"{format_value(self.user)} on {format_value(self.host)} (process {self.process.pid})"
        run = self.run
        attempt = f", attempt {format_value(run.attempt)}" if run.attempt_number > 1 else ""
        job = f", job {format_value(run.job)}" if run.job else ""
        actor = f", started by {format_value(run.actor)}" if run.actor else ""
        return (
            f"run {format_value(run.id)}{attempt}{job} of {format_value(run.repository)}{actor}: "
            f"{format_value(run.url)}"
        )


@dataclass(frozen=True)
class Lock:
    """A lock on a stack.

    Attributes:
        project: The Pulumi project.
        stack: The stack.
        token: A random text that no other lock has.
        since: When it was taken (RFC 3339, by the owner's clock).
        owner: Its holder.
        after: Owners, each with the time of its lock, whose ended locks it replaced and whose engine may have left one.
    """

    project: str
    stack: str
    token: str
    since: str
    owner: Owner
    after: tuple[tuple[str, Owner], ...] = ()

    @property
    def text(self) -> str:
        """The lock for a reader."""
        return f"{self.owner.text}, since {format_value(self.since)}"

    def taken_over(self, previous: "Lock | None") -> "Lock":
        """This lock, with the owners before it."""
        if previous is None:
            return self
        return replace(self, after=((previous.since, previous.owner), *previous.after)[:_PREDECESSORS])


def object_name(project: str, stack: str) -> str:
    """Name of the object in the state bucket.

    Raises:
        UserError: The stack cannot have that name.
    """
    if not _STACK.fullmatch(stack):
        consequence = "a stack's name has letters, digits, `-`, `_` and `.` only, up to 100 of them."
        raise UserError(Problem("STACK", stack, consequence, "name a stack of this project."))
    return f"locks/{quote(project, safe='')}/{stack}.json"


def to_json(lock: Lock) -> bytes:
    """The content of the object."""
    return json.dumps({"version": VERSION, **asdict(lock)}, indent=1).encode()


def parse(content: bytes) -> Lock | None:
    """The lock of an object's content; None if it is not one that this version wrote."""
    try:
        document = read_json(content)
        if document["version"] != VERSION:
            return None
        after = tuple((str(since), _owner(owner)) for since, owner in document["after"])
        fields = {name: str(document[name]) for name in ("project", "stack", "token", "since")}
        return Lock(**fields, owner=_owner(document["owner"]), after=after)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _owner(document: Mapping[str, Any]) -> Owner:
    run = None if document["run"] is None else Run(**{name: str(document["run"][name]) for name in Run.__annotations__})
    process = document["process"]
    started = whole_number(process["started"], 0, _MOST_TICKS)
    identity = Process(str(process["machine"]), whole_number(process["pid"], 1, MOST_PID), started)
    return Owner(str(document["user"]), str(document["host"]), identity, run)


def run_of(environ: Mapping[str, str]) -> Run | None:
    """The run that a forge's variables name; None by hand."""
    number, repository = environ.get("GITHUB_RUN_ID", ""), environ.get("GITHUB_REPOSITORY", "")
    if not number or not repository:
        return None
    server = environ.get("GITHUB_SERVER_URL", "").rstrip("/")
    return Run(
        server,
        repository,
        number,
        environ.get("GITHUB_RUN_ATTEMPT", ""),
        environ.get("GITHUB_JOB", ""),
        environ.get("GITHUB_ACTOR", ""),
        environ.get("GITHUB_SHA", ""),
        f"{server}/{repository}/actions/runs/{number}",
    )


@dataclass(frozen=True)
class Verdict:
    """Whether a lock's owner has ended, and why that is known, or not."""

    has_ended: bool
    reason: str


def judge(
    lock: Lock | None,
    own_run: Run | None,
    *,
    is_alive: Callable[[Process], bool | None],
    run_state: Callable[[Run], RunState],
) -> Verdict:
    """Whether the owner of a lock has ended. What is unknown counts as living.

    Args:
        lock: The lock; None for a content that is not a lock of this version.
        own_run: The run that asks.
        is_alive: Says whether a process of this machine lives, None for another machine's.
        run_state: Asks the forge for the state of a run, in the attempt that it names.
    """
    if lock is None:
        return Verdict(has_ended=False, reason="another version of bezel wrote it")
    alive = is_alive(lock.owner.process)
    if alive is not None:
        return Verdict(not alive, "its process is running on this machine" if alive else "its process has ended")
    run = lock.owner.run
    if run is None:
        return Verdict(has_ended=False, reason=f"its process is on another machine ({format_value(lock.owner.host)})")
    if (
        own_run
        and run.is_of_same_run(own_run)
        and run.job == own_run.job
        and 0 < run.attempt_number < own_run.attempt_number
    ):
        # A forge starts the next attempt of a job only when the last one is over.
        return Verdict(has_ended=True, reason=f"attempt {own_run.attempt_number} of the same job has begun")
    state = run_state(run)
    reasons = {"running": "its run is active", "ended": "its run has ended"}
    return Verdict(state == "ended", reasons.get(state, "the forge's API does not say whether its run has ended"))
