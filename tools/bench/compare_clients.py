"""Compare load clients, whole commands, against a server that knows the truth; write docs/benchmarks.md.

  .venv/bin/python -m tools.bench.compare_clients [--compiled VENV/bin/bezel-bench] [--vllm-rs FILE]
    [--vllm VENV/bin] [--aiperf VENV/bin] [--guidellm VENV/bin] [--tokenizer DIR] [--rounds 10] [--only LOAD,...]
    [--add]

The server (tools/bench/truth) runs on one core, the client's whole process tree on another. In each round the clients
take turns with each load. Every measurement is written to the JSON file as it is made; `--add` keeps those that are
there and measures what is missing of the rounds, so the same command continues after a kill, a run that is deleted from
the file is made again, and `--rounds 0 --add` writes the tables alone. The tables show the median, the least and the
most of the rounds during which nothing else used the machine.

Ten rounds of bezel-bench, its compiled form and vllm-rs take about half an hour on an idle machine; those of `vllm
bench serve`, aiperf and guidellm two hours: 80 minutes for their starts, 30 for a million tokens.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tools.bench.clients.aiperf_client import Aiperf
from tools.bench.clients.bezel_client import Bezel
from tools.bench.clients.client_tables import markdown_tables
from tools.bench.clients.compared_loads import LOADS
from tools.bench.clients.guidellm_client import Guidellm
from tools.bench.clients.measured_row import SERVER_CORE, row
from tools.bench.clients.priority import highest_priority
from tools.bench.clients.result_file import Results, read_results, round_figures, write_results
from tools.bench.clients.vllm_clients import Vllm, VllmRs
from tools.docs.generated_sections import ROOT, put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.bench.clients.compared_loads import ComparedLoad
    from tools.bench.clients.load_client import Client, Load

DOCUMENT = ROOT / "docs/benchmarks.md"
RESULTS = ROOT / "tests/results/bench-peers.json"
OWN = "bezel-bench"
PEERS = {"vllm_rs": VllmRs, "vllm": Vllm, "aiperf": Aiperf, "guidellm": Guidellm}


def compare(
    results: Results, clients: Sequence[Client], loads: Sequence[ComparedLoad], rounds: int, path: Path
) -> None:
    """Measure what is missing to so many rounds, each client in turn."""
    with tempfile.TemporaryDirectory() as folder:
        tls = certificate(Path(folder))
        for round_ in range(1, rounds + 1):
            for load in loads:
                for client in clients:
                    if round_ > load.rounds_of(client) or results.has(client.name, load.name, round_):
                        continue
                    figures = row(client, load, tls)
                    results.rows.append(
                        {"client": client.name, "load": load.name, "round": round_, **round_figures(figures)}
                    )
                    results.measured = dt.date.today().isoformat()  # noqa: DTZ011 - a day, for the reader
                    write_results(path, results)
                    outcome = figures.get("failed") or f"{figures['seconds']:.1f} s, {figures['cpu_seconds']:.2f} CPU s"
                    print(f"round {round_}: {load.name}: {client.name}: {outcome}", file=sys.stderr, flush=True)


def command_line(client: Client, load: Load) -> str:
    """A client's command line for a reader: programs by their names, paths by what they are."""
    command = client.command(load, Path("FOLDER"))
    tokenizer = str(getattr(client, "tokenizer", ""))
    line = " ".join([Path(command[0]).name, *command[1:]])
    return line.replace(tokenizer, "TOKENIZER") if tokenizer else line


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    files = folder / "certificate.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(files[1]), "-out", str(files[0])]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return files


def machine() -> str:
    """The machine's processor, cores and kernel."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"{os.cpu_count()} cores of {model}, Linux {platform.release()}, Python {platform.python_version()}"


def chosen_clients(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[Client]:
    """The clients of the command line, all that is wrong with it at once."""
    programs = {name: program(getattr(options, name), name) for name in PEERS} | {
        name: program(getattr(options, name), OWN) for name in ("bezel", "compiled")
    }
    faults = [
        f"--{name.replace('_', '-')}: no program {path}"
        for name, path in programs.items()
        if path and not path.is_file()
    ]
    if any(programs[name] for name in PEERS) and not (options.tokenizer and options.tokenizer.is_dir()):
        faults.append("the other clients make their prompts with a tokenizer: give its folder with --tokenizer")
    names = {load.name for load in LOADS}
    if unknown := set(options.only) - names:
        faults.append(f"--only {', '.join(sorted(unknown))}: no such load; there are {'; '.join(sorted(names))}")
    if not options.document.is_file():
        faults.append(f"--document {options.document}: no such file; the tables go into a document with their marks")
    if faults:
        parser.error("\n".join(faults))
    bezel = [Bezel(path) for name in ("bezel", "compiled") if (path := programs[name])]
    if len({client.name for client in bezel}) < len(bezel):
        parser.error(f"--compiled {bezel[1].path}: is {bezel[1].name} as --bezel; install bezel-bench-compiled there")
    peers = [kind(path, options.tokenizer.absolute()) for name, kind in PEERS.items() if (path := programs[name])]
    return [*bezel, *peers]


def program(path: Path | None, name: str) -> Path | None:
    """The program of an option: a file, or a folder with a program of the client's name."""
    return path and (path / name.replace("_", "-") if path.is_dir() else path).absolute()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    installed = Path(sys.executable).with_name(OWN)
    parser.add_argument("--bezel", type=Path, default=installed, help="bezel-bench (default: of this environment)")
    parser.add_argument("--compiled", type=Path, help="bezel-bench of an environment with bezel-bench-compiled")
    parser.add_argument("--vllm-rs", type=Path, help="vllm-rs of vLLM's wheel")
    parser.add_argument("--vllm", type=Path, help="folder with vllm and its python; as the next two")
    parser.add_argument("--aiperf", type=Path, help="aiperf")
    parser.add_argument("--guidellm", type=Path, help="guidellm")
    parser.add_argument("--tokenizer", type=Path, help="folder of a tokenizer, which the last four need")
    parser.add_argument("--rounds", type=int, default=10, help="of each load and client, in all")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="loads, by their names")
    parser.add_argument("--add", action="store_true", help="keep the measurements that are in the JSON file")
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    options = parser.parse_args(arguments)
    clients = chosen_clients(parser, options)
    results = read_results(options.json) if options.add and options.json.exists() else Results(machine())
    if results.machine != machine():
        parser.error(f"measurements of {results.machine} are there: none of another machine is added")
    example = next(load for load in LOADS if load.name == "256")
    results.commands |= {
        client.name: command_line(client, replace(example.sent_by(client), url="URL")) for client in clients
    }
    # As Ctrl-C: server and client are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # Beside the server: its own samples of memory must not take the client's time.
    os.sched_setaffinity(0, {SERVER_CORE})
    loads = [load for load in LOADS if not options.only or load.name in options.only]
    with highest_priority():
        compare(results, clients, loads, options.rounds, options.json)
    put(options.document, "tools.bench.compare_clients", markdown_tables(results))


if __name__ == "__main__":
    main()
