"""Relation between figures of one load: what it needs, how closely it is judged, and what is said where it fails.

Owns that every relation is either judged or named as not judged. Leaves out the relations: the files of the checks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bezel_bench.audit.findings import AuditFinding, Open, Rule
from bezel_bench.audit.table import AuditTable, ResultSource, Row
from bezel_bench.audit.words import group_by

_COARSE = 0.15
"""Share above which a relation would not show a figure that is a fifth too large."""
_MOST_NAMED = 3


@dataclass(frozen=True)
class Relation:
    """One relation.

    Attributes:
        name: The relation in words.
        missing: Returns what a row lacks for it; empty where it can be judged.
        judge: Returns the arithmetic where the figures of a row refute each other.
        within: Returns the share by which the figures of a row may differ.
        expected: Whether a file without its values is named; not for what only some tools state.
    """

    name: str
    missing: Callable[[Row], tuple[str, ...]]
    judge: Callable[[Row], str | None]
    within: Callable[[Row], float] = lambda _: 0.0
    expected: bool = True

    def holds_for(self, row: Row) -> bool:
        """Whether a row has all that the relation needs."""
        return not self.missing(row)


def findings_of(rule: Rule, table: AuditTable, relations: Sequence[Relation]) -> Iterator[AuditFinding]:
    """Yield one finding for each item with rows that a relation refutes, with all that is wrong in the first."""

    def judge(row: Row) -> str | None:
        wrong = [text for each in relations if each.holds_for(row) and (text := each.judge(row))]
        return "; ".join(wrong[:_MOST_NAMED]) or None

    return rule.findings("contradiction", table.statements(), judge, where=True)


def open_questions(kind: int, source: ResultSource, relations: Sequence[Relation]) -> Iterator[Open]:
    """Yield one question for a file: the relations that none of its rows could be held to, or only coarsely."""
    if not source.rows:
        return
    names, lacks = [], dict[str, None]()
    for relation in relations:
        lacking = [relation.missing(row) for row in source.rows]
        if relation.expected and all(lacking):
            names.append(relation.name)
            fewest = min(map(len, lacking))
            lacks |= dict.fromkeys(next(lack for lack in lacking if len(lack) == fewest))
    if names:
        yield Open((kind,), source.item, f"{'; '.join(names)}: it lacks {', '.join(lacks)}")
    coarse = [
        (relation.name, within)
        for relation in relations
        if (shares := [relation.within(row) for row in source.rows if relation.holds_for(row)])
        and (within := min(shares)) > _COARSE
    ]
    for within, cells in group_by(coarse, lambda each: each[1]).items():
        coarse_names = "; ".join(name for name, _ in cells)
        yield Open((kind,), source.item, f"{coarse_names}: only to {within:.0%}, because of how it was measured")


def relations_of(source: ResultSource, relations: Sequence[Relation]) -> tuple[str, ...]:
    """Return the names of the relations that a file was held to."""
    return tuple(each.name for each in relations if any(each.holds_for(row) for row in source.rows))
