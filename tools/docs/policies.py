"""Put the tables of policies and of understood requests into docs/policies.md: python -m tools.docs.policies."""

from bezel_policies.docs_table import policy_table, request_table
from tools.docs.generated_sections import ROOT, put

if __name__ == "__main__":
    document = ROOT / "docs" / "policies.md"
    put(document, "tools.docs.policies", policy_table())
    put(document, "tools.docs.policies requests", request_table())
