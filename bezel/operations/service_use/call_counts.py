"""Requests of callers by what became of them, and the figures that a verdict needs. Pure.

Owns which request tells what callers of the model get. Status 429 and 500 and above are failures of the service, other
4xx are the callers' (a wrong request, a missing right), 499 is a caller who gave up before the response.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from bezel.leases.clock import format_duration
from bezel.operations.results import Result, format_count, utc
from bezel.operations.service_use.service_metrics import RequestSample

Source = Literal["request log", "Cloud Monitoring"]
Outcome = Literal["succeeded", "failed", "refused", "abandoned"]
LOG: Source = "request log"
MONITORING: Source = "Cloud Monitoring"
_RECENT_SECONDS, _RECENT_LEAST = 60.0, 3
_ABANDONED = 499
# Paths on which vLLM 0.32 runs the model (its entrypoints' api_router.py). Probes, scrapers and strangers on the
# internet ask for others, and a server whose engine is dead still lists its models.
_OF_THE_MODEL = (
    "/v1/", "/v2/", "/cohere/", "/inference/", "/invocations", "/pooling", "/classify", "/score", "/rerank",
    "/generative_scoring",
)  # fmt: skip
_LISTS = "/v1/models"


@dataclass(frozen=True)
class Call:
    """Requests with one status: when they ended (unix seconds), their path ("" if unknown), their revision.

    Attributes:
        message: What the platform says of a request that it refused or whose response broke off, "" otherwise.
        number: How many they are.
    """

    at: float
    status: int
    path: str
    revision: str
    message: str = ""
    number: int = 1


class RevisionCalls(Result):
    """Requests to one revision."""

    name: str
    succeeded: int
    failed: int


class RevisionLoop(Result):
    """Ends of a revision's server, which ends again and again."""

    name: str
    ends: int = Field(description="instances that ended by themselves, two at least")


class Calls(Result):
    """Requests for the model, to the revisions that have traffic, in the last minutes."""

    window_seconds: int = Field(description="time that the requests are of")
    read: tuple[Source, ...] = Field(description="sources that were read")
    unread: tuple[str, ...] = Field(description="sources that could not be read, each with the reason")
    succeeded: int = Field(description="requests that got an answer")
    failed: int = Field(description="requests that the service failed: 429, 500 and above, broken responses")
    refused: int = Field(description="requests refused by what was sent, or by whom: any other 4xx")
    abandoned: int = Field(description="requests that their callers gave up before the response: 499")
    statuses: dict[str, int] = Field(description="requests by status, of those that did not succeed")
    platform_says: str | None = Field(description="the platform's words about most of the failed ones; null without")
    revisions: tuple[RevisionCalls, ...] = Field(description="requests by revision, where several have traffic")
    loops: tuple[RevisionLoop, ...] = Field(description="revisions whose server ends again and again, by the log")
    newest_at: datetime | None = Field(description="end of the newest request; null without one")
    age_seconds: int | None = Field(description="time since then")
    recent_succeeded: int = Field(description="of the newest requests: a minute of them, and three at least")
    recent_failed: int
    is_cut: bool = Field(description="whether there were more requests than the log was read for")

    @property
    def number(self) -> int:
        """All of them."""
        return self.succeeded + self.failed + self.refused + self.abandoned

    def period(self) -> str:
        """The window in words."""
        return f"{self.window_seconds // 60} minutes"

    def ends(self) -> str:
        """The servers that end again and again; "" without one."""
        if not self.loops:
            return ""
        number = format_count(sum(loop.ends for loop in self.loops), "instance")
        by = ", ".join(f"{loop.name}: {loop.ends}" for loop in self.loops)
        of_which = f" ({by})" if len(self.loops) > 1 or len(self.revisions) > 1 else ""
        text = f"{number} ended by themselves in {self.period()}{of_which}"
        return f"{text}: answers that were under way broke off"

    def line(self) -> str:
        """The requests for people."""
        if not self.read:
            return "not judged"
        sources = " and ".join(self.read)
        if not self.number:
            return f"none in {self.period()} ({sources})"
        parts = [f"{self.failed} failed" if self.failed else "none failed"]
        others = {"refused": self.refused, "abandoned": self.abandoned}
        parts += [f"{count} {word}" for word, count in others.items() if count]
        kinds = ", ".join(f"{count} x {status}" for status, count in self.statuses.items())
        age = "" if self.age_seconds is None else f"; newest {format_duration(self.age_seconds)} ago"
        more = "at least " if self.is_cut else ""
        of_kinds = f" ({kinds})" if kinds else ""
        return f"{more}{self.number} in {self.period()}, {', '.join(parts)}{of_kinds}{age} ({sources})"

    def shares(self) -> str:
        """Failures of each revision; "" where one has all of the traffic."""
        if len(self.revisions) < 2:
            return ""
        each = [(revision.name, revision.failed, revision.succeeded + revision.failed) for revision in self.revisions]
        return ", ".join(f"{name}: {failed} of {answered} failed" for name, failed, answered in each)


def missing_calls(logged: Iterable[Call], samples: Iterable[RequestSample]) -> list[Call]:
    """What Monitoring counted and the log lacks, of each revision and status: newest samples first."""
    logged_times: dict[tuple[str, int], list[float]] = {}
    for call in logged:
        logged_times.setdefault((call.revision, call.status), []).append(call.at)
    counted_by: dict[tuple[str, int], list[RequestSample]] = {}
    for sample in samples:
        counted_by.setdefault((sample.revision, sample.status), []).append(sample)
    missing = []
    for key, group in counted_by.items():
        times = logged_times.get(key, [])
        left = sum(sample.number for sample in group) - len(times)
        for sample in sorted(group, key=lambda each: each.end, reverse=True):
            of_log = sum(sample.start < at <= sample.end for at in times)
            number = min(left, sample.number - of_log)
            if number > 0:
                left -= number
                missing.append(Call(sample.end, key[1], "", key[0], number=number))
    return missing


def counted_calls(
    calls: Sequence[Call],
    *,
    window: int,
    now: float,
    read: tuple[Source, ...],
    unread: tuple[str, ...] = (),
    loops: tuple[RevisionLoop, ...] = (),
    is_cut: bool = False,
) -> Calls:
    """The requests, counted by what became of them.

    Args:
        calls: Requests of the window, to any path.
        window: Length of the window, seconds.
        now: Google's time, unix seconds.
        read: Sources that were read.
        unread: Sources that could not be read.
        loops: Revisions whose server ends again and again.
        is_cut: Whether there were more.
    """
    judged_calls = [call for call in calls if not call.path or _runs_the_model(call.path)]
    if not judged_calls:
        # No request asked the model; a probe or a scraper that fails tells nevertheless.
        others = [call for call in calls if _outcome(call) in {"succeeded", "failed"}]
        judged_calls = others if any(_outcome(call) == "failed" for call in others) else []
    total, statuses = Counter[Outcome](), Counter[int]()
    by_revision: dict[str, Counter[Outcome]] = {}
    for call in judged_calls:
        outcome = _outcome(call)
        total[outcome] += call.number
        by_revision.setdefault(call.revision, Counter())[outcome] += call.number
        if outcome != "succeeded":
            statuses[call.status] += call.number
    newest = max((call.at for call in judged_calls), default=None)
    recent = _recent(judged_calls, newest)
    return Calls(
        window_seconds=window,
        read=read,
        unread=unread,
        succeeded=total["succeeded"],
        failed=total["failed"],
        refused=total["refused"],
        abandoned=total["abandoned"],
        platform_says=_words(judged_calls),
        statuses={str(status): number for status, number in sorted(statuses.items())},
        revisions=tuple(
            RevisionCalls(name=name, succeeded=each["succeeded"], failed=each["failed"])
            for name, each in sorted(by_revision.items())
            if name
        ),
        loops=loops,
        newest_at=utc(newest),
        age_seconds=None if newest is None else max(0, int(now - newest)),
        recent_succeeded=recent["succeeded"],
        recent_failed=recent["failed"],
        is_cut=is_cut,
    )


def failed_share(calls: Calls) -> str:
    """The failed share in words: `3 of 12 requests`."""
    return f"{calls.failed} of {format_count(calls.failed + calls.succeeded, 'request')}"


def _recent(calls: Iterable[Call], newest: float | None) -> Counter[Outcome]:
    """Outcomes of the newest answered requests: those of the last minute with requests, and three at least."""
    outcomes = Counter[Outcome]()
    for call in sorted(calls, key=lambda each: each.at, reverse=True):
        outcome = _outcome(call)
        if outcome in {"refused", "abandoned"} or newest is None:
            continue
        if newest - call.at > _RECENT_SECONDS and outcomes.total() >= _RECENT_LEAST:
            break
        outcomes[outcome] += call.number
    return outcomes


def _words(calls: Iterable[Call]) -> str | None:
    """The first sentence of what the platform says most often of failed requests."""
    messages = Counter(call.message for call in calls if call.message and _outcome(call) == "failed")
    return messages.most_common(1)[0][0].partition(". ")[0].rstrip(".") if messages else None


def _runs_the_model(path: str) -> bool:
    return path.startswith(_OF_THE_MODEL) and not path.startswith(_LISTS)


def _outcome(call: Call) -> Outcome:
    if call.status == 429 or call.status >= 500 or (call.message and call.status < 400):
        return "failed"
    if call.status == _ABANDONED:
        return "abandoned"
    return "refused" if call.status >= 400 else "succeeded"
