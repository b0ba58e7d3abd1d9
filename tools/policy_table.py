"""Put the table of policies and their configuration into docs/policies.md: python tools/policy_table.py."""

import sys

from made_sections import ROOT, put

sys.path.insert(0, str(ROOT))

from policies.docs_table import policy_table

if __name__ == "__main__":
    put(ROOT / "docs" / "policies.md", "tools/policy_table.py", policy_table())
