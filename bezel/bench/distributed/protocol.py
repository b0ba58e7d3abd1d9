"""Exchange between the planner and the tasks of a many-machine load: small documents, and packed samples.

Owns their names and shapes. Leaves out their storage (``Place`` is passed in), a task's work
(``bezel.bench.distributed.worker``) and the merge of the parts (``bezel.bench.distributed.merge``). numpy is loaded
only to pack samples.
"""

from __future__ import annotations

import io
import json
from array import array
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from bezel.bench.load.plan import Load, from_json, to_json
from bezel.bench.result.sample import KINDS, ClientHealth, Measured, Sample
from bezel.errors import UserError

PLAN, TEXTS, START = "plan.json", "texts.txt", "start.json"
_FAILURES = ("", *KINDS)


class Place(Protocol):
    """Storage of the documents of one run: every task and the planner read and write there."""

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a document, None where there is none (yet)."""

    def write(self, name: str, document: dict[str, Any]) -> int:
        """Store a document; return the place's own clock at its arrival, ns since the epoch."""

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
    return f"part-{task:05d}.npz"


# The folders that a task's figures depend on.
_SENDING = ("client", "distributed", "load", "prompts", "result", "server")


def code() -> str:
    """Return a short digest of the engine's sources: tasks of another version would measure differently."""
    digest = sha256()
    for path in sorted(path for room in _SENDING for path in (Path(__file__).parents[1] / room).glob("*.py")):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    """Document that every task reads first.

    Attributes:
        load: The load of all tasks together; its ``workers`` are the tasks.
        wait_seconds: The time that a task waits for the start before it gives up.
        code: ``code()`` of the planner.
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
    def of(cls, document: dict[str, Any]) -> Plan:
        """Read the output of ``Plan.document``.

        Raises:
            UserError: It is none of this version.
        """
        try:
            load = from_json(json.dumps(document["load"]))
            return cls(load, float(document["wait_seconds"]), str(document["code"]), bool(document["texts"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"the plan of the tasks is of another version ({error}): build the image anew.") from None


@dataclass(frozen=True)
class ClockOffset:
    """Offsets of a machine's clocks, in ns.

    Attributes:
        realtime: CLOCK_REALTIME at some moment before the start.
        monotonic: CLOCK_MONOTONIC at the same moment.
        drift: The gain of CLOCK_REALTIME on CLOCK_MONOTONIC from then to the end of the load.
        low: The place's clock is ahead of CLOCK_REALTIME by this at least,
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
        by: The client that sent it: `Client` of `bezel.bench.result.records`, as JSON.
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
    def of(cls, document: dict[str, Any], packed: bytes) -> Part:
        """Read the output of ``Part.document`` and ``pack``.

        Raises:
            UserError: They are none of this version.
        """
        try:
            client = ClientHealth(**document["client"])
            measured = Measured(unpack(packed), int(document["began"]), int(document["ended"]), client)
            clock, notes = ClockOffset(**document["clock"]), tuple(document["notes"])
            return cls(int(document["task"]), measured, clock, dict(document["by"]), notes)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"a task's part is of another version ({error}): build the image anew.") from None


def pack(found: list[Sample]) -> bytes:
    """Pack samples into a compressed numpy archive: their columns, and the texts of failures."""
    import numpy as np

    from bezel.bench.result.columns import Columns

    columns = Columns.of(found)
    said = json.dumps({index: one.detail for index, one in enumerate(found) if one.detail}).encode()
    held = {**columns.fields, "failure": columns.failure, "chunks": columns.chunks, "counts": columns.chunk_counts}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, said=np.frombuffer(said, np.uint8), **held)
    return file.getvalue()


def unpack(packed: bytes) -> list[Sample]:
    """Return the samples that ``pack`` was given.

    Raises:
        ValueError: It is not such an archive.
        KeyError: A column is missing.
    """
    import numpy as np

    from bezel.bench.result.columns import FIELDS

    with np.load(io.BytesIO(packed), allow_pickle=False) as held:
        rows = zip(*(held[name].tolist() for name in FIELDS), strict=True)
        failures, chunks, counts = held["failure"].tolist(), held["chunks"].tobytes(), held["counts"].tolist()
        said: dict[str, str] = json.loads(held["said"].tobytes())
    found, at = [], 0
    for number, (row, failure, count) in enumerate(zip(rows, failures, counts, strict=True)):
        instants = array("q")
        instants.frombytes(chunks[at : (at := at + 8 * count)])
        values = dict(zip(FIELDS, row, strict=True))
        detail = said.get(str(number), "")
        found.append(Sample(**values, failure=_FAILURES[failure], detail=detail, chunks=instants))
    return found
