"""Renderer of an audit: as text for people, as plain values for JSON."""

import textwrap
from collections.abc import Iterator

from bezel.bench.audit.findings import FAULTS, Finding
from bezel.bench.audit.plural import count
from bezel.bench.audit.runner import Audit

_COLUMNS = 100
_CELLS = 4


def as_text(audit: Audit) -> Iterator[str]:
    """Yield lines for a terminal: findings first, then open questions."""
    for source in audit.sources:
        what = count(len(source.claims), "claim") if source.claims else count(len(source.rows), "row")
        yield f"read: {source.item} ({source.format}, {what})"
    for finding in audit.findings:
        yield ""
        yield f"{finding.severity}: {', '.join(finding.items)}: {finding.name} (fault {finding.fault})"
        yield from _wrapped(finding.arithmetic)
        if len(finding.cells) > 1:
            yield from _wrapped(f"Cells: {_cells(finding)}.")
        yield from _wrapped(f"Repair: {finding.repair}.")
    if audit.questions:
        yield ""
        yield "Not judged, because the data do not say enough:"
        for question in audit.questions:
            about = " or ".join(FAULTS[fault] for fault in question.faults)
            yield from _wrapped(f"{question.item}: {about}? {question.text}.")
    yield ""
    accused = len({item for finding in audit.findings for item in finding.items[:1]})
    found = f"{count(len(audit.findings), 'finding')} in {count(accused, 'item')}"
    yield found if audit.findings else "nothing found"


def as_values(audit: Audit) -> dict[str, object]:
    """Return plain values for JSON."""
    return {
        "read": [
            {"item": one.item, "format": one.format, "rows": len(one.rows), "claims": len(one.claims)}
            for one in audit.sources
        ],
        "findings": [
            {
                "fault": one.fault,
                "name": one.name,
                "severity": one.severity,
                "items": list(one.items),
                "arithmetic": one.arithmetic,
                "cells": list(one.cells),
                "repair": one.repair,
            }
            for one in audit.findings
        ],
        "not_judged": [{"faults": list(one.faults), "item": one.item, "text": one.text} for one in audit.questions],
        "unreadable": list(audit.unreadable),
    }


def _cells(finding: Finding) -> str:
    more = len(finding.cells) - _CELLS
    return "; ".join(finding.cells[:_CELLS]) + (f"; and {more} more" if more > 0 else "")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _COLUMNS, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False)
