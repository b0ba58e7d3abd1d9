"""Put the tables of policies and of understood requests into docs/policies.md: python -m tools.docs.policies."""

from tools.docs.generated_sections import ROOT, put
from tools.docs.policy_tables import policy_table, request_table

if __name__ == "__main__":
    document = ROOT / "docs" / "policies.md"
    put(document, "tools.docs.policies", policy_table())
    put(document, "tools.docs.policies requests", request_table())
