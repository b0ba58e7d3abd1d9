"""Tables that tools/bench/compare_clients.py puts into docs/benchmarks.md. Pure."""

from __future__ import annotations

from typing import Any

OWN = "bezel"


def markdown_tables(results: dict[str, Any]) -> str:
    """All tables, as Markdown."""
    how = (
        "idle"
        if results["idle"]
        else f"**not idle** (load {results['load_before']:.1f}): others' work slowed every client down"
    )
    start, streams = results["start"], results["streams"]
    size = (
        f"**{streams['count']:,} streams at once for {streams['seconds']:.0f} s** (a token a second each): "
        f"{streams['answered']:,} answered, {sum(streams['failures'].values())} failed, {streams['at_once']:,} at "
        f"once, {streams['memory_mib']:.0f} MiB at most, {streams['cpu_share']:.0%} of a core."
    )
    begin = (
        f"**Start**: {start['import']:.2f} s to import the engine, {start['first_request']:.2f} s from the start of "
        "the process to the first request at the server."
    )
    parts = [
        f"Measured {results['measured']} on {results['machine']}; {how}. Rounds: {results['rounds']}.",
        speed(results["speed"]),
        *(truth(name, client_errors) for name, client_errors in results["truth"].items()),
        size,
        begin,
    ]
    return "\n\n".join(parts) + "\n"


def speed(results: dict[str, dict[str, Any]]) -> str:
    """Requests per second, and the engine's lead."""
    own_levels = results[OWN]
    rows = []
    for name, levels in results.items():
        cells = [name]
        for users in ("64", "1024"):
            if level := levels.get(users):
                lead, less = "", ""
                if name != OWN:
                    lead = f" ({own_levels[users]['rate'] / level['rate']:.0f} x)"
                    less = f" ({level['cpu_us'] / own_levels[users]['cpu_us']:.0f} x)"
                cells += [f"{level['rate']:,.0f}{lead}", f"{level['cpu_us'] / 1e3:.3f}{less}"]
            else:
                cells += ["not measured", ""]
        rows.append(cells)
    heads = [
        *("streams of one token", "requests/s, 64 users", "CPU s per 1,000"),
        *("requests/s, 1,024 users", "CPU s per 1,000"),
    ]
    return table(heads, rows)


def truth(name: str, results: dict[str, dict[str, Any]]) -> str:
    """Errors against the server's own log."""
    rows = []
    for client, errors in results.items():
        paired = errors["paired_ms_p99"]
        rows.append(
            [
                client,
                f"{errors['ttft_ms_p50']:.2f} / {errors['ttft_ms_p99']:.2f}",
                "" if paired is None else f"{errors['paired_ms_p50']:.2f} / {paired:.2f}",
                "" if errors["tpot"] is None else f"{errors['tpot']:+.3%}",
                f"{errors['throughput']:+.2%}",
                f"{errors['tokens']:+.2%}",
                f"{errors['cpu_us_per_chunk']:.1f}",
                {None: "", True: "client_limited", False: "ok"}[errors["limited"]],
            ]
        )
    heads = [
        *(name, "TTFT error p50 / p99, ms", "request by request", "TPOT error"),
        *("tokens/s error", "token count error", "CPU µs per chunk", "says of itself"),
    ]
    return table(heads, rows)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table: the first column names, the others are numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
