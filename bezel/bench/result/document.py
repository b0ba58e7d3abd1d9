"""Result document of the benchmark: versioned JSON that suffices to verify, recompute or refute a figure.

Owns the document's shape, reading and writing. Leaves out the computation of a figure
(bezel.bench.metrics.definitions), its validity (bezel.bench.validity.checks) and the raw samples, which are in a file
beside it (bezel.bench.result.sample_file).

The rules of the document:

- **Unknown is null, never 0**, and a figure that is null gives the reason. NaN and infinity cannot be written.
- **Every requested cell is in it**, also one that failed, was infeasible, or was queued, with that state.
- **The version is part of it.** A field more or less is another version; a reader refuses an unknown version.
- **Counts are whole numbers, latencies milliseconds, durations seconds**; every figure names its unit.
- **The raw samples are named by digest**, so that a changed file is detected.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, Field, ValidationError, model_validator

from bezel.atomic_write import write_whole
from bezel.bench.result.figure import Distribution, Histogram, Metric
from bezel.bench.result.manifest_schema import Client, Machine, Manifest, Platform, PriceBasis, ServedBy
from bezel.bench.result.model_config import STRICT, Amount, Count
from bezel.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "SCHEMA",
    "Cell",
    "Check",
    "Client",
    "ClientFigures",
    "Counters",
    "Distribution",
    "Finding",
    "Histogram",
    "Inferred",
    "Machine",
    "Manifest",
    "Metric",
    "Numbers",
    "Platform",
    "PriceBasis",
    "Reading",
    "Result",
    "ResultError",
    "SampleFile",
    "ServedBy",
    "Slo",
    "State",
    "Verdict",
    "Window",
    "load",
    "parse",
    "save",
]

SCHEMA: Literal["bezel.bench/1"] = "bezel.bench/1"

State = Literal["ok", "failed", "infeasible", "client_limited", "saturated", "queueing", "not_asked"]
Verdict = Literal["passed", "failed", "suspect", "unknown"]
Numbers = dict[str, int | float | str | None]


class ResultError(UserError):
    """A file cannot be read as a result, or not by this version."""


class _Record(BaseModel):
    model_config = STRICT


class Check(_Record):
    """What one validity check found. ``numbers`` is its arithmetic; ``unknown`` says in ``text`` what is missing."""

    name: str
    state: Verdict
    text: str
    numbers: Numbers = {}


class Reading(_Record):
    """A server's counters at one instant, summed over its engines; null is a counter that it does not have.

    Attributes:
        process_started: Unix time at which the answering process began: another one is another process.
        engines: How many engines the answering process has.
        requests: Completed ones, by any reason but abort and error.
        prompt_tokens: Computed and cached.
        accepted_per_position: Accepted draft tokens by their position in the draft.
    """

    process_started: float | None = None
    engines: Count | None = None
    requests: Count | None = None
    prompt_tokens: Count | None = None
    cached_tokens: Count | None = None
    generated_tokens: Count | None = None
    preemptions: Count | None = None
    drafts: Count | None = None
    draft_tokens: Count | None = None
    accepted_tokens: Count | None = None
    accepted_per_position: list[Count] | None = None


class Counters(_Record):
    """The counters around a load. ``gained`` is null where the difference means nothing; ``why`` says so."""

    before: Reading | None
    after: Reading | None
    gained: Reading | None
    why: str = ""


class Window(_Record):
    """Which part of a load counts, in seconds of it; ``rule`` says how the part was found."""

    begins: Amount
    ends: Amount
    rule: str
    requests_before: Count
    requests_after: Count


class ClientFigures(_Record):
    """How the sending side fared: whether it measured the server or itself.

    Attributes:
        workers: Processes that sent load.
        busiest_cpu_share: CPU seconds by wall seconds of the busiest of them: 1.0 is a whole core.
        connections: Made in all; ``reconnections`` after the clock had started.
        schedule_delay_p99_ms: From the planned instant to the one at which the request was begun.
        interrupted: The load was interrupted before its end.
        silent_seconds: For so long no request was answered, so that the load was ended; null where that was not so.
    """

    workers: Count
    cpu_seconds: Amount
    busiest_cpu_share: Amount
    wall_seconds: Amount
    loop_lag_p99_ms: Amount
    loop_lag_max_ms: Amount
    schedule_delay_p99_ms: Amount | None
    connections: Count
    reconnections: Count
    connect_failures: Count
    interrupted: bool
    silent_seconds: Amount | None = None


class Slo(_Record):
    """A limit that a request keeps: its ``metric`` (ttft, tpot, e2e, ...) is at most ``limit_ms``."""

    metric: Literal["ttft", "ttfc", "tpot", "e2e", "itl_max"]
    limit_ms: Annotated[float, Field(gt=0)]


class Cell(_Record):
    """One load on one server.

    Attributes:
        id: Unique in the document; also the name of its samples in the side file.
        variant: Which of the document's ``variants`` was loaded; "" where there is one server.
        context_tokens: Of a prompt, as wanted; what was sent is in the figures.
        users: Of a closed loop; null where ``rate`` (requests a second) or the pattern says what was sent.
        output_tokens: Of an answer, as asked for.
        pattern: E.g. "closed", "poisson"; all of it is in ``load``.
        prompts: E.g. "unique", "shared_prefix"; all of it is in ``load``.
        repeat: 0 is the first time that this load was measured.
        reason: Why the cell is not ok: the rule that it meets, with the arithmetic.
        seconds: Of the whole load, from the first request to the last answer.
        window: What part of it the figures are of; null where nothing was measured.
        requests: All that were sent.
        failures: How many failed, by kind; never in a latency.
        failure_examples: For each kind what one of them said.
        acceptance: Share of drafts whose token at each position was accepted; null without drafts.
        tokens_per_chunk: Generated tokens that a chunk carries; null where it cannot be known.
        cost_usd: Of the load's seconds, at the manifest's price.
        load: Everything that was sent, without what authorises it: what to send to see it again.
    """

    id: str
    variant: str = ""
    context_tokens: Count | None
    users: Count | None = None
    rate: Annotated[float, Field(gt=0)] | None = None
    output_tokens: Count | None
    pattern: str
    prompts: str
    repeat: Count = 0
    state: State
    reason: str = ""
    checks: list[Check] = []
    metrics: dict[str, Metric] = {}
    distributions: dict[str, Distribution] = {}
    failures: dict[str, Annotated[int, Field(ge=1)]] = {}
    failure_examples: dict[str, str] = {}
    counters: Counters | None = None
    acceptance: list[float] | None = None
    tokens_per_chunk: float | None = None
    client: ClientFigures | None = None
    slos: list[Slo] = []
    started_at: AwareDatetime | None = None
    seconds: Amount | None = None
    window: Window | None = None
    requests: Count = 0
    cost_usd: Amount | None = None
    load: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.state == "ok") == bool(self.reason):
            raise ValueError(f"cell {self.id}: one that is not ok says why, one that is ok has no reason not to be")
        if sum(self.failures.values()) > self.requests:
            raise ValueError(f"cell {self.id}: more requests failed than were sent")
        return self

    def value(self, metric: str) -> float | None:
        """Return the figure of that name, or None where it was not measured."""
        found = self.metrics.get(metric)
        return found.value if found else None

    def check(self, name: str) -> Check | None:
        """Return the result of the check of that name, if it was made."""
        return next((one for one in self.checks if one.name == name), None)


class Inferred(_Record):
    """A figure that was not measured: concluded from measured cells, with the range it lies in at 90 %."""

    context_tokens: Count
    users: Count
    metric: str
    value: float
    low: float
    high: float
    how: str


class Finding(_Record):
    """What follows from several cells: a knee, the highest load within limits, a difference.

    Attributes:
        name: E.g. "knee", "highest_load", "difference".
        text: For the reader, whole sentences.
        numbers: The arithmetic.
        cells: The ids of the cells it rests on.
    """

    name: str
    text: str
    numbers: Numbers = {}
    cells: list[str] = []


class SampleFile(_Record):
    """The raw samples: a file's name beside this one, and its SHA-256."""

    file: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Result(_Record):
    """The document.

    Attributes:
        nature: "simulated" where a simulated server answered: no figure says anything of hardware then.
        variants: What differed, by name, where several servers were measured (``Cell.variant``); else empty.
        inferred: Figures of cells that were not measured.
        notes: For the reader, whole sentences.
    """

    version: Literal["bezel.bench/1"] = Field(default=SCHEMA, alias="schema")
    kind: Literal["run", "sweep", "goodput", "ab"]
    nature: Literal["measured", "simulated"]
    manifest: Manifest
    variants: dict[str, ServedBy] = {}
    cells: list[Cell]
    inferred: list[Inferred] = []
    findings: list[Finding] = []
    notes: list[str] = []
    samples: SampleFile | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if twice := [one for one, times in Counter(cell.id for cell in self.cells).items() if times > 1]:
            raise ValueError(f"cells with one id: {', '.join(twice)}")
        if strangers := sorted({cell.variant for cell in self.cells} - {"", *self.variants}):
            raise ValueError(f"cells of variants that are not described: {', '.join(strangers)}")
        return self

    def as_json(self) -> str:
        """Return the document as text with a final line end."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"


def load(path: Path) -> Result:
    """Read a result.

    Raises:
        ResultError: The file cannot be read, is not a result, or is of another version.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror}: no result is read; name the .json file of a benchmark") from None
    return parse(text, str(path))


def parse(text: bytes | str, name: str) -> Result:
    """Read a result from a document's text; ``name`` is for the message.

    Raises:
        ResultError: It is not a result, or one of another version.
    """
    try:
        return Result.model_validate_json(text)
    except ValidationError as error:
        raise ResultError(_told(error, name)) from None


def save(result: Result, path: Path) -> None:
    """Write a result atomically: if the process is killed, the file holds either this result or its former content.

    Raises:
        OSError: It could not be written.
    """
    write_whole(path, result.as_json().encode())


def _told(error: ValidationError, name: str) -> str:
    faults = error.errors(include_url=False, include_context=False)
    for fault in faults:
        if fault["loc"] == ("schema",):
            return (
                f"{name}: schema {fault['input']!r}: this bezel reads {SCHEMA!r}; "
                "read it with the bezel that wrote it, or measure again"
            )
    lines = [f"  {'.'.join(str(step) for step in fault['loc']) or 'document'}: {fault['msg']}" for fault in faults[:12]]
    more = [f"  and {len(faults) - 12} more"] if len(faults) > 12 else []
    return "\n".join(
        [f"{name} is no result of `bezel bench`: nothing of it is used; repair or measure again", *lines, *more]
    )
