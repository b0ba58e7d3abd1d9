"""Hit rate and false alarms of the audit: random errors injected into clean results, and clean ones, by held-out seeds.

python -m tools.bench.audit_trials            the table, as Markdown
python -m tools.bench.audit_trials --write    puts it into docs/audit.md

Thresholds were chosen with seeds below 10,000; the table is from the seeds starting at HELD_OUT.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import tools.package_tests  # noqa: F401 - it finds the helpers
from bench_support.audit_clean import clean_case
from bench_support.audit_grids import UNITS, clean_grid, overloaded_grid
from bench_support.audit_injected import INJECTIONS, inject
from bezel_bench.audit.findings import DRAIN, FINDINGS
from bezel_bench.audit.runner import audit_files
from tools.docs.generated_sections import ROOT, put

HELD_OUT = 2_000_000
CLEAN = 1000
EACH = 100
GRIDS = 120


def clean() -> tuple[int, Counter[str]]:
    """Number of clean cases with a finding, and number of cases of each kind."""
    accused, kinds = 0, Counter[str]()
    for seed in range(HELD_OUT, HELD_OUT + CLEAN):
        case = clean_case(seed)
        kinds[case.kind] += 1
        with tempfile.TemporaryDirectory() as folder:
            audit = audit_files(case.write(Path(folder)))
        accused += bool(audit.findings or audit.unreadable)
    return accused, kinds


def faulty(fault: int) -> tuple[Counter[str], Counter[str]]:
    """For each way of injecting an error: how often it was injected, and how often reported on the right item."""
    tried, detected = Counter[str](), Counter[str]()
    for seed in range(HELD_OUT, HELD_OUT + EACH):
        injection = inject(fault, seed)
        tried[injection.how] += 1
        with tempfile.TemporaryDirectory() as folder:
            audit = audit_files(injection.case.write(Path(folder)))
        detected[injection.how] += any(each.kind == fault and injection.item in each.items for each in audit.findings)
    return tried, detected


def findings_of(text: str) -> set[int]:
    """The kinds of findings reported for one grid."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.csv"
        path.write_text(text, encoding="utf-8")
        return {one.kind for one in audit_files([path]).findings}


def units() -> str:
    """Grids of the other model in every unit: clean ones, and overloaded ones that were drained or not."""
    lines = ["| unit | clean, accused | lost and drained, accused of 4 | not drained, found | precision | recall |\n"]
    lines.append("|---|---|---|---|---|---|\n")
    seeds = range(HELD_OUT, HELD_OUT + GRIDS)
    for unit in UNITS:
        clean_ = sum(bool(findings_of(clean_grid(seed).text(unit))) for seed in seeds)
        drained = sum(DRAIN in findings_of(overloaded_grid(seed, drained=True).text(unit)) for seed in seeds)
        left = [overloaded_grid(seed, drained=False) for seed in seeds]
        not_drained = sum(DRAIN in findings_of(grid.text(unit)) for grid in left)
        sure, share = f"{not_drained / (not_drained + clean_ + drained):.0%}", f"{not_drained / GRIDS:.0%}"
        counts = " | ".join(f"{number} of {GRIDS}" for number in (clean_, drained, not_drained))
        lines.append(f"| {unit} | {counts} | {sure} | {share} |\n")
    return "".join(lines)


def table() -> str:
    """One row for each kind of finding, and one for each unit."""
    lines = ["| fault | put in | found | ways: found of put in |\n|---|---|---|---|\n"]
    all_tried = all_found = 0
    for fault in INJECTIONS:
        tried, detected = faulty(fault)
        all_tried, all_found = all_tried + tried.total(), all_found + detected.total()
        ways = ", ".join(f"{how.replace('_', ' ')} {detected[how]}/{number}" for how, number in tried.items())
        lines.append(f"| {fault} {FINDINGS[fault]} | {tried.total()} | {detected.total()} | {ways} |\n")
    lines.append(f"| all | {all_tried} | {all_found} ({all_found / all_tried:.1%}) | |\n")
    accused, kinds = clean()
    of = ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items()))
    return "".join(lines) + f"\n{accused} of {kinds.total()} clean cases were accused ({of}).\n\n{units()}"


def main(flags: list[str]) -> None:
    """Print the table, or put it into its document."""
    if "--write" not in flags:
        sys.stdout.write(table())
        return
    put(ROOT / "docs" / "audit.md", "tools.bench.audit_trials --write", table())


if __name__ == "__main__":
    main(sys.argv[1:])
