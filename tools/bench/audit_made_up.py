"""Made-up results with a fault of each kind that the audit detects, for readers without the published ones.

python -m tools.bench.audit_made_up FOLDER     writes them, a folder for each kind, to audit them by hand
python -m tools.bench.audit_made_up            the table of their findings, as Markdown
python -m tools.bench.audit_made_up --write    puts it into docs/audit.md

The servers are those of the audit's trials (`tools.bench.audit_trials`), the seeds are none of theirs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import tools.package_tests  # noqa: F401 - it finds the helpers
from bench_support.audit_clean import clean_case
from bench_support.audit_injected import inject
from bezel_bench.audit.findings import FINDINGS
from bezel_bench.audit.runner import audit_files
from tools.docs.generated_sections import ROOT, put

SEED = 3_000_000
CLEAN = "0-clean"


def write_all(folder: Path) -> dict[str, list[Path]]:
    """Write a faulty case of each kind, and a clean one; each folder's name with its files."""
    cases = {CLEAN: clean_case(SEED), **{str(kind): inject(kind, SEED).case for kind in FINDINGS}}
    written = {}
    for name, case in cases.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        written[name] = sorted(case.write(folder / name))
    return written


def table() -> str:
    """One row for each kind: how its fault was put in, and what the audit reports of it."""
    lines = ["| fault put in | how | reported | severity |\n|---|---|---|---|\n"]
    with tempfile.TemporaryDirectory() as folder:
        for name, files in write_all(Path(folder)).items():
            findings = audit_files(files).findings
            if name == CLEAN:
                lines.append(f"| none | | {len(findings)} findings | |\n")
                continue
            kind, how = int(name), inject(int(name), SEED).how.replace("_", " ")
            of_kind = next((one for one in findings if one.kind == kind), None)
            cells = (of_kind.arithmetic, of_kind.severity) if of_kind else ("nothing", "")
            lines.append(f"| {kind} {FINDINGS[kind]} | {how} | {' | '.join(cells)} |\n")
    return "".join(lines)


def main(arguments: list[str]) -> None:
    """Write the results, or print the table, or put it into its document."""
    folders = [Path(word) for word in arguments if not word.startswith("--")]
    if folders:
        count = sum(map(len, write_all(folders[0]).values()))
        sys.stdout.write(f"{count} files written below {folders[0]}\n")
    elif "--write" in arguments:
        put(ROOT / "docs" / "audit.md", "tools.bench.audit_made_up --write", table())
    else:
        sys.stdout.write(table())


if __name__ == "__main__":
    main(sys.argv[1:])
