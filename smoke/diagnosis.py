"""Diagnosis of a failed service from the platform's and the container's messages, with the repair. Pure.

A container logs its cause, often long before its last line; the platform only reports that nothing listened. So causes
that a text names come first (``smoke.failure_patterns``), then a process that ended by itself, then a probe that gave
up on a live one; an unknown text is shown, not guessed at.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bezel.rest import redact
from smoke.failure_patterns import AGAIN, CAUSES
from smoke.platform import Condition, Report

_SHOWN_LINES = 12
_LONGEST = 300

# A probe that failed once was mostly cut off by the end of the process; one that gave up used all its attempts.
_GAVE_UP = re.compile(
    r"STARTUP \w+ probe failed (?!1 time\b)\d+ times?|failed the configured startup probe checks", re.IGNORECASE
)
_ENDED = re.compile(
    r"Container called exit\(\d+\)|Container terminated on signal \d+|(?P<engine>Engine core initialization failed)"
)
_NO_ANSWER = re.compile(
    r"HEALTH_CHECK_CONTAINER_ERROR|probe failed|failed the configured startup probe|"
    r"failed to (?:start and )?listen on the port|within the allocated timeout|DEADLINE_EXCEEDED",
    re.IGNORECASE,
)
_BUSY = re.compile(r"the last state was: HTTP (429|50\d)")
_NO_CONNECTION = re.compile(r"the last state was: no answer \((\w+)\)")
_REQUEST = re.compile(r"googleapi: Error \d{3}|Error updating ")
_TRACEBACK = "Traceback (most recent call last)"
_ERROR = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b(?:: .*)?$")


@dataclass(frozen=True)
class Diagnosis:
    """The cause of a failure, by the best evidence.

    Attributes:
        kind: The kind of failure, ``unknown`` where no rule fits.
        evidence: The text that shows it, "" where there is none.
    """

    kind: str
    cause: str
    repair: str
    evidence: str = ""


_OR_DIRECT = "Set rollout to direct, which needs GPUs for two revisions only while the old one holds an instance; or:"
_UNKNOWN = Diagnosis(
    "unknown",
    "no known cause fits",
    "Read the lines above; the whole log is under `gcloud logging read` for this revision.",
)


def diagnose(report: Report) -> Diagnosis:
    """The cause that fits a report best: by the container's log, then by the platform's messages."""
    lines = _until_the_probe_gave_up(report.lines)
    platform = [*(str(one) for one in report.conditions), *report.errors]
    healthy = report.created == report.ready != ""
    found = (
        # A refused request made no container: the log is an earlier one's and does not explain it.
        _named(text for text in report.errors if _REQUEST.search(text))
        or _named([*lines, *platform])
        or _ended(lines, platform, healthy=healthy)
        or _unanswered([*lines, *platform])
        or _between(report.errors)
        or _UNKNOWN
    )
    if report.gated and found.kind == "quota":
        return replace(found, repair=f"{_OR_DIRECT} {found.repair}")
    return found


def _until_the_probe_gave_up(lines: Sequence[str]) -> Sequence[str]:
    """The lines up to the probe's end: later ones only show how the platform ended the container."""
    for number, line in enumerate(lines):
        if _GAVE_UP.search(line):
            return lines[: number + 1]
    return lines


def _named(texts: Iterable[str]) -> Diagnosis | None:
    told = list(texts)
    for rule in CAUSES:
        for text in told:
            found = rule.pattern.search(text)
            if found:
                groups = {key: (value or "").strip() for key, value in found.groupdict().items()}
                return Diagnosis(rule.kind, rule.cause.format(**groups), rule.repair.format(**groups), text.strip())
    return None


def _ended(lines: Sequence[str], platform: Sequence[str], *, healthy: bool) -> Diagnosis | None:
    """Diagnose a process that ended by itself: a longer window of the probe would not have helped."""
    ends = [found for text in (*lines, *platform) if (found := _ENDED.search(text))]
    if not ends and not _raised(lines, platform):
        return None
    errors = [found for line in lines if not _ENDED.search(line) and (found := _ERROR.search(line))]
    how = next((f" ({found[0]})" for found in ends if not found["engine"]), "")
    when = "became healthy and then ended by itself" if healthy else "ended by itself before it answered"
    last = f"; its last error: {_cut(errors[-1][0])}" if errors else ""
    evidence = errors[-1] if errors else ends[0] if ends else None
    return Diagnosis(
        "crash",
        f"the container {when}{how}, for a reason that is not known here{last}",
        "Mend what the first error in the log says, as the later ones follow from it. A longer probe window does not "
        "help.",
        evidence.string.strip() if evidence else "",
    )


def _raised(lines: Sequence[str], platform: Sequence[str]) -> bool:
    """Whether the log holds a traceback and nothing listened, though the line about the end has not arrived."""
    return (
        any(_NO_ANSWER.search(text) for text in platform)
        and any(_TRACEBACK in line for line in lines)
        and not any(_GAVE_UP.search(text) for text in (*lines, *platform))
    )


def _unanswered(texts: Iterable[str]) -> Diagnosis | None:
    found = next((text for text in texts if _NO_ANSWER.search(text)), None)
    if found is None:
        return None
    return Diagnosis(
        "probe",
        "the container did not answer its startup probe within the probe's window, and its log names no other cause",
        "Raise probe.failure_threshold (period x failures may be 1800 s with a GPU), or make loading faster. Where its "
        "log has long stopped, it hangs: its last line tells where. " + AGAIN,
        found.strip(),
    )


def _between(errors: Iterable[str]) -> Diagnosis | None:
    """Diagnose by the errors of a check, where platform and container report no problem."""
    for text in errors:
        if found := _BUSY.search(text):
            return Diagnosis(
                "busy",
                f"whoever answers at this address refuses every request (HTTP {found[1]}), and neither the platform "
                "nor the container says why",
                "Run the same command again after a while. Where it stays 429, raise scaling.max_instances or "
                "scaling.request_concurrency; where it stays 5xx, look at what stands before the service.",
                text,
            )
        if found := _NO_CONNECTION.search(text):
            return Diagnosis(
                "connection",
                f"connections to this address break or wait too long ({found[1]}), and neither the platform nor the "
                "container says why",
                "Look at proxies, firewalls and the network on the way, then run the same command again.",
                text,
            )
    return None


def explain(report: Report, *, repeat_errors: bool = True) -> str:
    """Write the text for the user: the platform's condition, the container's last lines, cause, consequence, repair.

    Args:
        report: The report to explain.
        repeat_errors: Whether to show the report's errors; not where the engine shows them itself.
    """
    found = diagnose(report)
    parts = [f"met: {text}" for text in report.errors] if repeat_errors else []
    parts += [f"platform: {text}" for text in _told(report.conditions)] or ["platform: no failed condition"]
    shown = list(report.lines[-_SHOWN_LINES:])
    if found.evidence in report.lines and found.evidence not in shown:
        shown = [found.evidence, "...", *shown[1:]]
    parts += _indented("container's last lines:", shown) if shown else ["container's last lines: none"]
    parts += [f"note: {text}" for text in report.notes]
    parts += [f"cause: {found.cause}", *_consequence(report), f"repair: {found.repair}"]
    return redact("\n".join(parts))


def _consequence(report: Report) -> list[str]:
    if not report.created:
        return []
    if report.created == report.serving:
        return [f"consequence: {report.created} has the traffic all the same"]
    rest = f"{report.serving} goes on serving" if report.serving else "nothing serves at this address"
    return [f"consequence: {report.created} gets no traffic; {rest}"]


def _told(conditions: Iterable[Condition]) -> list[str]:
    """Each failure once: a revision's failure is repeated in the conditions of everything that depends on it."""
    told: list[Condition] = []
    for one in conditions:
        if not any(one.message in earlier.message and one.reason in {"", earlier.reason} for earlier in told):
            told.append(one)
    return [" ".join(str(one).split()) for one in told]


def _indented(title: str, lines: Iterable[str]) -> list[str]:
    return [title, *(f"  | {_cut(line)}" for line in lines)]


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} [...]"
