"""Timeline of a diagnosis: what was found and what happened, in the order of time, and what to do next. Pure.

Owns the order, past and present, and the commands of a repair. Leaves out what is found (`rules`), and how it is shown
(`timeline_text`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field

from bezel.leases.clock import rfc3339, unix
from bezel.operations.diagnosis.rules import Finding
from bezel.operations.results import Result
from bezel_base.text.shell import shell_word

_COMMAND = re.compile(r"`(?:\.venv/bin/)?((?:bezel|gcloud) [^`]+)`")
# Deletes something, or has a name to fill in.
_NOT_NEXT = re.compile(r"\b(?:delete|destroy|rm|NAME)\b")
_OF_STACK = frozenset(
    f"bezel {name}"
    for name in ("plan", "metrics", "memory", "status", "logs", "models", "analyze-logs", "advise", "scale")
)
_SETTING = re.compile(
    r"\b(?:vllm|scaling|probe|resources|lease|weights|access|secrets)\.[a-z*]|\bstack file\b|\bbezel:"
)
_AGAIN = re.compile(r"\brun (?:the same command|it) again\b")
# A cause is logged before what it causes.
_BEFORE_SECONDS = 60.0


class Moment(Result):
    """One entry of the timeline."""

    at: str | None = Field(description="time, RFC 3339; null where the evidence has none: it is of the reading's time")
    age_seconds: int | None = Field(description="how long before the reading that was")
    phase: Literal["past", "now"] = Field(description="`past` where the server has started well since; else `now`")
    source: Literal["log", "platform", "requests", "metrics"] = Field(description="where the evidence is from")
    revision: str | None = Field(description="revision that it is of, where that is known")
    event: str = Field(description="what happened, or the cause that the evidence shows")
    finding: int | None = Field(description="its number in `findings`, from 1; null for an event without one")


class Step(Result):
    """What to do about a present finding."""

    finding: int = Field(description="number in `findings`, from 1")
    action: str = Field(description="what to do")
    commands: tuple[str, ...] = Field(description="commands that do it, or show more, in their order")


def timeline_of(findings: Sequence[Finding], ready: Mapping[str, str], now: float) -> tuple[Moment, ...]:
    """The entries, the oldest first, those without a time last.

    Args:
        findings: The findings.
        ready: Revision -> time at which the platform found it ready, RFC 3339; "" where it did not.
        now: Unix time of the reading.
    """
    moments = [
        _moment(each.at, now, "past" if each.is_past else "now", each.source, each.revision, each.cause, number)
        for number, each in enumerate(findings, 1)
    ]
    moments += [
        _moment(at, now, "past", "platform", name, f"{name} was found ready", None) for name, at in ready.items() if at
    ]
    return tuple(sorted(moments, key=lambda each: -_age(each)))


def steps_of(findings: Iterable[Finding], stack: str) -> tuple[Step, ...]:
    """What to do about the present findings, the best evidence first."""
    return tuple(
        Step(finding=number, action=each.repair, commands=tuple(dict.fromkeys(_commands(each, stack))))
        for number, each in enumerate(findings, 1)
        if not each.is_past
    )


def _moment(
    at: str | None,
    now: float,
    phase: Literal["past", "now"],
    source: Literal["log", "platform", "requests", "metrics"],
    revision: str | None,
    event: str,
    finding: int | None,
) -> Moment:
    begin = unix(at)
    return Moment(
        at=at if begin is not None else None,
        age_seconds=None if begin is None else max(0, int(now - begin)),
        phase=phase,
        source=source,
        revision=revision,
        event=event,
        finding=finding,
    )


def _age(moment: Moment) -> float:
    return -1.0 if moment.age_seconds is None else moment.age_seconds


def _commands(finding: Finding, stack: str) -> Iterator[str]:
    """Commands of a finding's repair; for a change of the stack file those that plan and deploy it."""
    named = [each for each in _COMMAND.findall(finding.repair) if not _NOT_NEXT.search(each)]
    for command in named:
        if command in _OF_STACK:
            yield f"{command} {shell_word(stack)}"
        else:
            yield re.sub(r"\bSTACK\b", lambda _: shell_word(stack), command)
    if _SETTING.search(finding.repair):
        yield from (f"bezel plan {shell_word(stack)}", f"bezel deploy {shell_word(stack)}")
    elif _AGAIN.search(finding.repair):
        yield f"bezel deploy {shell_word(stack)}"
    elif not named:
        at = unix(finding.at)
        since = "1h" if at is None else rfc3339(at - _BEFORE_SECONDS)
        yield f"bezel logs {shell_word(stack)} --since {shell_word(since)}"
