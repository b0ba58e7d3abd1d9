"""Report on a stack as a result: its figures with the source of each, and what is missing, as a text."""

from collections.abc import Iterator
from datetime import datetime

from pydantic import Field

from bezel.operations.keys.use import TeamUse
from bezel.operations.report.days import Day
from bezel.operations.report.spent import Spent
from bezel.operations.results import Result, Usd
from bezel.operations.vllm_metrics.course import Window, course_lines
from bezel.operations.vllm_metrics.figures import RequestOutcome
from bezel.operations.vllm_metrics.latencies import PERCENTILES, Latency, seconds_text
from bezel.planner.base.money import round_usd
from bezel_base.terminal.blocks import Block, Line, NamedValues, Role, Table, mark

UNKNOWN = "unknown"
LATENCY_HEADS = ("latency", "p50", "p90", "p99", "mean", "observed")
DAY_HEADS = ("day (UTC)", "requests", "failed", "tokens in", "tokens out", "TTFT p50", "TTFT p99", "servers")
SPENT_HEADS = ("of", "hours", "USD", "source")
FAILURE_HEADS = ("failed or refused", "number", "meaning")


class Source(Result):
    """Where figures of a report are from."""

    figures: str
    source: str


class Report(Result):
    """Traffic, latency, failures, cost and hours of a stack in some time. A figure that is unknown is null, never 0."""

    stack: str
    since: datetime = Field(description="begin of the time")
    until: datetime = Field(description="end of the time")
    requests: int | None = Field(description="calls of the model that ended, as the servers counted them")
    failed: int | None = Field(description="those of them that the server failed")
    reached: int | None = Field(description="requests that reached a service, as the platform counted them")
    prompt_tokens: int | None
    generated_tokens: int | None
    days: tuple[Day, ...] = Field(description="the same by day (UTC)")
    latencies: tuple[Latency, ...] = Field(description="percentiles over all servers, in seconds")
    outcomes: tuple[RequestOutcome, ...] = Field(description="requests by how they ended")
    course: tuple[Window, ...] = Field(description="the time in windows, the oldest first")
    hours: float | None = Field(description="hours that instances and machines ran and were billed for")
    starts: int | None = Field(description="servers that began, restarts included")
    usd: Usd | None = Field(description="cost of these hours; null where a part is unknown")
    spent: tuple[Spent, ...] = Field(description="hours and cost of each service and lease")
    teams: tuple[TeamUse, ...] | None = Field(description="use by the teams of keys; null without a door")
    sources: tuple[Source, ...]
    gaps: tuple[str, ...] = Field(description="what is missing, and why")
    written: str | None = Field(description="file of the page that was written")
    simulated: bool = Field(description="whether the last smoke check met a simulated server")

    def page(self) -> Iterator[Block]:
        """The report as a text of one page."""
        simulated = " (simulated server)" if self.simulated else ""
        times = f"{self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M} UTC"
        yield Line(f"{self.stack}: {times}{simulated}", Role.HEADING)
        yield NamedValues(self.totals())
        if self.days and self.requests is not None:
            yield from (Line(), Table(DAY_HEADS, day_rows(self.days)))
        if self.latencies:
            yield from (
                Line(),
                Table(LATENCY_HEADS, latency_rows(self.latencies)),
            )
        if lines := list(course_lines(self.course, generates=any(each.name == "ttft" for each in self.latencies))):
            yield Line()
            yield from (Line(line, is_verbatim=True) for line in lines)
        if failures := failure_rows(self.outcomes):
            yield from (Line(), Table(FAILURE_HEADS, failures))
        yield from (Line(), Table(SPENT_HEADS, spent_rows(self.spent)))
        if self.teams:
            yield from (Line(), Table(("team", "use"), [(team.team, team.line()) for team in self.teams]))
        elif self.teams is not None:
            yield from (Line(), Line("No key was used."))
        yield Line()
        yield NamedValues([(each.figures, each.source) for each in self.sources])
        yield from (Line(f"note: {text}") for text in self.gaps)
        yield from (Line(f"written: {self.written}"),) if self.written else ()

    def totals(self) -> list[tuple[str, str]]:
        """The figures of the whole time, for people."""
        ttft = next((each for each in self.latencies if each.name == "ttft"), None)
        share = f" ({self.failed / self.requests:.1%})" if self.requests and self.failed is not None else ""
        tokens = f"{count_text(self.prompt_tokens)} in, {count_text(self.generated_tokens)} out"
        rows = [
            ("requests", f"{count_text(self.requests)}, {count_text(self.failed)} of them failed{share}"),
            ("reached the service", count_text(self.reached)),
            ("tokens", tokens),
        ]
        if ttft is not None:
            rows.append(("TTFT", f"p50 {ttft.text('p50')}, p99 {ttft.text('p99')}"))
        rows.append(("hours served", hours_text(self.hours)))
        rows.append(("starts", count_text(self.starts)))
        rows.append(("cost", usd_text(self)))
        return rows


def usd_text(part: Report | Spent) -> str:
    """A cost for people."""
    return UNKNOWN if part.usd is None else f"{round_usd(part.usd, 2 if part.usd >= 1 else 4)} USD"


def hours_text(hours: float | None) -> str:
    """Hours for people."""
    return UNKNOWN if hours is None else f"{hours:,.2f} h"


def count_text(count: int | None) -> str:
    """A number for people."""
    return UNKNOWN if count is None else f"{count:,}"


def day_rows(days: tuple[Day, ...]) -> list[tuple[str, ...]]:
    """A row for each day."""
    return [
        (
            f"{day.day:%Y-%m-%d}",
            *map(count_text, (day.requests, day.failed, day.prompt_tokens, day.generated_tokens)),
            *("-" if value is None else seconds_text(value) for value in (day.ttft_p50, day.ttft_p99)),
            str(day.servers),
        )
        for day in days
    ]


def latency_rows(latencies: tuple[Latency, ...]) -> list[tuple[str, ...]]:
    """A row for each latency."""
    return [
        (
            each.title,
            *(each.text(percentile) for percentile in PERCENTILES),
            seconds_text(each.mean),
            count_text(each.observations),
        )
        for each in latencies
    ]


def failure_rows(outcomes: tuple[RequestOutcome, ...]) -> list[tuple[object, ...]]:
    """A row for each way in which requests failed or were refused."""
    return [
        (mark(f"{item.counted_by} {item.outcome}"), count_text(item.requests), item.meaning)
        for item in outcomes
        if item.requests and (item.is_failure or item.outcome in {"4xx", "abort"})
    ]


def spent_rows(parts: tuple[Spent, ...]) -> list[tuple[str, ...]]:
    """A row for each service and lease."""
    if not parts:
        return [("nothing with a GPU or a lease", "-", "-", "-")]
    return [(part.name, hours_text(part.hours), usd_text(part), part.unknown_because or part.source) for part in parts]
