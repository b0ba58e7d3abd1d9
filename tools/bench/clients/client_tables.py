"""Tables that tools/bench/compare_clients.py puts into docs/benchmarks.md. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING, Any

from tools.bench.clients.compared_loads import LOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.bench.clients.result_file import Results

    Figure = Callable[[dict[str, Any]], float | None]

BUSY_CORES = 0.2
"""Share of a core from which other work makes a measurement a busy one."""
_ENOUGH = 3
"""Measurements on an idle machine from which the busy ones are left out."""
ACCURACY = ("64", "256", "1024", "beyond", "tls")
NATIVE = "vllm-rs"
RATIOS = (
    ("CPU a request", "requests", "requests-short", "answered"),
    ("CPU a chunk", "256", "256-short", "true_tokens"),
    ("CPU of a million tokens", "long", "", "cpu_seconds"),
    ("memory", "long", "", "memory_mib"),
    ("CPU of 96 requests", "small", "", "cpu_seconds"),
    ("TTFT error p99, 64 users", "64", "", "ttft_ms_p99"),
    ("256 users", "256", "", "ttft_ms_p99"),
    ("1,024 users", "1024", "", "ttft_ms_p99"),
    ("beyond saturation", "beyond", "", "ttft_ms_p99"),
)
"""Title of a ratio, load, short load of a difference, figure."""


def markdown_tables(results: Results) -> str:
    """All tables, as Markdown."""
    rows = results.rows
    titles = {load.name: load.title for load in LOADS}
    parts = [
        f"Measured until {results.measured} on {results.machine}. {idle_words(rows)}",
        cost_table(rows),
        small_table(rows),
        long_table(rows),
        *(accuracy_table(rows, name, titles[name]) for name in ACCURACY if any(row["load"] == name for row in rows)),
        streams_words(rows),
        ratio_table(rows),
        commands(results.commands),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def idle_words(rows: Sequence[dict[str, Any]]) -> str:
    """How many of the measurements were made beside other work."""
    busy = sum(row["others"] > BUSY_CORES for row in rows)
    rounds = max((row["round"] for row in rows), default=0)
    return (
        f"Rounds: up to {rounds}. Beside other work (more than {BUSY_CORES:g} of a core): {busy} of {len(rows)} runs."
    )


def cost_table(rows: Sequence[dict[str, Any]]) -> str:
    """CPU time of a request and of a chunk, and requests per second."""
    heads = ("CPU", "µs a request", "requests/s of one core, 64 users", "server busy", "µs a chunk, 256 users", "runs")
    cells = []
    for client in names(rows):
        mine = of_client(rows, client)
        pairs = by_round(mine, "requests", "requests-short")
        cells.append(
            [
                client,
                spread([*values_by_round(mine, "requests", "requests-short", "answered").values()], "{:,.1f}")
                or failure_words(mine, "requests"),
                spread([long["answered"] / long["true_seconds"] for long, _ in pairs], "{:,.0f}"),
                spread([long["server_cpu_seconds"] / long["true_seconds"] for long, _ in pairs], "{:.0%}"),
                spread([*values_by_round(mine, "256", "256-short", "true_tokens").values()], "{:,.1f}")
                or failure_words(mine, "256"),
                f"{len(pairs)}, {len(by_round(mine, '256', '256-short'))}",
            ]
        )
    return table(heads, cells)


def small_table(rows: Sequence[dict[str, Any]]) -> str:
    """What a small run takes."""
    heads = ("96 requests of 8 users", "first request after, s", "CPU s until then", "CPU s in all", "MiB", "runs")
    keys = ("first_seconds", "first_cpu_seconds", "cpu_seconds", "memory_mib")
    return load_table(
        rows, "small", heads, [(key_of(key), "{:,.2f}") for key in keys[:3]] + [(key_of(keys[3]), "{:,.0f}")]
    )


def long_table(rows: Sequence[dict[str, Any]]) -> str:
    """What a million tokens take."""
    heads = ("a million tokens, 256 users", "wall s", "CPU s", "MiB", "runs")
    forms = [(key_of("seconds"), "{:,.1f}"), (key_of("cpu_seconds"), "{:,.1f}"), (key_of("memory_mib"), "{:,.0f}")]
    return load_table(rows, "long", heads, forms)


def accuracy_table(rows: Sequence[dict[str, Any]], load: str, title: str) -> str:
    """Errors against the server's own log."""
    heads = (
        *(title, "TTFT error p50, ms", "p99, ms", "request by request p99, ms", "ITL error p50, ms", "p99, ms"),
        *("TPOT error", "tokens/s error", "says of itself", "runs"),
    )
    forms = [
        *((key_of(key), "{:,.2f}") for key in ("ttft_ms_p50", "ttft_ms_p99", "paired_ms_p99")),
        *((key_of(key), "{:,.2f}") for key in ("itl_ms_p50", "itl_ms_p99")),
        *((key_of(key), "{:+.2%}") for key in ("tpot", "throughput")),
    ]
    return load_table(rows, load, heads, forms, with_states=True)


def ratio_table(rows: Sequence[dict[str, Any]]) -> str:
    """Each client's figures as a multiple of the native client's in the same round: the machine's pace is in both."""
    native = next((client for client in names(rows) if client.startswith(NATIVE)), None)
    if native is None:
        return ""
    its = [values_by_round(of_client(rows, native), *figure) for _, *figure in RATIOS]
    cells = []
    for client in names(rows):
        mine = [values_by_round(of_client(rows, client), *figure) for _, *figure in RATIOS]
        if client != native:
            ratios = [
                [value / base[round_] for round_, value in values.items() if base.get(round_)]
                for values, base in zip(mine, its, strict=True)
            ]
            cells.append([client, *(spread(values, "{:,.2f}") for values in ratios)])
    return table((f"multiple of {NATIVE}'s in the same round", *(title for title, *_ in RATIOS)), cells)


def load_table(
    rows: Sequence[dict[str, Any]],
    load: str,
    heads: Sequence[str],
    figures: Sequence[tuple[Figure, str]],
    *,
    with_states: bool = False,
) -> str:
    """A row for each client that sent a load; a client that did not end is one, too."""
    cells = []
    for client in names(rows):
        all_runs = [row for row in of_client(rows, client) if row["load"] == load]
        if not all_runs:
            continue
        runs = idle([row for row in all_runs if "failed" not in row])
        values = [spread([figure(run) for run in runs], form) for figure, form in figures]
        if not runs:
            values[0] = failure_words(all_runs, load)
        state_cells = [states_words(runs)] if with_states else []
        cells.append([client, *values, *state_cells, str(len(runs))])
    return table(heads, cells) if cells else ""


def states_words(runs: Sequence[dict[str, Any]]) -> str:
    """The states that a client gave its loads, and what it left out of a load."""
    states = Counter(run["state"] for run in runs if run["state"])
    states |= Counter(
        f"sent {run['arrived']} of {run['requests']}:" for run in runs if run["arrived"] != run["requests"]
    )
    return ", ".join(f"{state} {count}" for state, count in states.most_common())


def streams_words(rows: Sequence[dict[str, Any]]) -> str:
    """Each client with 10,000 streams at once, in a line."""
    lines = []
    for client in names(rows):
        runs = [row for row in of_client(rows, client) if row["load"] == "streams"]
        good = [run for run in runs if "failed" not in run]
        if good:
            lines.append(
                f"- {client}: {spread([run['answered'] for run in good], '{:,.0f}')} answered, "
                f"{spread([run['at_once'] for run in good], '{:,.0f}')} at once, "
                f"{spread([run['memory_mib'] for run in good], '{:,.0f}')} MiB, "
                f"{spread([run['cpu_seconds'] for run in good], '{:,.1f}')} CPU s, "
                f"TTFT error p99 {spread([run['ttft_ms_p99'] for run in good], '{:,.2f}')} ms"
            )
        elif runs:
            lines.append(f"- {client}: {failure_words(runs, 'streams')}")
    return "\n".join(["**10,000 streams at once**, 20 tokens, one a second:", "", *lines]) if lines else ""


def commands(lines: dict[str, str]) -> str:
    """The command line of each client for 256 users."""
    return "The commands, for 256 users:\n\n```text\n" + "\n\n".join(lines.values()) + "\n```" if lines else ""


def names(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The clients, in the order of their first measurement."""
    return list(dict.fromkeys(row["client"] for row in rows))


def of_client(rows: Sequence[dict[str, Any]], client: str) -> list[dict[str, Any]]:
    """The measurements of a client."""
    return [row for row in rows if row["client"] == client]


def by_round(rows: Sequence[dict[str, Any]], long: str, short: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """A client's long and short runs of the same round, where both have figures; without the busy ones."""
    good = {(row["load"], row["round"]): row for row in rows if "failed" not in row}
    pairs = [
        (row, good[short, round_]) for (load, round_), row in good.items() if load == long and (short, round_) in good
    ]
    quiet = [pair for pair in pairs if max(run["others"] for run in pair) <= BUSY_CORES]
    return quiet if len(quiet) >= _ENOUGH else pairs


def idle(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs beside which nothing else used the machine, if they are enough; else all."""
    quiet = [run for run in runs if run["others"] <= BUSY_CORES]
    return quiet if len(quiet) >= _ENOUGH else runs


def values_by_round(rows: Sequence[dict[str, Any]], load: str, short: str, key: str) -> dict[int, float]:
    """A figure of a client's runs by round; with a short load, µs of CPU for each more of what `key` counts."""
    if short:
        return {pair[0]["round"]: marginal_us(*pair, key) for pair in by_round(rows, load, short)}
    runs = idle([row for row in rows if row["load"] == load and "failed" not in row])
    return {run["round"]: run[key] for run in runs}


def marginal_us(long: dict[str, Any], short: dict[str, Any], count: str) -> float:
    """CPU time, in µs, of what the long run did more than the short one: the start is in both."""
    return float((long["cpu_seconds"] - short["cpu_seconds"]) / (long[count] - short[count]) * 1e6)


def failure_words(runs: Sequence[dict[str, Any]], load: str) -> str:
    """Why a client has no figure of a load."""
    return next((row["failed"] for row in reversed(runs) if row["load"] == load and "failed" in row), "not measured")


def key_of(key: str) -> Figure:
    """The figure of that key."""
    return lambda run: run[key]


def spread(values: Sequence[float | None], form: str) -> str:
    """Median (least to most), or the one value; "" where there is none."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return ""
    middle, least, most = (form.format(value) for value in (statistics.median(numbers), min(numbers), max(numbers)))
    return middle if least == most else f"{middle} ({least} to {most})"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column names, the others are numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
