"""Tables that tools/bench/compare_rates.py puts into docs/benchmarks.md. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tools.bench.clients.client_tables import key_of, names, spread, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.bench.clients.load_client import ClientFigures
    from tools.bench.clients.server_clocks import ServedLoad

_SWEEP = ("requests_per_second", "output_tokens_per_second", "ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99")
_FIGURES = (
    *("requests_per_second", "tokens_per_second", "ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99"),
    *("itl_p50", "itl_p99", "ttft_over_ms", "tpot_over_ms"),
)


def figures(measured: ClientFigures, seen: ServedLoad) -> dict[str, Any]:
    """A client's figures of all requests, what the server counted, and the client's means less the server's."""
    values = {"ttft": measured.ttft_ms, "tpot": measured.tpot_ms, "itl": measured.itl_ms}
    percentiles = {
        f"{name}_p{share}": float(np.percentile(list_, share)) if list_ else None
        for name, list_ in values.items()
        for share in (50, 99)
    }
    return percentiles | {
        "requests": measured.answered,
        "tokens": measured.tokens,
        "served_requests": seen.requests,
        "served_tokens": seen.tokens,
        "requests_per_second": measured.answered / measured.seconds,
        "tokens_per_second": measured.tokens / measured.seconds,
        "ttft_over_ms": mean_over(measured.ttft_ms, seen.ttft_ms),
        "tpot_over_ms": mean_over(measured.tpot_ms, seen.tpot_ms),
        "state": measured.state,
    }


def mean_over(values: Sequence[float], server_mean: float | None) -> float | None:
    """The mean of values less the server's own mean."""
    return float(np.mean(values)) - server_mean if values and server_mean is not None else None


def sweep_table(cells: Sequence[dict[str, Any]]) -> str:
    """The sweep's loads, as `bezel-bench rates` measured them."""
    heads = ("load", "requests/s", "output tokens/s", "TTFT p50, ms", "p99", "TPOT p50, ms", "p99", "state")
    rows = [
        [
            f"{cell['rate']:g} requests/s" if cell["rate"] else f"{cell['users']} user{'s' * (cell['users'] > 1)}",
            *(spread([cell["metrics"][name]["value"]], "{:,.2f}") for name in _SWEEP),
            cell["state"],
        ]
        for cell in cells
    ]
    return table(heads, rows)


def rates_table(rows: Sequence[dict[str, Any]]) -> str:
    """Each client at each rate: medians of the rounds, least to most."""
    heads = (
        *("rate, client", "requests/s", "output tokens/s", "TTFT p50, ms", "p99", "TPOT p50, ms", "p99"),
        *("ITL p50, ms", "p99", "mean TTFT over the server's, ms", "mean TPOT over the server's, ms"),
        *("requests, by the server", "tokens, by the server"),
    )
    cells = []
    for rate in sorted({row["rate"] for row in rows}):
        for client in names(rows):
            runs = [row for row in rows if row["client"] == client and row["rate"] == rate]
            cells.append(
                [
                    f"{rate:g}/s, {client}",
                    *(spread([key_of(name)(run) for run in runs], "{:,.2f}") for name in _FIGURES),
                    *(count_pair(runs, name) for name in ("requests", "tokens")),
                ]
            )
    return table(heads, cells)


def count_pair(runs: Sequence[dict[str, Any]], name: str) -> str:
    """The client's count of all rounds, and the server's."""
    client, server = (sum(run[key] for run in runs) for key in (name, f"served_{name}"))
    return f"{client:,}, {server:,}"
