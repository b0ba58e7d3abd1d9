"""Rule-based diagnosis of a server: causes that its log, its platform and its metrics show, each with the repair. Pure.

Causes that a text names are those of the failed deploy (bezel/diagnosis/failure_patterns.toml), and figures are judged
as `bezel metrics` judges them (vllm_metrics/explained.toml); running_causes.toml has what figures mean together. The
words of a request are no evidence: a caller could write anything there. A collector's lines are none about the server,
and have causes of their own. What a start logged is past once the same revision has started well after it
(bezel.operations.log_reading.starts), unless its server ends again and again.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from bezel.diagnosis.diagnosis import Diagnosis, diagnose, named_causes
from bezel.diagnosis.platform import Condition, Report
from bezel.diagnosis.start_evidence import is_request
from bezel.operations.diagnosis.request_log import FailedRequests, LoggedRequest, failed_requests
from bezel.operations.log_reading.lines import LogLine
from bezel.operations.log_reading.revisions import ReadRevision
from bezel.operations.log_reading.starts import Loop, Starts
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.vllm_metrics.figures import INSTANCE, Figure, RequestOutcome, figure_text
from bezel.planner.team.series_labels import COLLECTOR
from bezel_base.front.refusals import Refusal

_TEXT = 400
_EVERYWHERE = ""


class Finding(Result):
    """A cause that the evidence shows."""

    kind: str = Field(description="kind of the cause, e.g. kv_cache")
    source: Literal["log", "platform", "requests", "metrics"] = Field(description="where the evidence is from")
    cause: str = Field(description="what is wrong")
    repair: str = Field(description="what to do")
    evidence: str = Field(description="line or figure that shows it; data from outside")
    at: str | None = Field(description="time of the evidence, RFC 3339; null where it has none")
    is_past: bool = Field(description="whether the server has started well since then")
    revision: str | None = Field(None, description="revision that it is of, where several were read")
    part: str | None = Field(None, description="that revision's part in the service")


def findings_of(
    lines: Sequence[LogLine],
    conditions: Sequence[Condition] = (),
    figures: Sequence[Figure] = (),
    outcomes: Sequence[RequestOutcome] = (),
    *,
    requests: Sequence[LoggedRequest] = (),
    revisions: Sequence[ReadRevision] = (),
    ready: Mapping[str, str] | None = None,
    now: float | None = None,
    stack: str = "STACK",
    has_gateway: bool = False,
) -> tuple[Finding, ...]:
    """Everything that the evidence shows, present causes before past ones, the best evidence first.

    Args:
        lines: The server's log, oldest line first.
        conditions: Unfulfilled conditions of the service, which are those of its newest revision.
        figures: Figures of its metrics; () where they were not read.
        outcomes: Requests of its metrics by how they ended.
        requests: Requests of the platform's log, oldest first.
        revisions: The revisions that the lines are of, those with traffic first; () where they are all of one.
        ready: Revision -> time at which the platform found it ready.
        now: Unix time.
        stack: Name of the stack, for commands.
        has_gateway: Whether its service is the gateway of leased machines.
    """
    starts = Starts(lines, ready, now)
    server_line_numbers = [
        number
        for number, line in enumerate(lines)
        if not (line.container == COLLECTOR or is_request(line.text) or starts.is_of_asked_end(number))
    ]
    newest = next((each.name for each in revisions if each.is_newest), _EVERYWHERE)
    present, past = list[Finding](), list[Finding]()
    names = [each.name for each in revisions]
    for name in names if len(names) > 1 else [_EVERYWHERE]:
        of_it = [number for number in server_line_numbers if not name or lines[number].resource in {name, None}]
        revision_conditions = conditions if name == newest or not name else ()
        part = next((each.part for each in revisions if each.name == name), "")
        for each in _of_revision(lines, of_it, starts, revision_conditions):
            (past if each.is_past else present).append(
                each.model_copy(update={"revision": name, "part": part}) if name else each
            )
    of_collector = [line for line in lines if line.container == COLLECTOR]
    for cause in _once(named_causes(_texts(of_collector))):
        if cause.kind == COLLECTOR:
            present.append(_of_text(cause, of_collector, is_past=False))
    for failed in failed_requests(requests, now, stack, has_gateway=has_gateway):
        (past if failed.is_past else present).append(_of_requests(failed))
    return (*present, *_by_figures(figures), *_by_outcomes(outcomes), *past)


def _of_revision(
    lines: Sequence[LogLine], numbers: Sequence[int], starts: Starts, conditions: Sequence[Condition]
) -> Iterator[Finding]:
    """Causes that the lines of one revision show."""
    loops = {lines[number].resource or "": loop for number in numbers
             if (loop := starts.loop_of(lines[number].resource or "")) is not None}  # fmt: skip
    ended = {number for revision in loops for number in starts.loop_lines(revision)}
    current = [lines[number] for number in numbers if number in ended or not starts.is_past(number)]
    loop = next(iter(loops.values()), None)
    present = list(_by_texts(current, conditions, loop))
    yield from present
    # Of an earlier start only what a text names: how it ended says nothing about the server that started after it.
    before = [lines[number] for number in numbers if number not in ended and starts.is_past(number)]
    present_causes = {(each.kind, each.cause) for each in present}
    for cause in _once(named_causes(_texts(before))):
        finding = _of_text(cause, before, is_past=True)
        if (finding.kind, finding.cause) not in present_causes:
            yield finding


def _by_texts(lines: Sequence[LogLine], conditions: Sequence[Condition], loop: Loop | None) -> Iterator[Finding]:
    """The best explanation first, as of a failed deploy; then every other cause that a text names."""
    texts = _texts(lines)
    best = diagnose(Report(conditions=tuple(conditions), lines=texts))
    named = named_causes([*texts, *map(str, conditions)])
    diagnoses = _once([*([best] if best.kind != "unknown" else []), *named])
    for number, each in enumerate(diagnoses):
        # How often it ended belongs to what explains the end best.
        again = f"; {loop.words()}" if loop is not None and number == 0 else ""
        yield _of_text(each, lines, is_past=False, again=again)
    if not diagnoses:
        for condition in conditions:
            if condition.state == "CONDITION_FAILED":
                unknown = "the platform reports a failure, and the log names no known cause"
                repair = "read the log (`bezel logs`), from its first error on."
                yield _of_text(Diagnosis("unknown", unknown, repair, str(condition)), lines, is_past=False)
                return


def _once(diagnoses: Iterable[Diagnosis]) -> list[Diagnosis]:
    """The first of those of one kind that the same text names: a specific rule comes before a general one."""
    first: dict[tuple[str, str], Diagnosis] = {}
    for each in diagnoses:
        first.setdefault((each.kind, each.evidence), each)
    return list(first.values())


def _of_text(diagnosis: Diagnosis, lines: Sequence[LogLine], *, is_past: bool, again: str = "") -> Finding:
    line = next((line for line in lines if line.text.strip() == diagnosis.evidence), None)
    return Finding(
        kind=diagnosis.kind,
        source="platform" if line is None or line.source == "platform" else "log",
        cause=clean_text(diagnosis.cause + again, _TEXT),
        repair=clean_text(diagnosis.repair, _TEXT),
        evidence=clean_text(diagnosis.evidence, _TEXT),
        at=None if line is None else line.time,
        is_past=is_past,
    )


def _of_requests(failed: FailedRequests) -> Finding:
    """What requests of the platform's log met: its own refusal, or an error of the server."""
    share = f"{failed.count} of {failed.total} requests"
    return Finding(
        kind=f"requests_{failed.refusal.kind}",
        source="requests",
        cause=f"{share} got HTTP {failed.status}: {failed.refusal.cause}",
        repair=failed.refusal.repair,
        evidence=f"request log: {share}, HTTP {failed.status}",
        at=failed.last or None,
        is_past=failed.is_past,
    )


def of_refusals(refusals: Iterable[tuple[int, Refusal, str]]) -> tuple[Finding, ...]:
    """Findings of what the reading's own requests met: a status, its refusal, and the message; each kind once."""
    kinds: dict[str, Finding] = {}
    for status, refusal, message in refusals:
        finding = Finding(
            kind=f"requests_{refusal.kind}",
            source="requests",
            cause=f"a request of this reading got HTTP {status}: {refusal.cause}",
            repair=refusal.repair,
            evidence=clean_text(message, _TEXT),
            at=None,
            is_past=False,
        )
        kinds.setdefault(finding.kind, finding)
    return tuple(kinds.values())


def _by_figures(figures: Sequence[Figure]) -> Iterator[Finding]:
    values = {each.name: each for each in figures if each.value is not None}
    explained: set[str] = set()
    for row in _running():
        involved = [*row.get("above", {}), *row.get("below", {})]
        if not explained & {*row.get("above", {})} and _holds(row, values):
            explained |= set(row["explains"])
            evidence = ", ".join(f"{values[name].title} {figure_text(values[name])}" for name in involved)
            sources = {values[name].source for name in involved if name in values} - {INSTANCE}
            evidence = ", ".join((evidence, *sources))
            yield _of_metrics(row["kind"], row["cause"], row["repair"], evidence)
    for each in figures:
        if each.is_unhealthy and each.name not in explained:
            source = "" if each.source == INSTANCE else f", {each.source}"
            evidence = f"{each.title} {figure_text(each)}, {each.basis}{source}"
            yield _of_metrics(each.name, f"{each.title} is unhealthy: {each.unhealthy_when}", each.repair, evidence)


def _by_outcomes(outcomes: Iterable[RequestOutcome]) -> Iterator[Finding]:
    """Requests that the server failed are a cause of their own only by the part that counted them."""
    for each in outcomes:
        if each.is_failure and each.requests and each.counted_by != "http":
            repair = "read the log from its first error on (`bezel logs`)."
            if each.counted_by == "queue":
                repair = "raise scaling.max_instances, or let callers repeat a 503 later."
            evidence = f"{each.requests} requests: {each.outcome}"
            yield _of_metrics(f"requests_{each.outcome}", each.meaning, repair, evidence)


def _holds(row: Mapping[str, Any], values: Mapping[str, Figure]) -> bool:
    def value(name: str) -> float | None:
        return values[name].value if name in values else None

    above = [(value(name), limit) for name, limit in row.get("above", {}).items()]
    below = [(value(name), limit) for name, limit in row.get("below", {}).items()]
    return all(actual is not None and actual > limit for actual, limit in above) and all(
        actual is not None and actual < limit for actual, limit in below
    )


def _of_metrics(kind: str, cause: str, repair: str, evidence: str) -> Finding:
    return Finding(kind=kind, source="metrics", cause=cause, repair=repair, evidence=evidence, at=None, is_past=False)


def _texts(lines: Iterable[LogLine]) -> tuple[str, ...]:
    return tuple(line.text for line in lines)


@cache
def _running() -> tuple[Mapping[str, Any], ...]:
    text = Path(__file__).with_name("running_causes.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["cause"])
