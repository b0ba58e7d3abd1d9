"""Table of the audit's findings in a folder of published results: every CSV and JSON file below it, audited together.

python -m tools.bench.audit_published FOLDER            the table, as Markdown
python -m tools.bench.audit_published FOLDER --write    puts it into docs/audit.md

The folder is not copied; only the table is stored.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bezel_bench.audit.findings import FINDINGS
from bezel_bench.audit.runner import Audit, audit_files
from tools.docs.generated_sections import ROOT, put


def table(audit: Audit) -> str:
    """One row for each kind of finding and item, in the order of the kinds; then the items without findings."""
    lines = ["| kind | item | finding | severity |\n|---|---|---|---|\n"]
    for kind, name in FINDINGS.items():
        for finding in (one for one in audit.findings if one.kind == kind):
            items = ", ".join(f"`{item}`" for item in finding.items)
            lines.append(f"| {kind} {name} | {items} | {finding.arithmetic} | {finding.severity} |\n")
    accused = {finding.items[0] for finding in audit.findings}
    claims = [one.item for one in audit.sources if not one.claims]
    claims += [claim.item for source in audit.sources for claim in source.claims]
    missing = [name for kind, name in FINDINGS.items() if kind not in {one.kind for one in audit.findings}]
    silent = ", ".join(f"`{item}`" for item in claims if item not in accused) or "none"
    rest = "".join(f"- `{one.item}`: {one.text}.\n" for one in audit.questions)
    total = f"{len(audit.findings)} findings in {len(accused)} of {len(claims)} items. "
    return (
        f"{''.join(lines)}\n{total}Items without a finding of their own: {silent}. Kinds that do not occur: "
        f"{', '.join(missing) or 'none'}.\n\nNot judged, for lack of data:\n\n{rest or '- nothing'}"
    )


def main(arguments: list[str]) -> None:
    """Print the table, or put it into its document."""
    folders = [Path(word) for word in arguments if not word.startswith("--")]
    if len(folders) != 1 or not folders[0].is_dir():
        raise SystemExit("name one folder of results: python -m tools.bench.audit_published FOLDER [--write]")
    audit = audit_files(sorted(path for path in folders[0].rglob("*") if path.suffix in (".csv", ".json")))
    if audit.unreadable:
        raise SystemExit("\n".join(audit.unreadable))
    if "--write" not in arguments:
        sys.stdout.write(table(audit))
        return
    put(ROOT / "docs" / "audit.md", "tools.bench.audit_published FOLDER --write", table(audit))


if __name__ == "__main__":
    main(sys.argv[1:])
