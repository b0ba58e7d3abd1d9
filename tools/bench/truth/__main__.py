"""Prove the load client: `bezel bench run` against a server that knows the truth, through and beyond saturation.

    make truth
    .venv/bin/python -m tools.bench.truth [--only WORDS] [--write] [--vllm VENV/bin] [--aiperf VENV/bin]
      [--tokenizer DIR]

The server runs on one core, the client on another, over loopback. A load is right where the client's rates are within
1 % of those of the server's log and its TTFT p99 within 1 ms, or where the client says that it was the limit. Where all
users begin at once, TTFTs count from the packet of each request, of a capture of the loopback (as root), and a second
table shows what of the difference to the server's log is the client's and what a queue before the server. It is not
judged where the client says that the machine was busy, and is sent again, three times in all: other work of the machine
disturbs both ends. Exit code 1 if any load is not right. --vllm and --aiperf send the same loads by these clients and
show their errors beside. With --write the tables go into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bezel_bench.result.sample_file import read_samples
from tools.bench.clients.aiperf_client import Aiperf
from tools.bench.clients.client_errors import errors
from tools.bench.clients.client_tables import table
from tools.bench.clients.load_client import Client, Load
from tools.bench.clients.measured_row import CLIENT_CORE, SERVER_CORE, failure, send
from tools.bench.clients.priority import highest_priority
from tools.bench.clients.vllm_clients import Vllm
from tools.bench.compare_clients import certificate, machine
from tools.bench.truth.capture import Capture
from tools.bench.truth.compare import RATE_WITHIN, TTFT_WITHIN_MS, Compared, compare_cell
from tools.bench.truth.loads import LOADS, TruthLoad
from tools.bench.truth.split import arrivals, split
from tools.bench.truth.truth_server import TruthServer
from tools.docs.generated_sections import ROOT, put

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCUMENT = ROOT / "docs" / "benchmarks.md"
SECONDS = 180
# Other work of the machine makes a client look worse than it is, never better.
ATTEMPTS = 3


def own(
    load: TruthLoad,
    folder: Path,
    tls: tuple[Path, Path],
    cores: tuple[int | None, int | None],
    before: Sequence[str] = (),
) -> Compared:
    """Send a load with `bezel bench run`, and compare its result with the server's log.

    Args:
        load: The load.
        folder: For the files of both ends.
        tls: Certificate and key.
        cores: The server's and the client's; None: any.
        before: Words before the client's command, e.g. its priority.

    Raises:
        SystemExit: The client wrote no result.
    """
    out = folder / "result.json"
    server = TruthServer(folder, cores[0], *load.server, tls=tls if load.tls else None)
    with server, Capture(server.port) if load.at_once else contextlib.nullcontext() as capture:
        bezel = str(Path(sys.executable).with_name("bezel"))
        trusted = ["--ca-file", str(tls[0])] if load.tls else []
        pinned = [] if cores[1] is None else ["taskset", "-c", str(cores[1])]
        ended = subprocess.run(
            [
                *(*before, *pinned, bezel, "bench", "run", "--url", server.url, "--public", *load.sent),
                *(*trusted, "--input-tokens", "32", "--out", str(out), "--force"),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        exchanges = capture.exchanges() if capture else []
    if not out.exists():
        raise SystemExit(f"{load.name}: bezel bench run ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
    (cell,) = json.loads(out.read_text("utf-8"))["cells"]
    rows, began = read_samples(folder / "result.samples.npz")[cell["id"]]
    out.unlink()
    truth = server.records()
    if not load.at_once:
        return compare_cell(cell, rows, began, truth)
    comparison = compare_cell(cell, rows, began, arrivals(truth, exchanges))
    return replace(comparison, split=split(rows, truth, exchanges), part=cell["client"]["ttft_part"])


def chosen_loads(text: str) -> list[TruthLoad]:
    """The loads whose name holds the text, without those that only root can judge."""
    chosen = [load for load in LOADS if text in load.name]
    if os.geteuid() == 0:
        return chosen
    print("loads whose users begin at once are left out: root captures their packets", file=sys.stderr)
    return [load for load in chosen if not load.at_once]


def peer(client: Client, load: TruthLoad, folder: Path) -> list[str]:
    """Send a load with another client, and return its row: its own figures against the server's log."""
    assert load.beside is not None  # noqa: S101 - the others are left out
    users, rate, requests, tokens = load.beside
    server = TruthServer(folder, SERVER_CORE, *load.server)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        with server:
            ramp = 0.0 if rate else 0.005 * users
            watched = send(client, Load(server.url, users, requests, tokens, ramp=ramp, rate=rate), Path(name))
        if reason := failure(client, watched):
            raise SystemExit(f"{client.name}: {load.name}: {reason}")
        seen = client.read(Path(name))
    off = errors(seen, [record for record in server.records() if record.outcome == "ok"])
    return [
        client.name,
        load.name,
        f"{seen.answered:,}",
        f"{off.rate:+.2%}",
        f"{off.throughput:+.2%}",
        f"{off.ttft_ms_p50:.2f} / {off.ttft_ms_p99:.2f}",
        "" if off.tpot is None else f"{off.tpot:+.2%}",
    ]


def row(load: TruthLoad, comparison: Compared, attempt: int) -> list[str]:
    """The row of the table."""

    def format_share(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    faults = problems(load, comparison)
    return [
        load.name,
        f"{comparison.requests:,}",
        comparison.state,
        format_share(comparison.rate, "+.2%"),
        format_share(comparison.tokens, "+.2%"),
        f"{format_share(comparison.ttft_p50_ms, '+.2f')} / {format_share(comparison.ttft_p99_ms, '+.2f')}",
        format_share(comparison.paired_p99_ms, ".2f"),
        format_share(comparison.tpot, "+.3%"),
        ("; ".join(faults) or _VERDICTS.get(comparison.state, "right"))
        + (f" (attempt {attempt})" if attempt > 1 else ""),
    ]


def split_rows(load: TruthLoad, comparison: Compared) -> list[list[str]]:
    """The row, in the table of parts of TTFTs' differences, of a load whose users begin at once; none of others."""
    parts, stamped = comparison.split, comparison.part
    if parts is None:
        return []
    spans = [f"{np.median(one):.3f} / {np.quantile(one, 0.99):.3f}" for one in (parts.total, parts.queue, parts.client)]
    of_client = "not stamped" if stamped is None else f"{stamped['p50']:.3f} / {stamped['p99'] or stamped['max']:.3f}"
    return [[load.name, f"{len(parts.total):,}", *spans, of_client]]


def problems(load: TruthLoad, comparison: Compared) -> list[str]:
    """What is wrong with the client's figures of a load."""
    faults = comparison.faults(comparison.state if comparison.state in load.states else load.states[0])
    if comparison.state == "client_limited" and "client_limited" not in load.states:
        faults.append("the client was the limit: this machine has other work, or is too slow for the load")
    return faults


_VERDICTS = {"client_limited": "it says so", "busy_machine": "not judged: it says that the machine was busy"}
HEADS = [
    *("load", "requests", "state", "requests/s error", "tokens/s error", "TTFT p50 / p99 error, ms"),
    *("request by request p99, ms", "TPOT error", "verdict"),
]
SPLIT_HEADS = [
    *("load", "requests", "TTFT less the server's log, p50 / p99, ms", "queue before the server"),
    *("the client's part, by the packets", "as the client says"),
]
PEER_HEADS = [
    *("client", "load", "answered", "requests/s error", "tokens/s error", "TTFT p50 / p99 apart, ms", "TPOT error"),
]


def main() -> int:
    """Run all loads, print and write the tables; 1 where a figure is wrong or was not judged."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="loads whose name holds these words")
    parser.add_argument("--vllm", type=Path, help="folder with `vllm` and its python")
    parser.add_argument("--aiperf", type=Path, help="folder with `aiperf` and its python")
    parser.add_argument("--tokenizer", type=Path, help="folder of a tokenizer, which both of them need")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    peers: list[Client] = []
    if (options.vllm or options.aiperf) and not options.tokenizer:
        parser.error("the other clients make their prompts with a tokenizer: give --tokenizer DIR")
    if options.vllm:
        peers.append(Vllm(options.vllm.absolute() / "vllm", options.tokenizer.absolute()))
    if options.aiperf:
        peers.append(Aiperf(options.aiperf.absolute() / "aiperf", options.tokenizer.absolute()))
    cores = (SERVER_CORE, CLIENT_CORE) if (os.cpu_count() or 1) > 1 else (None, None)
    rows, splits, beside, wrong, unjudged = [], [], [], 0, 0
    with highest_priority(), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tls = certificate(folder)
        for load in chosen_loads(options.only):
            comparison, attempt = own(load, folder, tls, cores), 1
            while (problems(load, comparison) or comparison.state == "busy_machine") and attempt < ATTEMPTS:
                comparison, attempt = own(load, folder, tls, cores), attempt + 1
            rows.append(row(load, comparison, attempt))
            splits += split_rows(load, comparison)
            wrong += bool(problems(load, comparison))
            unjudged += comparison.state == "busy_machine" and not problems(load, comparison)
            print(": ".join((load.name, rows[-1][-1])), file=sys.stderr, flush=True)
            for client in peers if load.beside else []:
                beside.append(peer(client, load, folder))
                print(f"{client.name}: {load.name}", file=sys.stderr, flush=True)
    text = (
        f"Measured {dt.date.today().isoformat()} on {machine()}.\n\n"  # noqa: DTZ011 - a day, for the reader
        f"{table(HEADS, rows)}\n"
    )
    if splits:
        text += f"\n{table(SPLIT_HEADS, splits)}\n"
    if beside:
        text += f"\n{table(PEER_HEADS, beside)}\n"
    print(text)
    print(
        f"{len(rows) - wrong - unjudged} of {len(rows)} loads right: rates within {RATE_WITHIN:.0%}, TTFT p99 within "
        f"{TTFT_WITHIN_MS:g} ms, or the client says that it was the limit; {wrong} wrong, {unjudged} not judged, as "
        "the machine was busy"
    )
    if options.write:
        put(DOCUMENT, "tools.bench.truth", text)
    return 1 if wrong or unjudged else 0


if __name__ == "__main__":
    sys.exit(main())
