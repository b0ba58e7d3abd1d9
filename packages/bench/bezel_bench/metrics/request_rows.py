"""Rows of a load's requests: one each, with its instants, its latencies and its counts, for tables and data frames.

    pandas.read_csv("requests.csv")    pandas.read_json("requests.jsonl", lines=True)

Owns the columns; `docs/metrics.md` lists `COLUMNS`. What is unknown is None: never 0, and never a latency of a failed
request. Leaves out the definitions of latencies (bezel_bench.metrics.metric_inputs) and the file of the raw samples.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bezel_bench.metrics.metric_inputs import latencies_of
from bezel_bench.result.columns import Columns, Flags, Floats
from bezel_bench.result.document import Cell
from bezel_bench.result.sample import KINDS

COLUMNS = {
    "cell": "id of the load in the result",
    "index": "index of the request in the plan, from 0",
    "worker": "process that sent it",
    "user": "user of a closed loop, or connection",
    "turn": "turn of a conversation, from 0",
    "group": "group of a shared prefix; empty for none",
    "failure": "kind of its failure; empty for a success",
    "status": "HTTP status; empty for none",
    "counted": "whether it is in the figures: it succeeded and ended in the part that counts",
    "planned_s": "instant at which it should have been sent, in seconds from the start of the load",
    "sent_s": "instant at which its bytes were given to the kernel",
    "first_s": "instant of its first token with a text",
    "done_s": "instant at which its response was complete, or had failed",
    "wait_ms": "time from the planned instant to the sending",
    "ttft_ms": "time to the first token, of an open loop from the planned instant",
    "ttfc_ms": "time to the first token of content, from the same instant",
    "tpot_ms": "time for each further token",
    "e2e_ms": "time to the last token, from the same instant",
    "prompt_tokens": "by usage, cached ones included",
    "output_tokens": "by usage, reasoning included",
    "cached_tokens": "by usage",
    "reasoning_tokens": "by usage",
    "asked_tokens": "max_tokens of the request",
    "chunks": "chunks with a token",
}
GAPS = "gaps_ms"
"""Column of JSON alone: the list of the times between neighbouring chunks."""
_COUNTS = ("prompt_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "asked_tokens")
_LATENCIES = ("ttft", "ttfc", "tpot", "e2e")


def request_rows(cell: Cell, rows: Columns, began: int, *, gaps: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the requests of a cell in the order of its samples.

    Args:
        cell: A measured cell.
        rows: Its samples.
        began: The origin of their instants.
        gaps: Whether each has `GAPS`.
    """
    pattern = (cell.load or {}).get("pattern", {})
    is_closed = cell.pattern == "closed" or pattern.get("of") == "users"
    succeeded = rows.failure == 0
    spans, has = latencies_of(rows, open_loop=not is_closed)
    sent = rows["sent"] > 0
    columns: dict[str, list[Any]] = {
        "cell": [cell.id] * len(rows),
        **{name: rows[name].tolist() for name in ("index", "worker", "user", "turn")},
        "group": _values_or_none(rows["group"].astype(np.float64), rows["group"] >= 0, whole=True),
        "failure": [("", *KINDS)[code] for code in rows.failure.tolist()],
        "status": _values_or_none(rows["status"].astype(np.float64), rows["status"] > 0, whole=True),
        "counted": (_counts(cell, rows, began) & succeeded).tolist(),
        **{
            f"{name}_s": _values_or_none((rows[name] - began) / 1e9, rows[name] > 0)
            for name in ("planned", "sent", "first", "done")
        },
        "wait_ms": _values_or_none((rows["sent"] - rows["planned"]) / 1e6, sent),
        **{f"{name}_ms": _values_or_none(spans[name] / 1e6, has[name] & succeeded) for name in _LATENCIES},
        **{name: _values_or_none(rows[name].astype(np.float64), rows[name] >= 0, whole=True) for name in _COUNTS},
        "chunks": rows.chunk_counts.tolist(),
    }
    if gaps:
        pairs = np.cumsum(np.maximum(rows.chunk_counts - 1, 0))
        columns[GAPS] = [(part / 1e6).tolist() for part in np.split(rows.gaps(), pairs[:-1])] if len(rows) else []
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _counts(cell: Cell, rows: Columns, began: int) -> Flags:
    """Which requests ended in the part of the load that counts."""
    if cell.window is None:
        return np.zeros(len(rows), np.bool_)
    begins, ends = round(began + cell.window.begins * 1e9), round(began + cell.window.ends * 1e9)
    # An uncut load counts from its start on.
    is_cut = cell.window.requests_before or cell.window.requests_after
    after: Flags = rows["done"] > begins if is_cut else rows["done"] >= begins
    return after & (rows["done"] <= ends)


def _values_or_none(values: Floats, is_set: Flags, *, whole: bool = False) -> list[Any]:
    """The values, None where they are unknown."""
    return [
        (int(value) if whole else value) if has_value else None
        for value, has_value in zip(values.tolist(), is_set.tolist(), strict=True)
    ]
