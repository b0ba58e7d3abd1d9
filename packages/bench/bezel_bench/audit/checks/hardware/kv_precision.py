"""Check for finding 15: a stated precision of the KV cache that the memory figures refute.

    bytes per token = GiB for the cache x 2^30 / tokens it holds
    against 2 x element x (sliding layers x heads x dim + full layers x heads x dim), heads copied to every chip

Reported only where the bytes match another element size within 5 % and fit the stated one in no layout. Needs the
model, the figures and the number of chips that share the cache.
"""

from collections.abc import Iterator

from bezel_bench.audit.figure import figure, number
from bezel_bench.audit.findings import KV_PRECISION, AuditFinding, Rule
from bezel_bench.audit.table import AuditTable, Claim
from bezel_bench.audit.words import count
from bezel_catalog import Architecture
from bezel_catalog.sizing.kv_cache import KV_ELEMENT_BYTES, layers_bytes

_WITHIN = 0.05
_APART = 0.25
_NAMES = {1: "8 bits", 2: "16 bits"}
_RULE = Rule(KV_PRECISION, "give the precision that the server logged, or the figures of the claimed one")


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield findings for claims with figures of the cache."""
    for claim in table.claims:
        if text := _contradiction(claim):
            yield _RULE.finding("contradiction", claim.item, text)


def _contradiction(claim: Claim) -> str | None:
    system = claim.row.system
    claimed = str(claim.fields.get("value") if claim.metric.startswith("kv") else system.kv_dtype or "").lower()
    element = KV_ELEMENT_BYTES.get(claimed)
    token = _token_bytes(claim)
    if element is None or token is None or system.shape is None:
        return None
    shards = system.tensor_parallel or (system.machine.chips if system.machine else 1)
    fits = {size: _layouts(system.shape, size, shards) for size in _NAMES}
    other = next(
        (
            size
            for size in fits
            if size != element and any(abs(token / layout_bytes - 1) <= _WITHIN for layout_bytes in fits[size])
        ),
        None,
    )
    if other is None or any(abs(token / layout_bytes - 1) <= _APART for layout_bytes in fits[element]):
        return None
    expected = min(fits[other], key=lambda layout_bytes: abs(token / layout_bytes - 1))
    gib, tokens = figure(claim.fields.get("kv_gib")), figure(claim.fields.get("kv_tokens"))
    origin = f"{gib.value:g} GiB / {tokens.value:,.0f} tokens = " if gib and tokens else ""
    return (
        f"{origin}{token:,.0f} B a token; {system.shape.id} on {count(shards, 'chip')} takes {expected:,} B in "
        f"{_NAMES[other]} and {expected * element // other:,} B in {_NAMES[element]}: {claimed} is claimed, "
        f"{_NAMES[other]} were used"
    )


def _token_bytes(claim: Claim) -> float | None:
    gib, tokens = figure(claim.fields.get("kv_gib")), figure(claim.fields.get("kv_tokens"))
    if gib and tokens and tokens.value:
        return gib.value * 2**30 / tokens.value
    return number(claim.fields.get("kv_bytes_per_token"))


def _layouts(shape: Architecture, element: int, shards: int) -> tuple[int, ...]:
    """Return bytes of one token on all chips, copied heads included, and on one chip, as vLLM on CUDA logs it."""
    single = layers_bytes(shape, 1, 1, element_bytes=element, shards=shards)
    return single * shards, single
