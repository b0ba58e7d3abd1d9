"""Result document of the benchmark: versioned JSON that suffices to verify, recompute or refute a figure.

Owns the document's shape, reading and writing. Leaves out the computation of a figure
(bezel_bench.metrics.definitions), its validity (bezel_bench.validity.checks) and the raw samples, which are in a file
beside it (bezel_bench.result.sample_file).

The rules of the document:

- **Unknown is null, never 0**, and a figure that is null gives the reason. NaN and infinity cannot be written.
- **Every requested cell is in it**, also one that failed, was infeasible, or was queued, with that state.
- **The version is part of it.** A field more or less is another version; a reader refuses an unknown version.
- **Counts are whole numbers, latencies milliseconds, durations seconds**; every figure names its unit.
- **The raw samples are named by digest**, so that a changed file is detected.
"""

import json
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, Field, ValidationError, model_validator

from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError
from bezel_bench.result.platform_series import PlatformSeries
from bezel_bench.result.records import STRICT, Amount, Count, Distribution, Manifest, Metric, ServedBy
from bezel_bench.result.sample import CANCELLED

SCHEMA: Literal["bezel.bench/1"] = "bezel.bench/1"

State = Literal["ok", "failed", "infeasible", "client_limited", "busy_machine", "saturated", "queueing", "not_asked"]
Verdict = Literal["passed", "failed", "suspect", "unknown"]
_ANY_SCHEMA = re.compile(r"bezel\.bench/[0-9]{1,9}")
_MAX_LINES = 12
Numbers = dict[str, int | float | str | None]


class ResultError(UserError):
    """A file cannot be read as a result, or not by this version."""


class _ResultPart(BaseModel):
    model_config = STRICT


class Check(_ResultPart):
    """Result of one validity check. `numbers` is its arithmetic; for `unknown`, `text` names what is missing."""

    name: str
    state: Verdict
    text: str
    numbers: Numbers = {}


class Reading(_ResultPart):
    """A server's counters at one instant, summed over its engines; null is a counter that it does not have.

    Attributes:
        process_started: Unix time of the start of the responding process; another time means another process.
        engines: Number of engines of the responding process.
        requests: Completed requests, whatever the finish reason except abort and error.
        prompt_tokens: Prompt tokens, computed and cached.
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


class Counters(_ResultPart):
    """Counters before and after a load. `gained` is null where the difference is invalid; `why` says why."""

    before: Reading | None
    after: Reading | None
    gained: Reading | None
    why: str = ""


class ServerSeries(_ResultPart):
    """Server's `/metrics` over a load: one value for each of `at_seconds`; null is a figure that it does not report.

    Attributes:
        every_seconds: Time between two reads.
        at_seconds: Instants of the reads, from the load's start.
        running: Requests that ran, and `waiting` that waited, over its engines.
        kv_cache_used: Used share of the KV cache, 0 to 1, the mean of its engines.
        prompt_tokens: Tokens counted since the first read, as `generated_tokens` and `preemptions` are.
    """

    every_seconds: Amount
    at_seconds: list[Amount]
    running: list[Count] | None = None
    waiting: list[Count] | None = None
    kv_cache_used: list[Amount] | None = None
    prompt_tokens: list[int] | None = None
    generated_tokens: list[int] | None = None
    preemptions: list[int] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        columns = (self.running, self.waiting, self.kv_cache_used)
        counted = (self.prompt_tokens, self.generated_tokens, self.preemptions)
        if any(column is not None and len(column) != len(self.at_seconds) for column in (*columns, *counted)):
            raise ValueError("server_series: a list with another number of values than at_seconds")
        return self


class Window(_ResultPart):
    """Part of a load that counts, in seconds from its start; `rule` is the rule that selected it."""

    begins: Amount
    ends: Amount
    rule: str
    requests_before: Count
    requests_after: Count


class ClientFigures(_ResultPart):
    """Health of the load client: whether its own limits affect the figures.

    Attributes:
        workers: Number of sending processes.
        busiest_cpu_share: CPU seconds per wall second of the busiest process; 1.0 is a whole core.
        connections: All opened connections; `reconnections` are those opened after the start.
        stall_p99_ms: Time for which other work of the machine kept the busiest process from a CPU within 10 ms (99th
            percentile); null where the kernel does not tell.
        ttft_part: Client's own part (ms) of the TTFTs that count, by the kernel's stamps: until the request left, and,
            where the first token was read with later ones, since it can have arrived. Of the first 512 requests and
            one of 127 later ones; null where the kernel stamps none.
        schedule_delay_p99_ms: Delay from the planned instant to the beginning of the request.
        interrupted: Whether the user ended the load early.
        silent_seconds: Time without any response after which the load was ended; null if it was not.
        failing_requests: Failures in a row after which the load was ended; null if it was not.
        failed_share: Share of failed requests at which the load was ended; null if it was not.
        crowd: Requests under way when an open loop reached its limit and sent no more; null if it did not.
        waited: Requests that were due while as many as allowed were under way; null where none was. Their
            latencies count from the planned instant and hold that wait.
    """

    workers: Count
    cpu_seconds: Amount
    busiest_cpu_share: Amount
    wall_seconds: Amount
    loop_lag_p99_ms: Amount
    loop_lag_max_ms: Amount
    stall_p99_ms: Amount | None = None
    ttft_part: Distribution | None = None
    schedule_delay_p99_ms: Amount | None
    connections: Count
    reconnections: Count
    connect_failures: Count
    interrupted: bool
    silent_seconds: Amount | None = None
    failing_requests: Count | None = None
    failed_share: Amount | None = None
    crowd: Count | None = None
    waited: Count | None = None


class Slo(_ResultPart):
    """Service level objective of a request: its `metric` (ttft, tpot, e2e, ...) is at most `limit_ms`."""

    metric: Literal["ttft", "ttfc", "tpot", "e2e", "itl_max"]
    limit_ms: Annotated[float, Field(gt=0)]


class StageFigures(_ResultPart):
    """Figures of one stage of a load whose level changes.

    Attributes:
        level: Users, or requests per second.
        begins: Begin of the stage in seconds from the start of the load, `ends` its end.
        requests: Requests that were due in the stage, or sent in it by the users of a closed loop, in which none is
            due; `failed` those of them that failed, and `cancelled` those of these that the client ended as planned.
        metrics: Rates are of what was completed in the stage; latencies and lengths of these requests, whenever they
            ended.
    """

    level: Amount
    begins: Amount
    ends: Amount
    requests: Count
    failed: Count
    cancelled: Count = 0
    metrics: dict[str, Metric] = {}
    distributions: dict[str, Distribution] = {}


class UrlFigures(_ResultPart):
    """Figures of one address of a load that is sent to several, in the part of the load that counts.

    Attributes:
        share: Share of the sending processes, and so of the users or of the rate.
        failed: The failed requests, and `cancelled` those of them that the client ended as planned.
    """

    url: str
    share: Amount
    requests: Count
    failed: Count
    cancelled: Count = 0
    metrics: dict[str, Metric] = {}
    distributions: dict[str, Distribution] = {}


class Cell(_ResultPart):
    """One load on one server.

    Attributes:
        id: Unique in the document; also the name of its samples in the sample file.
        variant: Name of the loaded server among the document's `variants`; "" where there is one server.
        context_tokens: Requested tokens of a prompt; the figures hold the sent ones.
        users: Users of a closed loop; null for an open loop, which has a `rate` (requests per second) or a trace.
        output_tokens: Requested tokens of a response.
        pattern: E.g. "closed", "poisson"; the details are in `load`.
        prompts: E.g. "unique", "shared_prefix"; the details are in `load`.
        repeat: Number of earlier measurements of the same load.
        reason: Reason why the cell is not ok: the rule, with its arithmetic.
        seconds: Duration of the whole load, from the first request to the last response.
        window: Part of the load that the figures describe; null where nothing was measured.
        stages: Figures of each stage of a load whose level changes; then `metrics` holds no rate or latency, because
            those of all levels together describe none.
        urls: Figures of each address, where the load is sent to several; the server's counters are then unknown.
        requests: Number of requests sent.
        failures: Number of failed requests, by kind; they are in no latency.
        failure_examples: Message of one failure of each kind.
        acceptance: Share of drafts whose token at each position was accepted; null without drafts.
        server_series: Server's metrics over the load; null where it reports none, several processes did, or the load
            was short.
        platform_series: Metrics of the server's platform over the load; empty where no platform is known.
        tokens_per_chunk: Generated tokens per chunk; null where unknown.
        cost_usd: Cost of the load's seconds, at the manifest's price.
        load: The load without its credentials; sending it again repeats the measurement.
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
    stages: list[StageFigures] = []
    urls: list[UrlFigures] = []
    failures: dict[str, Annotated[int, Field(ge=1)]] = {}
    failure_examples: dict[str, str] = {}
    counters: Counters | None = None
    acceptance: list[float] | None = None
    tokens_per_chunk: float | None = None
    client: ClientFigures | None = None
    server_series: ServerSeries | None = None
    platform_series: list[PlatformSeries] = []
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
            raise ValueError(f"cell {self.id}: a cell that is not ok needs a reason, one that is ok has none")
        if sum(self.failures.values()) > self.requests:
            raise ValueError(f"cell {self.id}: more requests failed than were sent")
        return self

    @property
    def cancellations(self) -> int:
        """Requests that the client ended, as the load asks for: no failures of the server."""
        return self.failures.get(CANCELLED, 0)

    def value(self, metric: str) -> float | None:
        """Return the figure of that name, or None where it was not measured."""
        return self.metrics[metric].value if metric in self.metrics else None

    def parts(self) -> "list[Cell]":
        """Return the cell, or of a load in stages one for each of them, with its level and its figures.

        A stage counts its failed requests together, but for the cancelled: by the kind of the load's, or by all of its
        kinds.
        """
        kinds = ", ".join(sorted(self.failures.keys() - {CANCELLED})) or "failed"
        of_users = (self.load or {}).get("pattern", {}).get("of") == "users"
        return [
            self.model_copy(
                update={
                    "id": f"{self.id}-stage{number}",
                    "users": round(stage.level) if of_users else None,
                    "rate": None if of_users else stage.level or None,
                    "metrics": stage.metrics,
                    "distributions": stage.distributions,
                    "requests": stage.requests,
                    # A kind without a request is left out.
                    "failures": {**+Counter({kinds: stage.failed - stage.cancelled, CANCELLED: stage.cancelled})},
                    "seconds": stage.ends - stage.begins,
                    "stages": [],
                    "started_at": self.started_at and self.started_at + timedelta(seconds=stage.begins),
                    "cost_usd": self._cost(stage.ends - stage.begins),
                    # Of the whole load, and of no stage.
                    "window": None,
                    "counters": None,
                    "acceptance": None,
                    "tokens_per_chunk": None,
                }
            )
            for number, stage in enumerate(self.stages, 1)
        ] or [self]

    def _cost(self, seconds: float) -> float | None:
        return self.cost_usd and self.seconds and self.cost_usd * seconds / self.seconds

    def check(self, name: str) -> Check | None:
        """Return the result of the check of that name, if it was made."""
        return next((check for check in self.checks if check.name == name), None)


class Inferred(_ResultPart):
    """A figure inferred from measured cells, with the range that holds 90 of 100 measurements, where it has one.

    Attributes:
        low: Null where too few measured cells show how far inferred ones are off.
        errors: The number of measured cells that were inferred in the same way, whose errors give the range.
        how: The cells that it lies between.
        why: Why it has no range; "" where it has one.
    """

    context_tokens: Count
    users: Count
    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    errors: Count = 0
    how: str
    why: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise ValueError("a range with one end")
        return self


class Finding(_ResultPart):
    """Conclusion from several cells: a knee, the highest load within limits, a difference.

    Attributes:
        name: E.g. "knee", "highest_load", "difference".
        text: Sentences for the reader.
        numbers: The arithmetic.
        cells: Ids of the cells that support it.
    """

    name: str
    text: str
    numbers: Numbers = {}
    cells: list[str] = []


class SampleFile(_ResultPart):
    """File of the raw samples in the same folder, with its SHA-256."""

    file: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Result(_ResultPart):
    """The document.

    Attributes:
        nature: "simulated" for a simulated server: then no figure describes hardware.
        variants: The servers by name, where several were measured (`Cell.variant`); else empty.
        inferred: Figures of cells that were not measured.
        notes: Sentences for the reader.
    """

    version: Literal["bezel.bench/1"] = Field(default=SCHEMA, alias="schema")
    kind: Literal["run", "sweep", "rates", "goodput", "ab"]
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
        if twice := [id_ for id_, count in Counter(cell.id for cell in self.cells).items() if count > 1]:
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
        consequence = f"the file cannot be read: {error.strerror}."
        raise ResultError(Problem(str(path), None, consequence, "name the .json file of a benchmark.")) from None
    return parse(text, str(path))


def parse(text: bytes | str, name: str) -> Result:
    """Read a result from a document's text; `name` is for the message.

    Raises:
        ResultError: It is not a result, or one of another version.
    """
    try:
        return Result.model_validate_json(text)
    except ValidationError as error:
        raise ResultError(_problem(error, name, _schema_in(text))) from None


def save(result: Result, path: Path) -> None:
    """Write a result atomically: if the process is killed, the file holds either this result or its former content.

    Raises:
        OSError: It could not be written.
    """
    write_whole(path, result.as_json().encode())


def _schema_in(text: bytes | str) -> str | None:
    """The schema that a document names; None where it is no JSON, or no result of any version."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    schema = document.get("schema") if isinstance(document, dict) else None
    return schema if isinstance(schema, str) and _ANY_SCHEMA.fullmatch(schema) else None


def _problem(error: ValidationError, name: str, schema: str | None) -> Problem:
    """What is wrong with a document. Nothing is repeated of one that is no result: its name may come from an agent."""
    details = error.errors(include_url=False, include_context=False)
    if schema is not None and schema != SCHEMA:
        repair = "read it with the version of bezel that wrote it, or measure again."
        return Problem(f"schema of {name}", schema, f"this version of bezel reads {SCHEMA!r} only.", repair)
    if schema is None:
        is_json = all(detail["type"] != "json_invalid" for detail in details)
        reason = f"it does not name {SCHEMA!r} as its schema" if is_json else "it is not valid JSON"
        consequence = f"the file is not a result of `bezel bench`, and nothing of it is used: {reason}."
        return Problem(name, None, consequence, "name the .json file of a benchmark, or measure again.")
    lines = [f"{'.'.join(str(step) for step in detail['loc']) or 'document'}: {detail['msg']}" for detail in details]
    more = [f"and {len(lines) - _MAX_LINES} more"] if len(lines) > _MAX_LINES else []
    listed = "".join(f"\n     {line}" for line in [*lines[:_MAX_LINES], *more])
    return Problem(
        name,
        None,
        f"the file is not a result of `bezel bench`, and nothing of it is used:{listed}",
        "repair it, or measure again.",
    )
