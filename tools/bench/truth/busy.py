"""Prove what `ok` says beside other work: loads of known truth while busy loops use the client's core.

    .venv/bin/python -m tools.bench.truth.busy [--repeats N] [--seconds N]

Writes `tests/results/truth-busy.json`: one row for each load that was sent, with its number of busy loops, the client's
own state, and the errors of its figures against the server's log. The loops have the ordinary priority, the client the
ordinary one or the real-time one that docs/bench.md advises. The server has a core of its own and real-time priority,
because other work on the server's CPUs is nothing that the client judges. A row of the state `ok` must be within the
bounds of `make truth`; every other state says that the figures may be wrong. Exit code 1 where an `ok` row is not.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.bench.clients.measured_row import CLIENT_CORE, SERVER_CORE
from tools.bench.compare_clients import machine
from tools.bench.truth.__main__ import own
from tools.bench.truth.compare import RATE_WITHIN, TTFT_WITHIN_MS, Compared
from tools.bench.truth.loads import TruthLoad
from tools.docs.generated_sections import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RESULTS = ROOT / "tests" / "results" / "truth-busy.json"
LOOPS = (0, 2, 4)
# Of the server and of this program; what it starts inherits it.
REAL_TIME = 20
PRIORITIES = {"ordinary": ("chrt", "-o", "0"), "real-time": ("chrt", "-f", "10")}
_PACE = ("-ttft", "50ms", "-itl", "10ms")
_SHORT = ("--output-tokens", "16")
# The median TTFT is 50 ms, so that 1 ms is what `ok` promises of a TTFT.
LOADS = (
    TruthLoad("closed loop, 8 users", _PACE, ("--users", "8", "--requests", "200", *_SHORT)),
    TruthLoad("closed loop, 64 users", _PACE, ("--users", "64", "--ramp", "0.3", "--requests", "768", *_SHORT)),
    TruthLoad("open loop, 60 requests/s", _PACE, ("--rate", "60", "--requests", "240", *_SHORT)),
)


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep the client's core busy with so many endless loops of ordinary priority."""
    command = [*PRIORITIES["ordinary"], "taskset", "-c", str(CLIENT_CORE), sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(loops)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def row(load: TruthLoad, loops: int, priority: str, comparison: Compared) -> dict[str, Any]:
    """The row of one load: what the client said, how far off its figures are, and what of it breaks the promise."""

    def round_known(value: float | None) -> float | None:
        return None if value is None else round(value, 5)

    return {
        "load": load.name,
        "busy_loops": loops,
        "priority": priority,
        "state": comparison.state,
        "requests": comparison.requests,
        "counted": comparison.counted,
        "rate_error": round_known(comparison.rate),
        "tokens_error": round_known(comparison.tokens),
        "ttft_p50_error_ms": round_known(comparison.ttft_p50_ms),
        "ttft_p99_error_ms": round_known(comparison.ttft_p99_ms),
        "faults": list(comparison.miscounted) if comparison.state != "ok" else comparison.faults("ok"),
    }


def broken_rows(table: Mapping[str, Any]) -> list[str]:
    """Return the rows of the state `ok` with a figure that is unknown or out of bounds, or a wrong count."""
    bounds = table["bounds"]
    limits = {"rate_error": bounds["rate"], "tokens_error": bounds["rate"], "ttft_p99_error_ms": bounds["ttft_p99_ms"]}
    return [
        f"{each['load']}, {each['busy_loops']} busy loops, {each['priority']} priority: {name} {each[name]}"
        for each in table["rows"]
        for name, most in limits.items()
        if each["state"] == "ok" and (each["faults"] or each[name] is None or abs(each[name]) > most)
    ]


def main() -> int:
    """Send the loads beside no loop, two and four, and write the table; 1 where an `ok` row is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="times that each load is sent (3)")
    parser.add_argument("--seconds", type=float, default=330.0, help="time after which no other load is sent (330)")
    options = parser.parse_args()
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME))
    rows: list[dict[str, Any]] = []
    until = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _, load, loops, priority in itertools.product(range(options.repeats), LOADS, LOOPS, PRIORITIES):
            if time.monotonic() > until:
                break
            with busy(loops):
                comparison = own(load, folder, (folder, folder), (SERVER_CORE, CLIENT_CORE), PRIORITIES[priority])
            rows.append(row(load, loops, priority, comparison))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    bounds = {"rate": RATE_WITHIN, "ttft_p99_ms": TTFT_WITHIN_MS}
    written = {"document": "benchmarks", "machine": machine(), "bounds": bounds, "rows": rows}
    RESULTS.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    return int(bool(broken_rows(written)))


if __name__ == "__main__":
    raise SystemExit(main())
