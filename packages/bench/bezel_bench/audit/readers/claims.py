"""Reader of claims: `{"claims": [{id, metric, value, unit, ...}]}`, or the list alone, with their context.

Every claim becomes a row too, so that the checks of rates apply to it. A claim is read from its fields: of its own
sentence only the options of vLLM that it cites are read.
"""

from collections.abc import Mapping
from typing import Any

from bezel_bench.audit.figure import StatedFigure, figure, number, whole
from bezel_bench.audit.systems import system_of
from bezel_bench.audit.table import LATENCIES, REQUESTS, TOKENS, Claim, ResultSource, Row
from bezel_bench.audit.units import rate_of
from bezel_bench.audit.words import names

# Fields that this reader or a check reads, beside the settings (names.toml) and the latencies.
_READ = {
    "id", "metric", "value", "unit", "text", "throughput_counts", "direction", "counted", "throughput", "req_per_s",
    "context", "context_tokens", "users", "output_tokens", "requests", "prompt_tokens", "cached_tokens",
    "generated_tokens", "drafts", "draft_tokens", "accepted", "timeout_s", "compared_with", "measured_on",
    "same_file_as", "same_file_for", "kv_gib", "kv_tokens", "kv_bytes_per_token", "runs", "price_per_h", "nature",
}  # fmt: skip
_SIDES = ("a", "b")
_CAPS = ("requests_cap", "client_limit", "client_cap", "pool_limit", "pool_size", "max_connections")
_SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3}


def is_claims(document: Any) -> bool:
    """Whether JSON is a list of claims."""
    named = isinstance(document, Mapping)
    claims = document.get("claims") if named else document
    if not isinstance(claims, list) or not claims:
        return False
    return all(isinstance(claim, Mapping) and (named or {"metric", "value"} <= claim.keys()) for claim in claims)


def read_claims(document: Any, item: str, label: str) -> ResultSource:
    """Return the claims of a document; their system comes from their fields, never from the file's name.

    Raises:
        ValueError: two claims have one id.
    """
    del label
    fields = document["claims"] if isinstance(document, Mapping) else document
    claims = [_claim(claim, index) for index, claim in enumerate(fields)]
    ids = [claim.item for claim in claims]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise ValueError(f"several claims have the id {', '.join(twice)}")
    around = document if isinstance(document, Mapping) else {}
    left = dict.fromkeys(str(name) for name in around if name != "claims")
    left |= dict.fromkeys(name for claim in fields for name in _unread(claim))
    return ResultSource(item=item, format="claims", claims=tuple(claims), unread=tuple(left))


def _unread(claim: Mapping[str, Any]) -> list[str]:
    """Return the fields of a claim and of its sides that nothing reads."""
    read = {*_READ, *_SIDES, *_CAPS, *LATENCIES, *(name for aliases in names("settings").values() for name in aliases)}
    left = [str(name) for name, value in claim.items() if name not in read and value not in (None, "")]
    sides = [(side, claim[side]) for side in _SIDES if isinstance(claim.get(side), Mapping)]
    return left + [f"{side}.{name}" for side, fields in sides for name in fields if name not in read]


def _claim(fields: Mapping[str, Any], index: int) -> Claim:
    name = str(fields.get("id") or f"claim {index + 1}")
    metric, unit, raw = str(fields.get("metric", "")).lower(), str(fields.get("unit") or ""), fields.get("value")
    value = figure(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else None
    row = _row(fields, name, metric, unit, value, index)
    sides = tuple(
        _row(side, f"{name}: {key}", "", "", None, index)
        for key in _SIDES
        if isinstance(side := fields.get(key), Mapping)
    )
    return Claim(item=name, metric=metric, value=value, unit=unit, fields=fields, row=row, sides=sides)


def _row(fields: Mapping[str, Any], where: str, metric: str, unit: str, value: StatedFigure | None, order: int) -> Row:
    figures: dict[str, StatedFigure] = {}
    direction = str(fields.get("throughput_counts") or fields.get("direction") or "")
    counts = "" if direction in ("not stated", "unknown") else direction
    if not counts and "chunk" in str(fields.get("counted")).lower():
        counts = "output"  # prompts are not streamed in chunks
    if value and metric in LATENCIES and unit in _SECONDS:
        figures[metric] = value.scale(_SECONDS[unit])
    elif value and (rate := rate_of(unit, counts)):
        figures[rate] = value
    for name in LATENCIES:
        if name not in figures and (parsed := figure(fields.get(name))):
            figures[name] = parsed
    if "throughput" in fields and (parsed := figure(fields["throughput"])):
        # Beside a success rate the throughput is one of requests; beside a cost it is one of tokens.
        figures[rate_of("tok/s", counts) or TOKENS if counts or "cost" in metric else REQUESTS] = parsed
    if "req_per_s" in fields and (parsed := figure(fields["req_per_s"])):
        figures[REQUESTS] = parsed
    success = value.scale(0.01) if value and metric.startswith("success") and unit == "%" else None
    return Row(
        where=where,
        order=order,
        context=whole(fields.get("context", fields.get("context_tokens"))),
        users=whole(fields.get("users")),
        output_tokens=whole(fields.get("output_tokens")),
        success=success,
        figures=figures,
        requests=whole(fields.get("requests")),
        prompt_tokens=whole(fields.get("prompt_tokens")),
        cached_tokens=whole(fields.get("cached_tokens")),
        generated_tokens=whole(fields.get("generated_tokens")),
        drafts=whole(fields.get("drafts")),
        draft_tokens=whole(fields.get("draft_tokens")),
        accepted=whole(fields.get("accepted")),
        timeout=number(fields.get("timeout_s")),
        cap=next((whole(fields[name]) for name in _CAPS if name in fields), None),
        counted=str(fields["counted"]) if fields.get("counted") else None,
        system=system_of(fields),
    )
