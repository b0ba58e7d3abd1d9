"""Analysis of a server: the rule-based diagnosis, with the words of the stack's own model beside it.

The rules are always applied. The model is asked only where an instance runs, and a server that does not answer is a
note: that is when a diagnosis is needed. Leaves the rules to bezel.operations.diagnosis.rules, the request to .asking.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from bezel.leases.clock import rfc3339
from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import ReadRegion, Stack, Wake
from bezel.operations.context import Context
from bezel.operations.diagnosis.asking import Advice, advice_of
from bezel.operations.diagnosis.evidence import evidence_of
from bezel.operations.diagnosis.prompt import data_lines
from bezel.operations.diagnosis.rules import Finding, findings_of, of_refusals
from bezel.operations.diagnosis.slow_path import measure_first_token, slow_path
from bezel.operations.diagnosis.timeline import Moment, Step, steps_of, timeline_of
from bezel.operations.diagnosis.timeline_text import timeline_lines, wrap_text
from bezel.operations.log_reading.revisions import ReadRevision
from bezel.operations.metrics.metrics import asleep
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.service_use.instances import instances_of
from bezel.operations.serving.server import DeployedServer
from bezel.operations.serving.serving_fallback import PATH, serving_fallback
from bezel_base.errors import UserError, one_line

_SECONDS, _WAKE_SECONDS = 300.0, 900.0
_NOTE = 500


class AnalysisArguments(Arguments):
    """Which stack, and how much of its log."""

    stack: Stack
    since: Annotated[str, Reach.INSIDE, Option("AGE|TIME")] = Field(
        "24h", max_length=40, description="begin of the log: 10m, 2h, 3d or RFC 3339"
    )
    limit: Annotated[int, Reach.INSIDE, Option("LINES")] = Field(
        1000, ge=1, le=5000, description="log lines at most, the newest ones"
    )
    max_tokens: Annotated[int, Reach.INSIDE, Option("N")] = Field(
        700, ge=16, le=4096, description="longest answer of the model, in tokens"
    )
    wake: Wake = False
    region: ReadRegion = None


class Analysis(Result):
    """What rules find about a server, and what its own model says."""

    stack: str
    first_token: str | None = Field(
        description="TTFT of a request of one token, at the caller and at the server; null where it was not measured"
    )
    revision: str | None = Field(description="revision that the log is of; null for several, and for machines")
    revisions: tuple[ReadRevision, ...] = Field(
        (), description="revisions whose logs were read, each with its part in the service; () for machines"
    )
    lines_read: int = Field(description="lines of the log that the rules were applied to")
    read_at: str = Field(description="time of the reading, RFC 3339")
    findings: tuple[Finding, ...] = Field(description="what rules find, the best evidence first, past causes last")
    timeline: tuple[Moment, ...] = Field(
        description="the findings and what else happened, the oldest first; what is of this reading's time last"
    )
    next: tuple[Step, ...] = Field(description="what to do about the present findings, the best evidence first")
    advice: Advice | None = Field(description="words of the stack's own model; null where it was not asked")
    notes: tuple[str, ...] = Field(description="what could not be read or asked, and why")
    simulated: bool = Field(description="whether the last smoke check met a simulated server")
    pools: bool = Field(False, exclude=True, repr=False, description="whether its model answers no question")

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 without a complete answer of the model, where it is one that answers questions."""
        if self.pools:
            return 0
        return 0 if self.advice is not None and self.advice.finish_reason else 1

    def text(self) -> str:
        """The timeline and the next commands, then the model's words under what they are worth."""
        simulated = " (simulated server)" if self.simulated else ""
        read_at = self.read_at.replace("T", " ").replace("Z", " UTC")
        lines = [f"{self.stack}: {self.lines_read} lines of log, read at {read_at}{simulated}"]
        lines += [f"{each.name}: {each.part}" for each in self.revisions if len(self.revisions) > 1]
        lines += [f"TTFT: {self.first_token}"] if self.first_token else []
        lines += timeline_lines(self.timeline, self.findings, self.next)
        lines += [] if self.next else ["", "now: no known cause of a problem"]
        lines += (
            ["", *(line for text in self.notes for line in wrap_text(f"note: {text}", "", "  "))] if self.notes else []
        )
        if self.advice is not None:
            is_advice = self.advice.standing == "advice"
            left_out = "" if is_advice else " Its words are left out (--json has them)."
            head = f"by the model ({self.advice.explanation}){':' if is_advice else '.'}{left_out}"
            lines += ["", *wrap_text(head, "", "")]
            answer = self.advice.answer.splitlines() if is_advice else []
            lines += [part for line in answer for part in wrap_text(line, "  | ", "  | ")]
            lines += [f"  note: {text}" for text in self.advice.notes]
        return "\n".join(lines) + "\n"


def analysis_of(context: Context, arguments: AnalysisArguments, kind: Literal["analyze", "advise"]) -> Analysis:
    """Apply the rules, then ask the model.

    Args:
        context: The context of the operation.
        arguments: The operation's arguments.
        kind: `analyze` looks at log and platform; `advise` at the metrics too.

    Raises:
        UserError: The backend has no such stack, or `since` is no begin.
    """
    deployment = context.deployment(arguments.stack).of_one_region(arguments.region)
    notes: list[str] = []
    server: DeployedServer | None = None
    try:
        fallback = serving_fallback(context, deployment)
        if fallback is not None:
            notes.append(f"{fallback.note}; the log is that of the leased machines")
        instances = instances_of(context, deployment, None if fallback is None else fallback.service)
        if instances.is_awake or arguments.wake:
            server = DeployedServer(context, deployment, PATH if fallback else "")
        else:
            notes.append(f"the model: {asleep(instances)}")
    except UserError as error:
        notes.append(f"the model could not be asked: {one_line(error)}")
    try:
        reads = server if kind == "advise" else None
        first = None
        # Before the metrics are read, which would start an instance that sleeps.
        if reads is not None and deployment.pooled_at is None:
            first = measure_first_token(context, deployment, reads, notes, is_awake=instances.is_awake)
        evidence = evidence_of(
            context,
            deployment,
            since=arguments.since,
            limit=arguments.limit,
            server=reads,
            reads_series=kind == "advise",
        )
        now = context.clock.now()
        log_findings = findings_of(
            evidence.lines,
            evidence.conditions,
            evidence.figures,
            evidence.outcomes,
            requests=evidence.requests,
            revisions=evidence.revisions,
            ready=evidence.ready,
            now=now,
            stack=deployment.stack,
            has_gateway=bool(deployment.leases),
        )
        present = () if server is None else of_refusals(server.refusals)
        findings = (*present, *slow_path(first), *log_findings)

        def data(limit: int, hidden: Sequence[str]) -> Sequence[str]:
            rules = findings if kind == "advise" else ()
            return data_lines(evidence.lines, limit, findings=rules, figures=evidence.figures, secrets=hidden)

        advice = None
        if server is not None and deployment.pooled_at is not None:
            notes.append("the model could not be asked: vLLM pools with it, and it answers no question")
        elif server is not None:
            seconds = _WAKE_SECONDS if arguments.wake else _SECONDS
            try:
                advice = advice_of(
                    context, deployment, server, kind, data, max_tokens=arguments.max_tokens, seconds=seconds
                )
            except UserError as error:
                notes.append(f"the model could not be asked: {one_line(error)}")
    finally:
        if server is not None:
            server.__exit__()
    return Analysis(
        stack=deployment.stack,
        first_token=None if first is None else first.line(),
        revision=evidence.revisions[0].name if len(evidence.revisions) == 1 else None,
        revisions=evidence.revisions,
        lines_read=len(evidence.lines),
        read_at=rfc3339(now) or "",
        findings=findings,
        timeline=timeline_of(findings, evidence.ready, now),
        next=steps_of(findings, deployment.stack),
        advice=advice,
        notes=(*evidence.notes, *(clean_text(note, _NOTE) for note in (*notes, *deployment.region_notes))),
        simulated=deployment.is_simulated,
        pools=deployment.pooled_at is not None,
    )
