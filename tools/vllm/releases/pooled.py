"""Requests to a real vLLM that pools and to the simulated server of the same release: how many are answered alike.

    .venv/bin/python -m tools.vllm.releases.pooled FOLDER MODELS [--record]

FOLDER holds a real vLLM (`venv/bin/vllm`), MODELS the files of tiny models with a context of 512, as transformers saves
them: `bert` (BertModel), `cross` and `classifier` (BertForSequenceClassification of one and of three labels), `qwen3`
(Qwen3ForCausalLM with modules.json of Sentence Transformers and a chat template). A third of the requests is held back:
counted by itself, and shown by its kind alone. `--record` writes the row of the release into
`tests/results/vllm-pooling.json` and some of the answers for the tests. The exit status is 1 where more than 2 %
differ.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_base.loopback.listeners import free_port
from simulated_vllm_support import pooled_requests as kept_requests
from simulated_vllm_support import replayed
from simulated_vllm_support.client_requests import Asked, answer_shape
from simulated_vllm_support.process import simulated_vllm
from simulated_vllm_support.shapes import alike
from tools.vllm.real_server import end_at_exit, environment, log_file, served_release, until_healthy
from tools.vllm.releases.compare import ask
from tools.vllm.releases.pooled_requests import requests_that_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "tests" / "results" / "vllm-pooling.json"
COUNT = 60
# Of each model the seed of the requests, and that of those held back; None for none.
SEEDS = {"bert": (44, 144), "cross": (45, 145), "classifier": (46, None), "qwen3": (48, None)}
_ARGUMENTS = ("--dtype=bfloat16", "--enforce-eager", "--max-num-seqs=64", "--max-model-len=512")
_MOST_DIFFERENT = 0.02
_NOTES = [
    {
        "what": "the order of the tasks in a refusal of /pooling",
        "why": "vLLM prints a set, whose order differs from start to start",
        "evidence": 'requests of kind "task"',
    },
    {
        "what": "an image that cannot be read, sent to a model without images",
        "why": "vLLM decodes it before it looks at the model; the simulated server decodes none",
        "evidence": 'requests of kind "messages"',
    },
]
Answer = tuple[int, str, str]
Files = dict[str, bytes]


def main() -> int:
    """Compare both servers; exit status 1 if more than 2 % of the answers differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    release, same, tried, rows = "", Counter[str](), Counter[str](), []
    for name, (seed, held_seed) in SEEDS.items():
        asked = requests_that_pool(COUNT, seed)
        asked += [] if held_seed is None else requests_that_pool(COUNT, held_seed)
        folder = options.models / name
        release, theirs = _real_answers(options.folder.resolve(), folder, asked)
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        shapes = []
        for at, (request, real, simulated) in enumerate(_shapes(release, files, asked, theirs)):
            part = "others" if at < COUNT else "held back"
            tried[part] += 1
            if alike(real, simulated):
                same[part] += 1
                shapes += [(request, real)] if part == "others" else []
                continue
            print(f"{name}, {part}: {request.kind}")
            if part == "others":
                print(f"  {request.method} {request.path} {request.content[:300]!r}")
                print(f"  real      {json.dumps(real)[:400]}", f"  simulated {json.dumps(simulated)[:400]}", sep="\n")
        rows.append((name, files, shapes))
    print(f"vLLM {release}: {same.total()} of {tried.total()} answered alike", flush=True)
    if options.record:
        _record(release, tried, same)
        kept_requests.write(release, rows)
    return 1 if tried.total() - same.total() > _MOST_DIFFERENT * tried.total() else 0


def _real_answers(vllm: Path, model: Path, asked: list[Asked]) -> tuple[str, list[Answer]]:
    """Start the real server with a model, and return its release and what it answers."""
    port, log = free_port(), log_file(f"vllm-pooling-{model.name}.log")
    line = [str(vllm / "venv/bin/vllm"), "serve", str(model), "--host=127.0.0.1", f"--port={port}"]
    line += ["--served-model-name=tiny", "--kv-cache-memory-bytes=64M", *_ARGUMENTS]
    with (
        log.open("w") as out,
        end_at_exit(
            subprocess.Popen(line, env=environment(vllm), stdout=out, stderr=out, start_new_session=True)
        ) as process,
    ):
        until_healthy(process, port, log)
        return served_release(port), [ask(port, request) for request in asked]


def _shapes(
    release: str, files: Files, asked: list[Asked], theirs: list[Answer]
) -> Iterator[tuple[Asked, list[Any], list[Any]]]:
    """Yield each request with the shapes of the real and of the simulated answer."""
    arguments = (*_ARGUMENTS, f"--release={release}")
    with (
        tempfile.TemporaryDirectory() as folder,
        simulated_vllm(Path(folder), *arguments, serving_speed=500, files=files) as url,
    ):
        for request, real in zip(asked, theirs, strict=True):
            simulated = ask(int(url.rpartition(":")[2]), request)
            yield request, answer_shape(*real), answer_shape(*simulated)


def _record(release: str, tried: Counter[str], same: Counter[str]) -> None:
    """Write the result of a release beside those of the others."""
    rows: list[list[Any]] = []
    if RESULTS.exists():
        rows = [row for row in json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if row[0] != release]
    third = f"{same['held back']} of {tried['held back']}"
    rows = sorted([*rows, [release, tried.total(), same.total(), tried.total() - same.total(), third]])
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    table = {
        "title": "vLLM: requests to models that pool, by release",
        "document": "fidelity",
        "order": 33,
        "about": (
            "Whole requests, made from a seed, to a real vLLM with tiny models that embed, rank and classify, and to "
            "the simulated server of the same release with the same files. Alike as above. A third was held back: not "
            "asked before the last change."
        ),
        "command": ".venv/bin/python -m tools.vllm.releases.pooled FOLDER MODELS --record",
        "stamp": {"commit": commit.stdout.strip(), **replayed.today(release)}
        | {"machine": "each release on a CPU, tiny BERT and Qwen3"},
        "columns": ["vLLM", "requests", "alike", "different", "alike of those held back"],
        "rows": rows,
        "notes": _NOTES,
    }
    RESULTS.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
