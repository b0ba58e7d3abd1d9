"""Exchange between the planner and the tasks of a many-machine load: small documents, and packed samples.

Owns their names and shapes. Leaves out their storage (an `Exchange` is passed in), a task's work
(`bezel_bench.distributed.worker`) and the merge of the parts (`bezel_bench.distributed.merge`).
"""

import gzip
import io
import json
import zlib
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, Self

import orjson

from bezel_base.errors import UserError
from bezel_bench.load.plan import Load, from_json, to_json
from bezel_bench.result.sample import ClientHealth, Measured, Sample
from bezel_bench.result.spill import line_of, sample_of

PLAN, TEXTS, START = "plan.json", "texts.txt", "start.json"


class Exchange(Protocol):
    """Storage of the documents of one run: every task and the planner read and write there."""

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a document, None where there is none (yet)."""

    def write(self, name: str, document: dict[str, Any]) -> int:
        """Store a document; return the storage's own clock at its arrival, ns since the epoch."""

    def get(self, name: str) -> bytes:
        """Return stored bytes."""

    def put(self, name: str, content: bytes) -> None:
        """Store bytes."""


def ready(task: int) -> str:
    """Name the document by which a task reports that it can start."""
    return f"ready-{task:05d}.json"


def part(task: int) -> str:
    """Name the document by which a task reports on its share."""
    return f"part-{task:05d}.json"


def samples(task: int) -> str:
    """Name the file of a task's packed samples."""
    return f"part-{task:05d}.jsonl.gz"


# The folders that a task's figures depend on.
_SENDING = ("client", "distributed", "load", "prompts", "result", "server")


_SOURCES = (".py", ".txt")


def code(folder: Path = Path(__file__).parents[1]) -> str:
    """Return a short digest of the engine's sources: tasks of another version would measure differently."""
    digest = sha256()
    files = (path for room in _SENDING for path in (folder / room).glob("*") if path.suffix in _SOURCES)
    for path in sorted(files):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    """Document that every task reads first.

    Attributes:
        load: The load of all tasks together; its `workers` are the tasks.
        wait_seconds: The time that a task waits for the start before it gives up.
        code: `code()` of the planner.
        texts: Whether the texts of the prompts' file are stored beside it.
    """

    load: Load
    wait_seconds: float
    code: str
    texts: bool = False

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        load = json.loads(to_json(self.load))
        return {"load": load, "wait_seconds": self.wait_seconds, "code": self.code, "texts": self.texts}

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        """Read the output of `Plan.document`.

        Raises:
            UserError: It is none of this version.
        """
        try:
            load = from_json(json.dumps(document["load"]))
            return cls(load, float(document["wait_seconds"]), str(document["code"]), bool(document["texts"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"the plan of the tasks has another version ({error}): rebuild the image.") from None


@dataclass(frozen=True)
class ClockOffset:
    """Offsets of a machine's clocks, in ns.

    Attributes:
        realtime: CLOCK_REALTIME at some moment before the start.
        monotonic: CLOCK_MONOTONIC at the same moment.
        drift: The gain of CLOCK_REALTIME on CLOCK_MONOTONIC from then to the end of the load.
        low: The storage's clock is ahead of CLOCK_REALTIME by this at least,
        high: and by this at most.
    """

    realtime: int
    monotonic: int
    drift: int
    low: int
    high: int


@dataclass
class Part:
    """A task's share of the load, as measured there.

    Attributes:
        measured: The measurement, in instants of that machine's CLOCK_MONOTONIC.
        by: The client that sent it: `Client` of `bezel_bench.result.records`, as JSON.
        notes: Notes on the prompts for the reader.
    """

    task: int
    measured: Measured
    clock: ClockOffset
    by: dict[str, Any]
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return all but the samples, as JSON."""
        measured = self.measured
        times = {"began": measured.began, "ended": measured.ended, "client": asdict(measured.client)}
        return {"task": self.task, "clock": asdict(self.clock), "by": self.by, "notes": list(self.notes)} | times

    @classmethod
    def of(cls, document: dict[str, Any], packed: bytes) -> Self:
        """Read the output of `Part.document` and `pack`.

        Raises:
            UserError: They are none of this version.
        """
        try:
            client = ClientHealth(**document["client"])
            measured = Measured(unpack(packed), int(document["began"]), int(document["ended"]), client)
            clock, notes = ClockOffset(**document["clock"]), tuple(document["notes"])
            return cls(int(document["task"]), measured, clock, dict(document["by"]), notes)
        except (EOFError, KeyError, OSError, TypeError, ValueError, zlib.error) as error:
            raise UserError(f"a task's part has another version ({error}): rebuild the image.") from None


def pack(samples: list[Sample]) -> bytes:
    """Pack samples into compressed lines of JSON, as in a spill file."""
    file = io.BytesIO()
    with gzip.open(file, "wb", compresslevel=1) as lines:
        lines.writelines(map(line_of, samples))
    return file.getvalue()


def unpack(packed: bytes) -> list[Sample]:
    """Return the samples that `pack` was given.

    Raises:
        OSError, EOFError, zlib.error: It is not gzip's format.
        ValueError: A line is not a sample.
    """
    with gzip.open(io.BytesIO(packed)) as lines:
        return [sample_of(orjson.loads(line)) for line in lines]
