"""Requests of clients to a real vLLM and to the simulated server of the same release: how many are answered alike.

    .venv/bin/python -m tools.vllm.releases.compare FOLDER [--url URL] [--count N] [--seed N] [--record]

FOLDER is that of `tools.vllm.contract`. A real server is started from it, or one that runs already is named with
`--url`; the release is the one that it tells at /version. Compared: status, type of the content, and the shape of the
body with the text of an error, as `generated_requests` does; an intended difference counts as one. `--record` writes
the row of the release into `tests/results/vllm-releases.json`, and some of the answers for the tests. The exit status
is 1 where more than 8 of 400 differ.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_base.loopback.listeners import free_port
from simulated_vllm_support import client_requests, replayed
from simulated_vllm_support.client_requests import Asked, answer_shape
from simulated_vllm_support.process import simulated_vllm
from simulated_vllm_support.servers import CONFIGURATIONS
from simulated_vllm_support.shapes import alike
from tools.vllm.real_server import command, end_at_exit, environment, log_file, served_release, until_healthy
from tools.vllm.releases.requests import COUNT, SEED, requests_of_clients

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "tests" / "results" / "vllm-releases.json"
_SECONDS = 120
_MOST_DIFFERENT = 0.02
_NOTE = {
    "what": "a stop sequence in /v1/messages",
    "why": "whether a text has it: the simulated text is another one",
    "evidence": 'the request of kind "message" that differs in each release',
}
_MACHINE = "each release on a CPU, tiny Gemma 4"


def main() -> int:
    """Compare both servers; exit status 1 if more than 2 % of the answers differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", default="")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    asked = requests_of_clients(options.count, options.seed)
    with _real(options.folder.resolve(), options.url) as port:
        release = served_release(port)
        theirs = [ask(port, request) for request in asked]
    arguments = (*CONFIGURATIONS["generated"].arguments, f"--release={release}")
    with tempfile.TemporaryDirectory() as models, simulated_vllm(Path(models), *arguments, serving_speed=500) as url:
        ours = [ask(int(url.rpartition(":")[2]), request) for request in asked]
    same: Counter[str] = Counter()
    kept: list[tuple[Asked, list[Any]]] = []
    for request, one, other in zip(asked, theirs, ours, strict=True):
        real, simulated = answer_shape(*one), answer_shape(*other)
        if alike(real, simulated):
            same[request.kind] += 1
            kept.append((request, real))
            continue
        print(f"{request.kind}: {request.method} {request.path} {dict(request.headers)} {request.content[:300]!r}")
        print(f"  real      {json.dumps(real)[:400]}", f"  simulated {json.dumps(simulated)[:400]}", sep="\n")
    print(f"vLLM {release}: {same.total()} of {len(asked)} answered alike", flush=True)
    if options.record:
        _record(release, asked, same)
        client_requests.write(release, kept)
    return 1 if len(asked) - same.total() > _MOST_DIFFERENT * len(asked) else 0


@contextlib.contextmanager
def _real(folder: Path, url: str) -> Iterator[int]:
    """The port of the real server: the named one, or one that is started from the folder."""
    if url:
        yield int(url.rpartition(":")[2])
        return
    port, log = free_port(), log_file("vllm-releases.log")
    line = command(folder, port, CONFIGURATIONS["generated"].arguments)
    with (
        log.open("w") as out,
        end_at_exit(
            subprocess.Popen(line, env=environment(folder), stdout=out, stderr=out, start_new_session=True)
        ) as process,
    ):
        until_healthy(process, port, log)
        yield port


def ask(port: int, request: Asked) -> tuple[int, str, str]:
    """Return status, type of the content, and body of an answer; of a stream that breaks off, what there was of it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    with contextlib.closing(connection):
        connection.request(request.method, request.path, request.content or None, dict(request.headers))
        response = connection.getresponse()
        try:
            text = response.read()
        except http.client.IncompleteRead as error:
            text = error.partial + replayed.CUT.encode()
        return response.status, response.headers.get("content-type", ""), text.decode(errors="replace")


def _record(release: str, asked: list[Asked], same: Counter[str]) -> None:
    """Write the result of a release beside those of the others."""
    rows: list[list[Any]] = []
    if RESULTS.exists():
        rows = [row for row in json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if row[0] != release]
    tried = Counter(request.kind for request in asked)
    differing = ", ".join(f"{kind} {count - same[kind]}" for kind, count in tried.items() if count > same[kind])
    rows = sorted([*rows, [release, len(asked), same.total(), len(asked) - same.total(), differing or "none"]])
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    table = {
        "title": "vLLM: requests of clients, by release",
        "document": "fidelity",
        "order": 32,
        "about": (
            "Whole requests as clients send them, made from a seed, to a real vLLM and to the "
            "simulated server of the same release. Alike means the same status, type of content and shape, and for a "
            "refusal the same text; an intended difference counts as one."
        ),
        "command": ".venv/bin/python -m tools.vllm.releases.compare FOLDER --record",
        "stamp": {"commit": commit.stdout.strip(), **replayed.today(release)}
        | {"machine": "each release on a CPU, tiny Gemma 4"},
        "columns": ["vLLM", "requests", "alike", "different", "different by kind"],
        "rows": rows,
        "notes": [_NOTE],
    }
    RESULTS.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
