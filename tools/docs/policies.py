"""Put the table of policies and their configuration into docs/policies.md: python -m tools.docs.policies."""

from policies.docs_table import policy_table
from tools.docs.generated_sections import ROOT, put

if __name__ == "__main__":
    put(ROOT / "docs" / "policies.md", "tools.docs.policies", policy_table())
