"""Text of a timeline for 80 columns: times first, past and present apart, then the next commands. Pure."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from bezel.leases.clock import format_duration, rfc3339, unix
from bezel.operations.diagnosis.rules import Finding
from bezel.operations.diagnosis.timeline import Moment, Step

_COLUMNS = 79


def timeline_lines(moments: Sequence[Moment], findings: Sequence[Finding], steps: Sequence[Step]) -> Iterator[str]:
    """The lines: what is past, what is now, and what to do next.

    Args:
        moments: The timeline's entries.
        findings: What their numbers are of.
        steps: What to do.
    """
    for phase, since in (("past", ", the server has started or served well since"), ("now", "")):
        if entries := [each for each in moments if each.phase == phase]:
            has_findings = any(each.finding is not None for each in entries)
            yield from ("", f"{phase}{since if has_findings else ''}:")
            for each in entries:
                yield from _entry(each, findings)
    if steps:
        yield from ("", "next:")
    for step in steps:
        number = f"  [{step.finding}] "
        yield from wrap_text(step.action, number, " " * len(number))
        yield from (f"{' ' * len(number)}  {command}" for command in step.commands)


def wrap_text(text: str, first: str, others: str) -> list[str]:
    """A text in lines of a terminal, each behind a begin; a word stays whole, so that a path can be copied."""
    return textwrap.wrap(
        text,
        _COLUMNS,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def _entry(moment: Moment, findings: Sequence[Finding]) -> Iterable[str]:
    number = moment.finding
    finding = findings[number - 1] if number is not None and 0 < number <= len(findings) else None
    part = f" ({finding.part})" if finding is not None and finding.part else ""
    of = f" of {moment.revision}{part}" if moment.revision and finding is not None else ""
    yield from wrap_text(f"{_time(moment)}  {moment.source}{of}", "  ", "    ")
    mark = f"[{number}] " if number is not None and moment.phase == "now" else ""
    yield from wrap_text(f"{mark}{moment.event}", "    ", "    ")
    if finding is not None and finding.evidence:
        yield from wrap_text(finding.evidence, "      > ", "      > ")


def _time(moment: Moment) -> str:
    """Absolute and relative time, to the second."""
    if moment.at is None or moment.age_seconds is None:
        return "at this reading"
    shown = (rfc3339(unix(moment.at)) or "").replace("T", " ").replace("Z", " UTC")
    return f"{shown}, {format_duration(moment.age_seconds)} ago"
