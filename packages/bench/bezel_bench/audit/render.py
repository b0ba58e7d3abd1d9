"""Renderer of an audit: as text for people, as plain values for JSON."""

from collections.abc import Iterator, Sequence

from bezel_base.terminal.blocks import Line
from bezel_bench.audit.findings import FINDINGS, AuditFinding
from bezel_bench.audit.runner import Audit, judged_relations
from bezel_bench.audit.words import count, group_by

_CELLS = 4
_ITEMS, _FIELDS = 3, 60


def as_lines(audit: Audit) -> Iterator[Line]:
    """Yield lines for people: findings first, then open questions."""
    for source in audit.sources:
        what = count(len(source.claims), "claim") if source.claims else count(len(source.rows), "row")
        yield Line(f"read: {source.item} ({source.format}, {what})")
        if source.unread:
            yield Line(f"   not read of it: {_some(source.unread, _FIELDS)}.")
    for finding in audit.findings:
        yield Line()
        yield Line(f"{finding.severity}: {', '.join(finding.items)}: {finding.name} (finding {finding.kind})")
        yield Line(f"   {finding.arithmetic}")
        if len(finding.cells) > 1:
            yield Line(f"   Cells: {_cells(finding)}.")
        yield Line(f"   Repair: {finding.repair}.")
    if audit.questions:
        yield Line()
        yield Line("Not judged, because the data lack a value:")
        for (kinds, text), alike in group_by(audit.questions, lambda question: (question.kinds, question.text)).items():
            about = " or ".join(FINDINGS[kind] for kind in kinds)
            items = _some([question.item for question in alike], _ITEMS)
            yield Line(f"   {items}: {about}? {text}.")
    yield Line()
    accused = len({item for finding in audit.findings for item in finding.items[:1]})
    if audit.findings:
        yield Line(f"{count(len(audit.findings), 'finding')} in {count(accused, 'item')}")
    else:
        yield Line("no findings in what was judged" if audit.questions else "no findings")


def as_values(audit: Audit) -> dict[str, object]:
    """Return plain values for JSON."""
    return {
        "read": [
            {
                "item": source.item,
                "format": source.format,
                "rows": len(source.rows),
                "claims": len(source.claims),
                "judged": list(judged_relations(source)),
                "not_read": list(source.unread),
            }
            for source in audit.sources
        ],
        "findings": [
            {
                "fault": finding.kind,
                "name": finding.name,
                "severity": finding.severity,
                "items": list(finding.items),
                "arithmetic": finding.arithmetic,
                "cells": list(finding.cells),
                "repair": finding.repair,
            }
            for finding in audit.findings
        ],
        "not_judged": [
            {"faults": list(question.kinds), "item": question.item, "text": question.text}
            for question in audit.questions
        ],
        "unreadable": list(audit.unreadable),
    }


def _cells(finding: AuditFinding) -> str:
    more = len(finding.cells) - _CELLS
    return "; ".join(finding.cells[:_CELLS]) + (f"; and {more} more" if more > 0 else "")


def _some(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
