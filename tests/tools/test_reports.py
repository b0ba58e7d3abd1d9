"""The generated documents say what the tables say, and a table that does not add up is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.docs.reports import WrongTableError, document_text

ROOT = Path(__file__).parent.parent.parent


def table(**changes: Any) -> dict[str, Any]:
    return {
        "title": "Requests",
        "document": "fidelity",
        "order": 1,
        "about": "One against the other.",
        "command": "pytest x",
        "stamp": None,
        "columns": ["type", "compared", "equal", "explained"],
        "rows": [["a", 3, 3, 0], ["b", 2, 1, 1]],
        "notes": [{"what": "b", "why": "a set", "evidence": "recording b"}],
    } | changes


def test_the_committed_documents_are_what_the_tables_say() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tools.docs.reports", "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stdout


def test_a_document_holds_its_own_tables_in_order_with_sums() -> None:
    """A document holds its own tables in their order with sums and notes."""
    later, other = table(title="Later", order=2), table(title="Other", document="reliability")
    text = document_text("fidelity", {"later": later, "first": table(), "other": other})
    assert text.index("## Requests") < text.index("## Later")
    assert "Other" not in text
    assert "| **all** | **5** | **4** | **1** |" in text
    assert "- b: a set (recording b)" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": [["a", 3, 1, 1]], "notes": [{"what": "a", "why": "x", "evidence": "y"}]}, "3 compared, 1 equal"),
        ({"notes": []}, "no note does"),
        ({"rows": []}, "nothing was tried"),
        ({"rows": [["a", 1]]}, "2 cells for 4 columns"),
        ({"notes": [{"what": "b", "why": "believed", "evidence": ""}]}, "gives no evidence"),
    ],
)
def test_a_table_that_cannot_be_believed_is_refused(changes: dict[str, Any], message: str) -> None:
    if changes.get("rows") == [["a", 1]]:
        changes = changes | {"columns": ["type", "n", "m", "o"]}
    with pytest.raises(WrongTableError, match=message):
        document_text("fidelity", {"requests": table(**changes)})


def test_every_table_belongs_to_a_document() -> None:
    for file in (ROOT / "tests" / "results").glob("*.json"):
        assert json.loads(file.read_text())["document"] in ("fidelity", "reliability", "benchmarks"), file.name
