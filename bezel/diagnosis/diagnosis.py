"""Diagnosis of a failed service from the platform's and the container's messages, with the repair. Pure.

A container logs its cause, often long before its last line; the platform only reports that nothing listened. So causes
that a text names come first (`failure_patterns.toml`), then a process that ended by itself, then a probe that gave
up on a live one; an unknown text is shown, not guessed at.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bezel.diagnosis.platform import Condition, Report
from bezel.diagnosis.start_evidence import shows_good_start
from bezel_base.errors import Problem
from bezel_base.text.redaction import redact
from bezel_base.text.shell import shell_word

AGAIN = "Afterwards run the same command again: it creates another revision in place of the one that failed."
# After a failed update the state holds the requested values, whatever exists.
REFRESH = (
    "`pulumi up --refresh`: it reads the service's state and deploys what is planned. (A failed `make up` has read it: "
    "run it again.)"
)

_SHOWN_LINES = 12
_MAX_LENGTH = 300

# A probe that failed once was mostly cut off by the end of the process; one that gave up used all its attempts.
_GAVE_UP = re.compile(
    r"STARTUP \w+ probe failed (?!1 time\b)\d+ times?|failed the configured startup probe checks", re.IGNORECASE
)
_PROBE_STATUS = "Connection failed with status"  # the second line of what Cloud Run logs of a probe
_ENDED = re.compile(
    r"Container called exit\(\d+\)|Container terminated on signal \d+|(?P<engine>Engine core initialization failed)"
)
_NO_ANSWER = re.compile(
    r"HEALTH_CHECK_CONTAINER_ERROR|probe failed|failed the configured startup probe|"
    r"failed to (?:start and )?listen on the port|within the allocated timeout|DEADLINE_EXCEEDED",
    re.IGNORECASE,
)
_BUSY = re.compile(r"the last state was: HTTP (429|50\d)")
_NO_CONNECTION = re.compile(r"the last state was: no response \((\w+)\)")
_REQUEST = re.compile(r"googleapi: Error \d{3}|Error (?:updating|creating) ")
_TRACEBACK = "Traceback (most recent call last)"
_ERROR = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b(?:: .*)?$")


@dataclass(frozen=True)
class Rule:
    """A known cause of failure: `cause` and `repair` may use the groups of `pattern` by name."""

    kind: str
    pattern: re.Pattern[str]
    cause: str
    repair: str


CAUSES = tuple(
    Rule(
        row["kind"],
        re.compile("|".join(row["patterns"]), re.IGNORECASE),
        row["cause"],
        row["repair"].replace("{AGAIN}", AGAIN).replace("{REFRESH}", REFRESH),
    )
    for row in tomllib.loads(Path(__file__).with_name("failure_patterns.toml").read_text(encoding="utf-8"))["cause"]
)


@dataclass(frozen=True)
class Diagnosis:
    """The cause of a failure, by the best evidence.

    Attributes:
        kind: The kind of failure, `unknown` where no rule fits.
        evidence: The text that shows it, "" where there is none.
    """

    kind: str
    cause: str
    repair: str
    evidence: str = ""


_OR_DIRECT = "set rollout to direct, which needs GPUs for two revisions only while the old one holds an instance; or:"
_UNKNOWN = Diagnosis(
    "unknown",
    "no known cause fits",
    "read the container's last lines; `gcloud logging read` shows the whole log of this revision.",
)


def diagnose(report: Report) -> Diagnosis:
    """The cause that fits a report best: by the container's log, then by the platform's messages."""
    lines = _lines_before_shutdown(report.lines)
    platform = [*(str(condition) for condition in report.conditions), *report.errors]
    healthy = report.created == report.ready != "" or any(shows_good_start(line) for line in lines)
    diagnosis = (
        # A refused request made no container: the log is an earlier one's and does not explain it.
        _named_cause(text for text in report.errors if _REQUEST.search(text))
        or _named_cause([*lines, *platform])
        or _crash_diagnosis(lines, platform, healthy=healthy)
        or _probe_diagnosis([*lines, *platform])
        or _between(report.errors)
        or _UNKNOWN
    )
    if report.gated and diagnosis.kind == "quota":
        return replace(diagnosis, repair=f"{_OR_DIRECT} {diagnosis.repair}")
    return diagnosis


def _lines_before_shutdown(lines: Sequence[str]) -> Sequence[str]:
    """Lines up to the end of the probe: those after it only show how the platform ended the container."""
    end = next((number for number, line in enumerate(lines, 1) if _GAVE_UP.search(line)), len(lines))
    end += _PROBE_STATUS in "".join(lines[end : end + 1])
    return lines[:end]


def named_causes(texts: Sequence[str]) -> Iterator[Diagnosis]:
    """Every cause that texts name, in the order of the table, each with the first text that names it."""
    for rule in CAUSES:
        for text in texts:
            if match := rule.pattern.search(text):
                groups = {key: (value or "").strip() for key, value in match.groupdict().items()}
                cause, repair = rule.cause.format(**groups), rule.repair.format(**_quote_groups(groups))
                yield Diagnosis(rule.kind, cause, repair, text.strip())
                break


def _quote_groups(groups: Mapping[str, str]) -> dict[str, str]:
    """Parts of a log's text as they stand in a command that repairs what it reports."""
    return {name: shell_word(value) for name, value in groups.items()}


def _named_cause(texts: Iterable[str]) -> Diagnosis | None:
    return next(named_causes(tuple(texts)), None)


def _crash_diagnosis(lines: Sequence[str], platform: Sequence[str], *, healthy: bool) -> Diagnosis | None:
    """Diagnose a process that ended by itself: a longer window of the probe would not have helped."""
    ends = [match for text in (*lines, *platform) if (match := _ENDED.search(text))]
    if not ends and not _has_traceback(lines, platform):
        return None
    errors = [match for line in lines if not _ENDED.search(line) and (match := _ERROR.search(line))]
    how = next((f" ({match[0]})" for match in ends if not match["engine"]), "")
    when = "became healthy and then ended by itself" if healthy else "ended by itself before it answered"
    last = f"; its last error: {_cut(errors[-1][0])}" if errors else ""
    evidence = next(iter([*errors[-1:], *ends]), None)
    return Diagnosis(
        "crash",
        f"the container {when}{how}, for an unknown reason{last}",
        "correct the first error in the log, as the later ones follow from it. A longer probe window does not help.",
        evidence.string.strip() if evidence else "",
    )


def _has_traceback(lines: Sequence[str], platform: Sequence[str]) -> bool:
    """Whether the log holds a traceback and nothing listened, though the line about the end has not arrived."""
    return (
        any(_NO_ANSWER.search(text) for text in platform)
        and any(_TRACEBACK in line for line in lines)
        and not any(_GAVE_UP.search(text) for text in (*lines, *platform))
    )


def _probe_diagnosis(texts: Iterable[str]) -> Diagnosis | None:
    evidence = next((text for text in texts if _NO_ANSWER.search(text)), None)
    if evidence is None:
        return None
    return Diagnosis(
        "probe",
        "the container did not answer its startup probe within the probe's window, and its log names no other cause",
        "raise probe.failure_threshold (period x failures may be 1800 s with a GPU), or make loading faster. If its "
        "log stopped long before, it hangs: its last line shows where. " + AGAIN,
        evidence.strip(),
    )


def _between(errors: Iterable[str]) -> Diagnosis | None:
    """Diagnose by the errors of a check, where platform and container report no problem."""
    for text in errors:
        if match := _BUSY.search(text):
            return Diagnosis(
                "busy",
                f"the server at this address refuses every request (HTTP {match[1]}), and neither the platform nor the "
                "container reports a cause",
                "run the same command again after a while. If it stays 429, raise scaling.max_instances or "
                "scaling.request_concurrency; if it stays 5xx, check the proxies in front of the service.",
                text,
            )
        if match := _NO_CONNECTION.search(text):
            return Diagnosis(
                "connection",
                f"connections to this address break or time out ({match[1]}), and neither the platform nor the "
                "container reports a cause",
                "check proxies, firewalls and the network on the way, then run the same command again.",
                text,
            )
    return None


def explain(report: Report, service: str, failure: str = "", *, repeat_errors: bool = True) -> Problem:
    """The problem for the user: the platform's condition, the container's last lines, cause, consequence, repair.

    Args:
        report: The report to explain.
        service: `projects/P/locations/L/services/S`.
        failure: What failed, as a sentence; "" where the reader has seen it.
        repeat_errors: Whether to show the report's errors; not where the engine shows them itself.
    """
    diagnosis = diagnose(report)
    parts = [failure] if failure else []
    parts += [f"observed: {text}" for text in report.errors if repeat_errors]
    parts += [f"platform: {text}" for text in _failures(report.conditions)] or ["platform: no failed condition"]
    # vLLM logs its shutdown in more lines than are shown; where it hangs, the line before the probe's end shows.
    logged = _lines_before_shutdown(report.lines) if diagnosis.kind == "probe" else report.lines
    lines = list(logged[-_SHOWN_LINES:])
    if diagnosis.evidence in report.lines and diagnosis.evidence not in lines:
        lines = [diagnosis.evidence, "...", *lines[1:]]
    parts += ["container's last lines:" if lines else "container's last lines: none"]
    parts += [f"  | {_cut(line)}" for line in lines]
    parts += [f"note: {text}" for text in report.notes]
    parts += [f"cause: {diagnosis.cause}", *_consequence(report)]
    indented = "\n   ".join(line for part in parts for line in part.splitlines())
    return Problem(f"service {service.rpartition('/')[2]}", None, redact(indented), redact(diagnosis.repair))


def _consequence(report: Report) -> list[str]:
    if not report.created:
        return []
    if report.created == report.serving:
        return [f"consequence: {report.created} has the traffic nevertheless"]
    rest = f"{report.serving} keeps serving" if report.serving else "no revision serves at this address"
    return [f"consequence: {report.created} gets no traffic; {rest}"]


def _failures(conditions: Iterable[Condition]) -> list[str]:
    """Each failure once: a revision's failure is repeated in the conditions of everything that depends on it."""
    failures: list[Condition] = []
    for condition in conditions:
        if not any(
            condition.message in earlier.message and condition.reason in {"", earlier.reason} for earlier in failures
        ):
            failures.append(condition)
    return [" ".join(str(condition).split()) for condition in failures]


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_LENGTH else f"{line[:_MAX_LENGTH]} [...]"
