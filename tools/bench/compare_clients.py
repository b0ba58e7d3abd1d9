"""Measure the load engine beside its peers, against a server that knows the truth; write docs/benchmarks.md.

  .venv/bin/python -m tools.bench.compare_clients [--vllm VENV/bin] [--guidellm VENV/bin] [--tokenizer DIR] [--add]

The server (tools/bench/truth) runs on one core, the client's whole process tree on another. In each round the clients
take turns, and each figure is the best of the rounds: other work of the machine makes a client look worse than it is,
never better. CPU time is that of the process tree; the difference of a long run and a short one excludes a client's
start.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bezel_bench.result.cell_status import CPU_SHARE, LATE_MS
from tools.bench.client_errors import Answered, Errors, errors
from tools.bench.client_tables import markdown_tables
from tools.bench.load_clients import Client, ClientFigures, Guidellm, Load, Own, Vllm
from tools.bench.truth.truth_server import TruthServer
from tools.docs.generated_sections import ROOT, put

DOCUMENT = ROOT / "docs/benchmarks.md"
RESULTS = ROOT / "tests/results/bench-peers.json"
SERVER_CORE, CLIENT_CORE = 0, 1
SAID = sys.stderr
# A loaded machine gives no valid speed: the tables mark it.
IDLE_LOAD = 0.5


class Bench:
    """All measurements of one call."""

    def __init__(self, folder: Path, peers: list[Client], rounds: int, earlier: dict[str, Any]) -> None:
        self._folder, self._peers, self._rounds = folder, peers, rounds
        self._earlier = earlier
        self._tls = certificate(folder)

    def speed(self) -> dict[str, dict[str, Any]]:
        """Streams of one token, 64 and 1,024 users: requests per second and CPU seconds of each client."""
        best: dict[str, dict[str, Any]] = self._earlier.get("speed", {})
        for round_ in range(self._rounds):
            for client in [Own(), *self._peers]:
                for users in (64, 1024):
                    if users > client.short and isinstance(client, Guidellm):
                        continue
                    log(f"round {round_ + 1}: {client.name}, one token, {users} users")
                    measured, _ = self._one(client, Load("", users, client.long, 1))
                    start, _ = self._one(client, Load("", users, max(client.short, users), 1))
                    cpu = (measured.cpu_seconds - start.cpu_seconds) / (measured.answered - start.answered)
                    mine = best.setdefault(client.name, {}).setdefault(
                        str(users), {"rate": 0.0, "cpu_us": float("inf")}
                    )
                    mine["rate"] = max(mine["rate"], measured.answered / measured.seconds)
                    mine["cpu_us"] = min(mine["cpu_us"], cpu * 1e6)
                    mine["failed"] = client.long - measured.answered
        return best

    def truth(self) -> dict[str, dict[str, Any]]:
        """Paced streams of 64 tokens: each client's error against the server's truth, and CPU time of a chunk."""
        errors_by_load: dict[str, dict[str, Any]] = self._earlier.get("truth", {})
        # The users begin within the time of one response: all at once they would measure the server's own queue.
        for name, users, each, itl, ramp, tls in (
            ("256 users, 10 ms", 256, 12, "10ms", 0.6, False),
            ("1,024 users, 100 ms", 1024, 4, "100ms", 6.0, False),
            ("256 users, 10 ms, TLS", 256, 12, "10ms", 0.6, True),
            ("1,024 users, 100 ms, TLS", 1024, 4, "100ms", 6.0, True),
        ):
            for round_ in range(self._rounds):
                for client in [Own()] if tls else [Own(), *self._peers]:
                    # guidellm takes minutes for each of these.
                    if isinstance(client, Guidellm) and (round_ or self._earlier or users > 256):
                        continue
                    log(f"round {round_ + 1}: {client.name}, {name}")
                    load = Load("", users, each * users, 64, ramp=ramp)
                    long, errs = self._one(client, load, "-ttft", "50ms", "-itl", itl, tls=tls)
                    short, _ = self._one(client, replace(load, requests=users), "-ttft", "50ms", "-itl", itl, tls=tls)
                    cpu = (long.cpu_seconds - short.cpu_seconds) / (long.tokens - short.tokens) * 1e6
                    keep_best(
                        errors_by_load.setdefault(name, {}),
                        client.name,
                        asdict(errs) | {"limited": was_limited(long)},
                        cpu,
                    )
        return errors_by_load

    def streams(self, count: int, seconds: int) -> dict[str, Any]:
        """Measure `count` concurrent streams for some seconds."""
        log(f"{count} streams for {seconds} s")
        load = Load("", count, count, seconds)
        measured, errs = self._one(Own(), load, "-ttft", "1s", "-itl", "1s")
        return {"count": count, "seconds": seconds, **measured.more, "errors": asdict(errs)}

    def start(self) -> dict[str, float]:
        """Seconds from the start of a process: to the import, and to the first request."""
        code = "import time; t = time.perf_counter(); import bezel_bench.client.load_engine"
        code += "; print(time.perf_counter() - t)"
        imports = [float(subprocess.check_output([sys.executable, "-c", code], cwd=ROOT)) for _ in range(5)]
        firsts = []
        for _ in range(5):
            server = TruthServer(self._folder, SERVER_CORE)
            with server:
                began = time.monotonic_ns()
                Own().run(Load(server.url, 1, 1, 1), CLIENT_CORE)
            firsts.append((server.records()[0].arrival - began) / 1e9)
        return {"import": min(imports), "first_request": min(firsts)}

    def _one(self, client: Client, load: Load, *flags: str, tls: bool = False) -> tuple[ClientFigures, Errors]:
        server = TruthServer(self._folder, SERVER_CORE, *flags, tls=self._tls if tls else None)
        with server:
            ca_file = str(self._tls[0]) if tls else ""
            measured = client.run(replace(load, url=server.url, ca_file=ca_file), CLIENT_CORE)
        records = [record for record in server.records() if record.outcome == "ok"]
        truth = [Answered(one.arrival, one.first, one.last, one.done, one.tokens) for one in records]
        return measured, errors(measured, truth)


def was_limited(measured: ClientFigures) -> bool | None:
    """Whether the engine reports by its own rule that it was the bottleneck; None for other clients."""
    if not measured.more:
        return None
    return bool(measured.more["lag_p99_ms"] > LATE_MS or measured.more["cpu_share"] > CPU_SHARE)


def keep_best(best: dict[str, Any], name: str, errs: dict[str, Any], cpu: float) -> None:
    """Keep the errors of the round with the smallest p99, and the smallest CPU time."""
    before = best.get(name)
    min_cpu = min(cpu, before["cpu_us_per_chunk"]) if before else cpu
    if not before or errs["ttft_ms_p99"] < before["ttft_ms_p99"]:
        best[name] = errs
    best[name]["cpu_us_per_chunk"] = min_cpu


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    files = folder / "certificate.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(files[1]), "-out", str(files[0])]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return files


def log(text: str) -> None:
    """Print a progress message."""
    print(text, file=SAID, flush=True)


def main() -> None:
    """Measure all, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vllm", type=Path, help="folder with `vllm` and its python; left out: not compared")
    parser.add_argument("--guidellm", type=Path, help="folder with `guidellm` and its python; left out: not compared")
    parser.add_argument("--tokenizer", type=Path, help="folder of a tokenizer, which both of them need")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--add", action="store_true", help="further rounds to those in the JSON file")
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    options = parser.parse_args()
    if (options.vllm or options.guidellm) and not options.tokenizer:
        parser.error("the peers make their prompts with a tokenizer: give --tokenizer DIR")
    peers: list[Client] = []
    if options.vllm:
        peers.append(Vllm(options.vllm.absolute(), options.tokenizer.absolute()))
    if options.guidellm:
        peers.append(Guidellm(options.guidellm.absolute(), options.tokenizer.absolute()))
    earlier = json.loads(options.json.read_text()) if options.add else {}
    if earlier and earlier["machine"] != machine():
        parser.error(f"rounds of {earlier['machine']} are there: none of another machine is added")
    # The tables mark rounds on a busy machine, whatever the later ones were.
    load = max(os.getloadavg()[0], earlier.get("load_before", 0.0))
    # The server and every client inherit it. A user who may not raise it measures the machine's other work, too.
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), peers, options.rounds, earlier)
        results = {
            "document": "benchmarks",
            "measured": dt.date.today().isoformat(),  # noqa: DTZ011 - a day, for the reader
            "machine": machine(),
            "load_before": load,
            "idle": load < IDLE_LOAD,
            "rounds": options.rounds + earlier.get("rounds", 0),
            "start": bench.start(),
            "truth": bench.truth(),
            "speed": bench.speed(),
            "streams": bench.streams(10_000, 60),
        }
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    put(options.document, "tools.bench.compare_clients", markdown_tables(results))


def machine() -> str:
    """The machine's processor, cores and kernel."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"{os.cpu_count()} cores of {model}, Linux {platform.release()}, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
