"""Puts the table of policies and their configuration into docs/policies.md: python tools/policy_table.py."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from policies.table import policy_table  # noqa: E402

MARK = "<!-- made by: .venv/bin/python tools/policy_table.py -->\n"

if __name__ == "__main__":
    document = ROOT / "docs" / "policies.md"
    before, _, rest = document.read_text(encoding="utf-8").partition(MARK)
    _, end, after = rest.partition("<!-- end -->")
    document.write_text(before + MARK + policy_table() + end + after, encoding="utf-8")
