"""Check for finding 6: a length limit reported as another failure ("out of memory" or "timeout" of a too long prompt).

    context + output tokens > max-model-len     the server refuses it with a 400 at any load

In a grid it shows as a context at which every load fails alike, even a single user, while the next shorter one works.
Needs the reported cause and max-model-len, or the grid.
"""

from collections.abc import Iterator

from bezel_bench.audit.findings import LENGTHS, AuditFinding, Rule
from bezel_bench.audit.table import AuditTable, ResultSource, Row
from bezel_bench.audit.words import count, group_by
from bezel_catalog.sizing.kv_cache import engine_kv_bytes

_MEMORY = ("oom", "out of memory", "out-of-memory")
_WAITING = ("timeout", "timed out", "time-out", "deadline exceeded")
_LOADS = 3
_RULE = Rule(LENGTHS, "report it as infeasible, with the rule, or raise max-model-len and measure it")


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield findings for claims of a cause, rows with one, and contexts that fail at every load."""
    for claim in table.claims:
        if str(claim.fields.get("value")).lower() in (*_MEMORY, *_WAITING) and (text := _why_too_long(claim.row)):
            yield _RULE.finding("contradiction", claim.item, text)
    for source in table.sources:
        refuted = [(row, text) for row in source.rows if _another_cause(row) and (text := _why_too_long(row))]
        if refuted:
            yield _RULE.finding("contradiction", source.item, refuted[0][1], (row for row, _ in refuted))
        yield from _cliff(source, {row.order for row, _ in refuted})


def _another_cause(row: Row) -> bool:
    """Whether a row reports that it failed for memory or time, and for nothing else."""
    cause = f"{row.state} {row.reason}".lower()
    return any(word in cause for word in (*_MEMORY, *_WAITING)) and "max" not in row.reason.lower()


def _why_too_long(row: Row) -> str | None:
    """Return why the length was the cause and not the memory."""
    limit, output = row.system.max_model_len, row.output_tokens
    if row.context is None or limit is None or row.context + (output or 1) <= limit:
        return None
    length = (
        f"{row.context} + {count(output, 'output token')}" if output else f"{row.context} and at least 1 output token"
    )
    text = f"{length} exceed max-model-len {limit}: the request was refused for its length"
    shape, machine = row.system.shape, row.system.machine
    if shape and machine and not machine.tpu:
        gib = engine_kv_bytes(shape, row.context, element_bytes=2, in_flight=1) / 1024**3
        text += (
            f"; the cache of one such sequence takes {gib:.2f} GiB of {machine.memory_bytes / 1024**3:.1f} in 16 bits"
        )
    return text


def _cliff(source: ResultSource, reported_orders: set[int]) -> Iterator[AuditFinding]:
    placed = [row for row in source.rows if row.context is not None and row.users is not None]
    contexts = group_by(placed, lambda row: row.context or 0)
    for shorter, context in zip(sorted(contexts), sorted(contexts)[1:], strict=False):
        rows, before = contexts[context], contexts[shorter]
        if (
            len(rows) < _LOADS
            or {row.order for row in rows} & reported_orders
            or not all(_has_failed(row) for row in rows)
        ):
            continue
        if all(_has_failed(row) for row in before) or not any(row.state in (None, "ok", *_MEMORY) for row in rows):
            continue  # a failure that is recorded as such is no error of the result
        fewest = count(min(row.users or 0 for row in rows), "user")
        text = (
            f"at {context} tokens all {len(rows)} loads fail alike, {fewest} too, while {shorter} tokens work: no load "
            f"causes that, a limit of length does (max-model-len {context} leaves no room for an output token)"
        )
        yield _RULE.finding("suspect", source.item, text, rows)


def _has_failed(row: Row) -> bool:
    return row.success is not None and row.success.value == 0
