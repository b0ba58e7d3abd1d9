"""Check for finding 12: chunks of a stream counted as tokens although speculation puts several into a chunk.

    tokens of a request = 1 + one for each step + accepted draft tokens; chunks = 1 + one for each step
    counted tokens = requests + drafts, where tokens = requests + drafts + accepted

Needs the source's statement of what was counted, or the server's counters of drafts beside the count.
"""

from collections.abc import Iterator

from bezel_bench.audit.findings import CHUNKS, AuditFinding, Rule
from bezel_bench.audit.table import AuditTable, Row

_WITHIN = 0.03
_APART = 1.10
_RULE = Rule(CHUNKS, "take the tokens from the server's usage (stream_options.include_usage) or its counters")


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield at most one finding for each item."""
    return _RULE.findings("contradiction", table.statements(), judge)


def judge(row: Row) -> str | None:
    """Return why the counted tokens of a row are chunks."""
    if row.counted and "chunk" in row.counted.lower() and row.system.speculation != "none":
        drafts = f"with {row.system.speculation}" if row.system.drafting else "with drafts, if there were any,"
        return f"{row.counted} were counted, and {drafts} one carries up to 1 + draft tokens: the rate is too low"
    counted = row.generated_tokens
    if not counted:
        return None
    if row.server_output_tokens and row.drafts and row.server_output_tokens > _APART * counted:
        server = row.server_output_tokens
        return f"{counted:,} tokens were counted, the server generated {server:,} with {row.drafts:,} drafts"
    if not (row.drafts and row.accepted and row.completed):
        return None
    steps, tokens = row.completed + row.drafts, row.completed + row.drafts + row.accepted
    if tokens < _APART * steps or abs(counted / steps - 1) > _WITHIN:
        return None
    return (
        f"{row.completed:,} requests + {row.drafts:,} steps = {steps:,} chunks, reported as {counted:,} tokens; with "
        f"{row.accepted:,} accepted draft tokens they are {tokens:,}"
    )
