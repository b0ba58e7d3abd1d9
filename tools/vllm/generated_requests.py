"""Generated requests to a real vLLM and to the simulated one: their answers compared in status and shape.

    .venv/bin/python -m tools.vllm.generated_requests FOLDER [--count N] [--seed N] [--record]

FOLDER is that of `tools.vllm.contract`, which runs this too. One request at a time goes to each server. `--record`
writes the table `tests/results/vllm-generated.json`, some of the real server's answers for the tests, its published
document (/openapi.json) and its request models. The exit status is 1 where an answer differs and no note explains it.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import http.client
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_base.loopback.listeners import free_port
from bezel_catalog.vllm import request_recorder
from bezel_catalog.vllm.servers import DOCUMENT, MODELS, SERVERS
from simulated_vllm_support import replayed
from simulated_vllm_support.generated import BASES, constant_fields, generate
from simulated_vllm_support.process import simulated_vllm
from simulated_vllm_support.servers import CONFIGURATIONS
from simulated_vllm_support.shapes import alike, shape_of
from tools.vllm.real_server import command, end_at_exit, environment, log_file, served_release, until_healthy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulated_vllm_support.generated import Generated

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests" / "results" / "vllm-generated.json"
COUNT, SEED = 2000, 22
_SECONDS = 60
_KEPT_ALIVE = {"VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": "1"}


def main() -> int:
    """Compare both servers; exit status 1 if an answer differs without a reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    with _real(folder) as port:
        release = served_release(port)
        if options.record:
            _record_schema(folder, port, release)
        requests = generate(options.count, options.seed, release)
        theirs = [_ask(port, request) for request in requests]
    with (
        tempfile.TemporaryDirectory() as models,
        simulated_vllm(Path(models), *arguments(release), serving_speed=500) as url,
    ):
        ours = [_ask(int(url.rpartition(":")[2]), request) for request in requests]
    pairs = [(shape_of(*one), shape_of(*other)) for one, other in zip(theirs, ours, strict=True)]
    wrong = 0
    for request, (real, simulated) in zip(requests, pairs, strict=True):
        if not alike(real, simulated) and not replayed.is_explained(request, real, simulated):
            wrong += 1
            print(json.dumps([request.path, request.field, request.body]), f"  real      {json.dumps(real)[:300]}",
                  f"  simulated {json.dumps(simulated)[:300]}", sep="\n")  # fmt: skip
    same = sum(alike(*pair) for pair in pairs)
    answered = sum(real[0] == 200 for real, _ in pairs)
    print(
        f"generated: {len(pairs)} requests, {answered} answered 200, {same} the same, {wrong} unexplained", flush=True
    )
    missing = list(constant_fields(requests, release))
    print(*(f"not varied: {name}" for name in missing), sep="\n", end="")
    if options.record:
        text = json.dumps(_table(requests, pairs, release), indent=1, ensure_ascii=False)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        replayed.write(list(zip(requests, [real for real, _ in pairs], strict=True)))
    return 1 if wrong or missing else 0


def arguments(release: str) -> tuple[str, ...]:
    """Arguments of the simulated server of a release."""
    return (*CONFIGURATIONS["generated"].arguments, f"--release={release}")


def _record_schema(folder: Path, port: int, release: str) -> None:
    """Write the document that the server publishes, where it is another one, and the models behind it."""
    recording = SERVERS / release
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json", timeout=_SECONDS) as response:
        text = response.read()
    file = recording / DOCUMENT
    if gzip.decompress(file.read_bytes()) != text:
        file.write_bytes(gzip.compress(text, mtime=0))
    line = [
        folder / "venv/bin/python",
        Path(request_recorder.__file__),
        recording / MODELS,
    ]
    subprocess.run(line, env=environment(folder), check=True, timeout=_SECONDS * 5)


@contextlib.contextmanager
def _real(folder: Path) -> Iterator[int]:
    """Start the real server; its port once it is healthy."""
    port, log = free_port(), log_file("vllm-generated.log")
    line = command(folder, port, CONFIGURATIONS["generated"].arguments)
    variables = environment(folder) | _KEPT_ALIVE
    with (
        log.open("w") as out,
        end_at_exit(subprocess.Popen(line, env=variables, stdout=out, stderr=out, start_new_session=True)) as process,
    ):
        until_healthy(process, port, log)
        yield port


def _ask(port: int, request: Generated) -> tuple[int, str]:
    """Return status and body of an answer; of a stream that breaks off, what there was of it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    with contextlib.closing(connection):
        connection.request("POST", request.path, json.dumps(request.body), {"content-type": "application/json"})
        response = connection.getresponse()
        try:
            text = response.read()
        except http.client.IncompleteRead as error:
            text = error.partial + replayed.CUT.encode()
        return response.status, text.decode()


def _table(requests: list[Generated], pairs: list[tuple[list[Any], list[Any]]], release: str) -> dict[str, Any]:
    """Return the section of the document on fidelity: a row for each endpoint."""
    tried: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    equal: Counter[str] = Counter()
    kinds: dict[str, set[str]] = {path: set() for path in BASES}
    lowest: dict[str, set[str]] = {path: set() for path in BASES}
    for request, (real, simulated) in zip(requests, pairs, strict=True):
        tried[request.path] += 1
        answered[request.path] += real[0] == 200
        equal[request.path] += alike(real, simulated)
        kinds[request.path].add(request.field)
        if not alike(real, simulated):
            lowest[request.path].add(request.field)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    rows: list[list[Any]] = [
        [
            *(path, len(kinds[path]), answered[path], tried[path], equal[path], tried[path] - equal[path]),
            ", ".join(sorted(lowest[path])) or "none",
        ]
        for path in BASES
    ]
    return {
        "title": "vLLM: generated requests",
        "document": "fidelity",
        "order": 31,
        "about": (
            f"Requests made from the published request schema of vLLM {release}, each field of each endpoint varied "
            "with usual, extreme and wrong values, to a real vLLM and to the simulated one. Compared: the status; of "
            "an answer every key and the type of its value, event by event in a stream; of a refusal its type, "
            "parameter and message."
        ),
        "command": ".venv/bin/python -m tools.vllm.generated_requests FOLDER --record",
        "stamp": {"commit": commit.stdout.strip(), **replayed.today(release)},
        "columns": ["endpoint", "fields", "answered 200", "compared", "equal", "explained", "fields with a difference"],
        "rows": rows,
        "notes": replayed.NOTES,
    }


if __name__ == "__main__":
    sys.exit(main())
