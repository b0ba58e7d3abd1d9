"""Curves of a chart: the loads of each line, the line's name, and the loads to emphasise. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from bezel.bench.report.format import number
from bezel.bench.report.series import Spot, Subject

_MOST_OF_ONE, _MOST = 4, 5


@dataclass(frozen=True)
class Curve:
    """Loads of one subject at one context, rising. `mark` is the load to emphasise, and the reason."""

    label: str
    subject: Subject
    context: int | None
    spots: tuple[Spot, ...]
    mark: tuple[float, str] | None


def curves_of(subjects: Sequence[Subject]) -> tuple[list[Curve], str]:
    """Return the lines of a report, and a note on omissions: one subject by up to four contexts, several by one."""
    if len(subjects) == 1:
        contexts = [context for context in _contexts(subjects[0]) if len(_at(subjects[0], context)) > 1]
        shown = _spread(contexts, _MOST_OF_ONE)
        left = f"{len(shown)} of {len(contexts)} contexts are drawn" if len(shown) < len(contexts) else ""
        return [_curve(subjects[0], context, f"context {_tokens(context)}") for context in shown], left
    common = set.intersection(*(set(_contexts(one)) for one in subjects)) if subjects else set()
    told = ""
    if common:
        at = max(common, key=lambda one: (min(len(_at(subject, one)) for subject in subjects), one or 0))
        chosen = [(subject, at) for subject in subjects]
        told = f"All at a context of {_tokens(at)}"
    else:
        chosen = [(one, max(_contexts(one), key=lambda at: len(_at(one, at)))) for one in subjects if one.spots]
        told = "The contexts differ: not comparable line by line"
    if len(chosen) > _MOST:
        told += f". {_MOST} of {len(chosen)} are drawn; all are in the tables"
    curves = []
    for subject, context in chosen[:_MOST]:
        label = subject.label if common else f"{subject.label}, context {_tokens(context)}"
        curves.append(_curve(subject, context, label))
    return curves, told


def _contexts(subject: Subject) -> list[int | None]:
    return [*subject.contexts, *([None] if any(spot.context is None for spot in subject.spots) else [])]


def _at(subject: Subject, context: int | None) -> list[Spot]:
    return [spot for spot in subject.spots if spot.context == context and spot.load is not None]


def _curve(subject: Subject, context: int | None, label: str) -> Curve:
    spots = _at(subject, context)
    units = {spot.unit for spot in spots}
    unit = "users" if "users" in units else next(iter(units), "users")
    rising = sorted((spot for spot in spots if spot.unit == unit), key=lambda spot: spot.load or 0)
    return Curve(label, subject, context, tuple(rising), _mark(subject, context))


def _mark(subject: Subject, context: int | None) -> tuple[float, str] | None:
    for finding in subject.result.findings:
        numbers = finding.numbers
        users, highest = numbers.get("users"), numbers.get("highest")
        if finding.name == "knee" and numbers.get("context_tokens") == context and isinstance(users, int | float):
            return users, f"knee: {number(users)}"
        if finding.name == "highest_load" and isinstance(highest, int | float):
            return highest, f"within the limits: {number(highest)}"
    return None


def _spread(contexts: list[int | None], most: int) -> list[int | None]:
    if len(contexts) <= most:
        return contexts
    return [contexts[round(place * (len(contexts) - 1) / (most - 1))] for place in range(most)]


def _tokens(context: int | None) -> str:
    return "unknown" if context is None else f"{number(context)} tokens"
