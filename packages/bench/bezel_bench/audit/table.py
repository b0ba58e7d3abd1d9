"""Table that every format is read into: systems, rows and claims, where None means "not stated".

Rates are per second, latencies seconds (means, unless stated otherwise), shares 0 to 1. Leaves out a value's origin in
its file, which only the reader knows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bezel_bench.audit.figure import StatedFigure
from bezel_bench.audit.labels import MachineLabel
from bezel_bench.audit.models import StatedModel
from bezel_bench.audit.spread import Spread
from bezel_catalog import Architecture, Model

# Figures of a row by name.
REQUESTS = "requests_per_second"
OUTPUT = "output_tokens_per_second"
INPUT = "input_tokens_per_second"
TOTAL = "total_tokens_per_second"  # input and output together
TOKENS = "tokens_per_second"  # of an unstated direction
RATES = (REQUESTS, OUTPUT, INPUT, TOTAL, TOKENS)
LATENCIES = ("ttft", "tpot", "itl", "e2e")
NTPOT = "ntpot"  # e2e / output tokens of a request: the time per token that counts the first one too
PROMPT_LENGTH, OUTPUT_LENGTH = "prompt_tokens", "output_tokens"  # names of spreads over requests


def median_of(latency: str) -> str:
    """Return the name of a latency's median; the latency's own name means the mean."""
    return f"{latency}_median"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The measured system, as stated.

    Attributes:
        label: The words of the source.
        label_machine: The label's own statement, where a field states it too; likewise `label_shape`.
        model_name: The model's name in a field of the source.
        shape: The model's architecture; None where no model of the catalogue is named.
        stated_model: The model as the caller describes it, where the source names it or none.
        assistant: A draft model served alone.
        instances: The most instances that may have served.
        concurrency: Requests that the platform admits to one instance.
        speculation: The method's name, or "none" where the source states that there is none.
        prompts: "unique", "identical", "shared_prefix", "multi_turn" or "file".
        cache_study: Stated to be a study of the prefix cache.
        dated: The ISO date in the label.
        simulated: Stated to be simulated.
    """

    label: str = ""
    model_name: str = ""
    machine: MachineLabel | None = None
    label_machine: MachineLabel | None = None
    tensor_parallel: int | None = None
    shape: Architecture | None = None
    label_shape: Architecture | None = None
    checkpoint: Model | None = None
    stated_model: StatedModel | None = None
    assistant: bool = False
    encoding: str | None = None
    kv_dtype: str | None = None
    instances: int | None = None
    concurrency: int | None = None
    max_num_seqs: int | None = None
    max_model_len: int | None = None
    speculation: str | None = None
    draft_tokens: int | None = None
    prompts: str | None = None
    cache_study: bool = False
    offloaded: bool = False
    platform: str | None = None
    dated: str | None = None
    simulated: bool = False

    @property
    def drafting(self) -> bool:
        """Whether drafts are stated to be used."""
        return self.speculation is not None and self.speculation != "none"

    @property
    def capacity(self) -> int | None:
        """Return the requests that all instances take at once: the platform's limit, else the engines' limit."""
        limit = self.concurrency or self.max_num_seqs
        return limit * (self.instances or 1) if limit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How a tool takes its rates and latencies: what its own source fixes, so that figures can be held to it.

    Attributes:
        within: Share by which a rate x seconds may miss the counted total, e.g. 0.02 where the tool divides by them.
        offset: Seconds by which the stated duration may differ from the one that the tool divides by.
        edges: Whether the rate leaves out what ran at the ends of the load: users / requests on top of `within`.
        crossing: Requests that may have begun before this load, or ended after it, per request of its own: of the
            former are rates, of the latter latencies.
        tail: Share of a request's time that may pass between its last token and the end that the tool takes.
        whole: Whether the rates are of the whole load, so that requests/s x e2e cannot exceed the users.
        totals: Whether the stated duration and totals are those that the rates were divided from.
    """

    within: float
    offset: float = 0.0
    edges: bool = False
    crossing: float = 0.0
    tail: float = 0.0
    whole: bool = True
    totals: bool = True


@dataclass(frozen=True, slots=True)
class Counts:
    """Two counts of one thing that must be equal, each with its name."""

    name: str
    value: float
    other: str
    other_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured load. Totals are of all its requests; `order` is its place in the file.

    Attributes:
        where: Position in the file for the reader, e.g. "line 7".
        state: The source's word for the outcome, in lower case.
        success: Share of requests that succeeded.
        in_flight: Requests under way, mean over the load; `peak_in_flight` the most.
        cap: The client's own limit of requests under way.
        counted: The unit counted as a token, where stated.
        server_output_tokens: Output tokens by the server's counters.
        mean_prompt: Prompt tokens of a request, mean; likewise `mean_output`.
        spreads: Spread over the requests, in seconds or tokens, by the name of a latency or a length.
        clock: How the rates were taken; None where the source defines it in no way that is known.
        rated: Seconds and requests of the part of the load that the rate is of, where that is not all.
        sent_rate: Requests sent per second, over `sent_seconds` from the first to the last.
        delay: Wait in the client before a request was sent, although it was due.
        counts: Pairs of counts that the source's writer takes from the same requests.
        recounted: Totals, and mean latencies in seconds, of the single requests that the source lists, by name.
    """

    where: str = ""
    order: int = 0
    context: int | None = None
    users: int | None = None
    rate: float | None = None
    output_tokens: int | None = None
    repeat: int | None = None
    state: str | None = None
    reason: str = ""
    success: StatedFigure | None = None
    figures: Mapping[str, StatedFigure] = field(default_factory=dict)
    seconds: float | None = None
    planned: int | None = None
    requests: int | None = None
    completed: int | None = None
    failed: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    generated_tokens: int | None = None
    server_output_tokens: int | None = None
    drafts: int | None = None
    draft_tokens: int | None = None
    accepted: int | None = None
    in_flight: float | None = None
    peak_in_flight: int | None = None
    timeout: float | None = None
    cap: int | None = None
    counted: str | None = None
    mean_prompt: float | None = None
    mean_output: float | None = None
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    clock: Clock | None = None
    rated: tuple[float, int] | None = None
    sent_rate: StatedFigure | None = None
    sent_seconds: float | None = None
    delay: Spread | None = None
    counts: tuple[Counts, ...] = ()
    recounted: Mapping[str, float] = field(default_factory=dict)
    system: System = field(default_factory=System)

    @property
    def good(self) -> bool:
        """Whether the source counts it as a valid measurement."""
        return self.state in (None, "ok", "success", "passed", "complete", "completed")

    @property
    def cell(self) -> str:
        """Return the requested load, for the reader."""
        parts = [f"{self.context} tokens"] if self.context is not None else []
        parts += [f"{self.users} user{'s' * (self.users != 1)}"] if self.users is not None else []
        parts += [f"{self.rate:g} requests/s"] if self.rate is not None and self.users is None else []
        return ", ".join(parts) or self.where

    def figure(self, name: str) -> StatedFigure | None:
        """Return a figure by name, or None where it is not stated."""
        return self.figures.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement, with the figures around it as a row.

    Attributes:
        item: Its id.
        metric: Its name in lower case.
        value: None where the claim's value is a text or a list.
        fields: All statements of the source, by name.
        sides: The two sides of a ratio.
    """

    item: str
    metric: str
    value: StatedFigure | None
    unit: str
    fields: Mapping[str, Any]
    row: Row
    sides: tuple[Row, ...] = ()

    @property
    def counts(self) -> str:
        """Return the tokens that its rate counts, as stated, e.g. "output"; "" where that is not stated."""
        return str(self.fields.get("throughput_counts") or self.fields.get("direction") or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSource:
    """The contents of one file.

    Attributes:
        item: The file's name, for the reader; unique among the audited.
        format: The detected format.
        grid: Rows of one sweep over contexts and users, where every cell is expected.
        absent: Cells that the source lists as not measured, as (context, users).
        dated: The ISO date inside the file.
        unread: Names of fields with measured figures that no check reads.
        doubts: Fields that were not read, each with the reason, e.g. a latency without a unit.
    """

    item: str
    format: str
    rows: tuple[Row, ...] = ()
    claims: tuple[Claim, ...] = ()
    grid: bool = False
    absent: frozenset[tuple[int | None, int | None]] = frozenset()
    dated: str | None = None
    units: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    def statements(self) -> Iterator[tuple[str, Row]]:
        """Yield every row with the file's name."""
        return ((self.item, row) for row in self.rows)


@dataclass(frozen=True, slots=True)
class AuditTable:
    """All sources that are audited together."""

    sources: tuple[ResultSource, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Return all claims of all files."""
        return tuple(claim for source in self.sources for claim in source.claims)

    def compared_with(self, claim: Claim) -> Claim | None:
        """Return the claim that another one is compared with, where it states that; of an id in two files the last."""
        item = str(claim.fields.get("compared_with"))
        return next((other for other in reversed(self.claims) if other.item == item), None)

    def statements(self) -> Iterator[tuple[str, Row]]:
        """Yield every row with the item it belongs to: its file, or the claim."""
        for source in self.sources:
            yield from source.statements()
            yield from ((claim.item, claim.row) for claim in source.claims)
