"""One measurement of the comparison: a load, sent once by one client to a server of its own, as a row of figures."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.bench.clients.client_errors import errors, served_seconds
from tools.bench.clients.watched_run import Watched, machine_cpu, process_cpu, watch
from tools.bench.truth.truth_server import TruthServer

if TYPE_CHECKING:
    from tools.bench.clients.compared_loads import ComparedLoad
    from tools.bench.clients.load_client import Client, ClientFigures, Load
    from tools.bench.truth.truth_server import Record

SERVER_CORE, CLIENT_CORE = 0, 1
LIMIT_SECONDS = 180.0


def row(client: Client, compared: ComparedLoad, tls: tuple[Path, Path]) -> dict[str, Any]:
    """Measure once.

    Args:
        client: It sends the load.
        compared: The load, and the server's pace.
        tls: The server's certificate and key, for a load that wants them.

    Returns:
        Figures of the run, errors against the server's log, and the cores that other work took meanwhile. What was not
        to be had of the client is in `failed`.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load = replace(compared.sent_by(client), ca_file=str(tls[0]) if compared.tls else "")
        average, own_before = os.getloadavg()[0], time.process_time()
        server = TruthServer(folder, SERVER_CORE, *compared.server, "-announce", tls=tls if compared.tls else None)
        with server:
            server_before = process_cpu(server.pid)
            machine_before, began = machine_cpu(), time.monotonic_ns()
            watched = send(client, replace(load, url=server.url), folder, server)
            server_cpu = process_cpu(server.pid) - server_before
            machine_used = machine_cpu() - machine_before
        others = machine_used - watched.cpu_seconds - server_cpu - (time.process_time() - own_before)
        figures = {
            "load_average": average,
            "others": max(0.0, others) / watched.seconds,
            "server_cpu_seconds": server_cpu,
            "seconds": watched.seconds,
            "cpu_seconds": watched.cpu_seconds,
            "first_cpu_seconds": watched.first_cpu_seconds,
            "memory_mib": watched.memory_mib,
        }
        if failed := failure(client, watched):
            return figures | {"failed": failed}
        records = server.records()
        figures["first_seconds"] = (records[0].arrival - began) / 1e9
        return figures | compared_figures(client.read(folder), load, records)


def send(
    client: Client, load: Load, folder: Path, server: TruthServer | None = None, core: int | None = CLIENT_CORE
) -> Watched:
    """Run a client with a load, its files in a folder; on standard error what it says if it fails."""
    variables = os.environ | client.variables
    announced = server.output if server else None
    watched = watch(client.command(load, folder), variables, core, folder, LIMIT_SECONDS, announced)
    if watched.exit_code is not None and watched.exit_code not in client.exits:
        print(f"{client.name} ended with {watched.exit_code}:\n{watched.output}", file=sys.stderr, flush=True)
    return watched


def failure(client: Client, watched: Watched) -> str:
    """Why a run has no result; "" where it has one."""
    if watched.exit_code is None:
        return f"not finished within {LIMIT_SECONDS:.0f} s"
    return "" if watched.exit_code in client.exits else f"ended with {watched.exit_code}"


def compared_figures(measured: ClientFigures, load: Load, records: list[Record]) -> dict[str, Any]:
    """The client's figures against the server's log."""
    truth = [record for record in records if record.outcome == "ok"]
    if not measured.answered or not truth:
        return {"failed": f"{measured.answered} of {load.requests} answered"}
    return asdict(errors(measured, truth)) | {
        "answered": measured.answered,
        "requests": load.requests,
        "arrived": len(records),
        "true_tokens": sum(record.tokens for record in truth),
        "true_seconds": served_seconds(truth),
        "at_once": most_at_once(truth),
        "state": measured.state,
    }


def most_at_once(truth: list[Record]) -> int:
    """The largest number of requests that the server had at one instant."""
    edges = sorted([(record.arrival, 1) for record in truth] + [(record.done, -1) for record in truth])
    most = now = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most
