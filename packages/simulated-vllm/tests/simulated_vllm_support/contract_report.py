"""The table of the vLLM contract: what became of each recording's tests on the simulated and on the real server."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulated_vllm_support.contract_table import KNOWN, MORE, ROWS

if TYPE_CHECKING:
    from simulated_vllm_support.contract_table import Row

# In a checkout: the committed table.
RESULTS = Path(__file__).parents[4] / "tests" / "results" / "vllm-contract.json"
FURTHER = "test_a_further_answer_is_the_recorded_one"
GENERIC = "test_an_answer_is_the_recorded_one"
NOT_RUN = "-"


@dataclass
class Outcome:
    """Tests by name with their parameters, whether each passed, and what they explained; skipped ones are not in it."""

    tests: dict[str, bool] = field(default_factory=dict)
    explained: dict[str, str] = field(default_factory=dict)

    @property
    def count_passed(self) -> int:
        return sum(self.tests.values())

    @property
    def failed_tests(self) -> list[str]:
        return [name for name, good in self.tests.items() if not good]

    def add(self, report: Path) -> None:
        """Take in the file that the tests wrote, one JSON object a line."""
        for line in report.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            name = row["test"].rpartition("::")[2]
            if row["outcome"] != "skipped":
                self.tests[name] = self.tests.get(name, True) and row["outcome"] == "passed"
            if row["explained"] is not None:
                self.explained[name] = row["explained"]

    def further(self) -> int:
        """How many of the later recordings' tests passed."""
        return sum(good for name, good in self.tests.items() if name.startswith(FURTHER))

    def of(self, name: str, row: Row) -> int:
        """How many of a recording's tests passed: all of a function's cases have to."""
        return sum(self._good(name, row, test) for test in checks_of(row))

    def reason(self, name: str, row: Row) -> str:
        """Why fields of an answer are held to their type only."""
        return self.explained.get(f"{GENERIC}[{row.configuration}-{name}]", "")

    def _good(self, name: str, row: Row, test: str) -> bool:
        if test == GENERIC:
            return self.tests.get(f"{GENERIC}[{row.configuration}-{name}]", False)
        cases = {case: good for case, good in self.tests.items() if re.match(rf"{test}(\[|$)", case)}
        exact = {case: good for case, good in cases.items() if case.endswith(f"[{row.configuration}-{name}]")}
        return bool(cases) and all((exact or cases).values())


def checks_of(row: Row) -> tuple[str, ...]:
    return ((GENERIC,) if row.compared else ()) + row.tests


def table(simulated: Outcome, real: Outcome, stamp: dict[str, str], bench: list[Any]) -> dict[str, Any]:
    """The section for the document on fidelity; `bench` is the row of the load client."""
    rows: list[list[Any]] = []
    for name, row in ROWS.items():
        count = len(checks_of(row))
        ours = simulated.of(name, row) if count else NOT_RUN
        theirs = real.of(name, row) if count and row.configuration else NOT_RUN
        why = " ".join(filter(None, (simulated.reason(name, row), row.why)))
        rows.append([f"{name}", count, ours, theirs, why])
    later = [f"more/ ({len(MORE)} recorded later)", len(MORE), simulated.further(), real.further(), ""]
    return {
        "title": "vLLM: each recorded sample",
        "document": "fidelity",
        "order": 30,
        "about": (
            "Each file of the samples that a real vLLM 0.32.0 gave, against the simulated server and against a real "
            "vLLM again: status line, headers, every field of every answer and event, every family of the metrics. "
            "The same tests run on both; a field that cannot be equal is held to its type: the last column says why."
        ),
        "command": ".venv/bin/python -m tools.vllm.contract FOLDER --record",
        "stamp": stamp,
        "columns": ["sample", "tests", "simulated", "real", "explained"],
        "rows": [*rows, later, bench],
        "notes": [dict(zip(("what", "why", "evidence"), note, strict=True)) for note in KNOWN],
    }
