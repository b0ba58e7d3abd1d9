"""Measure a running vLLM by a sweep of rates, then at three rates with two clients; write docs/benchmarks.md.

  .venv/bin/python -m tools.bench.compare_rates URL --vllm-rs FILE --tokenizer DIR [--users N] [--seconds S]
    [--rounds N] [--json FILE] [--write]

Starts no server and changes none. `bezel-bench rates` finds the range of the server; 30, 60 and 90 % of its highest
throughput are then sent by both clients in turn, as open loops of Poisson's arrivals, with prompts of one kind from a
file and responses of one length. The server's own counters before and after each load tell which of them counted right,
and its clocks by how much a client's mean is above what the server saw. With --json each row goes into a file, as those
of tools.bench.compare_clients do, with --write the tables into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel_bench.load.plan import Target
from bezel_bench.server.http_probe import asker
from tools.bench.clients.bezel_client import Bezel
from tools.bench.clients.load_client import Client, Load
from tools.bench.clients.measured_row import failure, send
from tools.bench.clients.rate_tables import figures, rates_table, sweep_table
from tools.bench.clients.result_file import Results, write_results
from tools.bench.clients.server_clocks import RUNNING, load_between, totals
from tools.bench.clients.vllm_clients import VllmRs
from tools.bench.compare_clients import DOCUMENT, command_line, machine
from tools.docs.generated_sections import ROOT, put

if TYPE_CHECKING:
    from collections.abc import Sequence

INPUT, OUTPUT = 64, 32
SHARES = (0.3, 0.6, 0.9)
STEPS = 4
_SWEEP_SECONDS, _IDLE_SECONDS = 900, 60


class RealServer:
    """A running vLLM.

    Args:
        url: Its address.

    Attributes:
        model: The first model that it lists.
        release: Its version.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._ask = asker(Target(url, "", public=True), dict)
        self.model = str(json.loads(self._read("/v1/models"))["data"][0]["id"])
        self.release = str(json.loads(self._read("/version"))["version"])

    def totals(self) -> dict[str, float]:
        """Its counters, once no request is running."""
        until = time.monotonic() + _IDLE_SECONDS
        while True:
            sums = totals(self._read("/metrics"))
            if not any(sums.get(name) for name in RUNNING):
                return sums
            if time.monotonic() > until:
                raise SystemExit(
                    f"{self.url} is not idle: another client sends it requests. Measure when it has ended."
                )
            time.sleep(0.2)

    def _read(self, path: str) -> str:
        response = self._ask(path, None)
        if response.status != HTTPStatus.OK:
            reason = f"HTTP {response.status}" if response.status else response.body.decode()
            raise SystemExit(f"{self.url}{path}: {reason}; give the address of a running vLLM, without a path.")
        return response.body.decode()


def sweep(server: RealServer, client: Bezel, users: int, seconds: float, out: Path) -> list[dict[str, Any]]:
    """The cells of `bezel-bench rates`."""
    flags = f"--url {server.url} --public --users {users} --steps {STEPS} --seconds {seconds:g}"
    lengths = f"--input-tokens {INPUT} --output-tokens {OUTPUT} --out {out}"
    line = [str(client.path), "rates", *flags.split(), *lengths.split()]
    ended = subprocess.run(line, cwd=ROOT, stdout=sys.stderr, timeout=_SWEEP_SECONDS, check=False)
    if not out.exists():
        raise SystemExit(f"bezel-bench rates ended with {ended.returncode} and wrote no result")
    return list(json.loads(out.read_text())["cells"])


def compare(
    server: RealServer,
    clients: Sequence[Client],
    rates: Sequence[float],
    seconds: float,
    rounds: int,
    path: Path | None = None,
) -> list[dict[str, Any]]:
    """One row for each rate, client and round; the file of the path has them as they are made."""
    results = Results(machine())
    rows = results.rows
    for round_ in range(1, rounds + 1):
        for rate in rates:
            for client in clients if round_ % 2 else reversed(clients):
                requests = round(rate * seconds)
                before = server.totals()
                with tempfile.TemporaryDirectory() as folder:
                    prompts = Path(folder) / "prompts.jsonl"
                    prompts.write_text(prompt_lines(requests, seed=len(rows)))
                    load = Load(
                        server.url, 0, requests, OUTPUT, rate=rate, model=server.model, prompts=prompts, seed=round_
                    )
                    results.commands.setdefault(
                        client.name, command_line(client, replace(load, url="URL", prompts=Path("PROMPTS")))
                    )
                    watched = send(client, load, Path(folder), core=None)
                    if reason := failure(client, watched):
                        raise SystemExit(f"{client.name} at {rate:g} requests/s: {reason}")
                    measured = client.read(Path(folder))
                row = figures(measured, load_between(before, server.totals()))
                rows.append({"client": client.name, "rate": rate, "round": round_} | row)
                if path:
                    results.measured = dt.date.today().isoformat()  # noqa: DTZ011 - a day, for the reader
                    write_results(path, results)
                print(f"round {round_}: {rate:g}/s: {client.name}: {row}", file=sys.stderr, flush=True)
    return rows


def prompt_lines(count: int, seed: int) -> str:
    """So many different prompts, as JSON lines: no cache of the server holds any."""
    numbers = random.Random(seed)  # noqa: S311 - no secret
    prompts = (" ".join(str(numbers.randrange(1_000)) for _ in range(INPUT // 2)) for _ in range(count))
    return "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts)


def main() -> None:
    """Measure, print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="address of a real vLLM without other load")
    parser.add_argument("--bezel", type=Path, default=Path(sys.executable).with_name("bezel-bench"))
    parser.add_argument("--vllm-rs", type=Path, required=True, help="vllm-rs of vLLM's wheel")
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder of the model's tokenizer")
    parser.add_argument("--users", type=int, default=16, help="users that show the highest throughput")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each rate")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file for each row of the comparison")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    server = RealServer(options.url)
    bezel = Bezel(options.bezel.absolute())
    clients = [bezel, VllmRs(options.vllm_rs.absolute(), options.tokenizer.absolute())]
    with tempfile.TemporaryDirectory() as folder:
        cells = sweep(server, bezel, options.users, options.seconds, Path(folder) / "rates.json")
    highest = max((cell["metrics"]["requests_per_second"]["value"] or 0.0 for cell in cells), default=0.0)
    if not highest:
        raise SystemExit("the sweep has no throughput: see what bezel-bench rates says above")
    rates = [float(f"{share * highest:.2g}") for share in SHARES]
    rows = compare(server, clients, rates, options.seconds, options.rounds, options.json)
    today = dt.date.today().isoformat()  # noqa: DTZ011 - a day, for the reader
    text = (
        f"vLLM {server.release} with {server.model}, {machine()}, {today}: prompts of {INPUT} tokens, responses of "
        f"{OUTPUT}. The sweep:\n\n{sweep_table(cells)}\n\nThe same rates by both clients, {options.rounds} rounds in "
        f"turn, {options.seconds:g} s each:\n\n{rates_table(rows)}\n"
    )
    print(text)
    if options.write:
        put(DOCUMENT, "tools.bench.compare_rates", text)


if __name__ == "__main__":
    main()
