"""Requests with tools to a real vLLM and to the simulated server, with each parser: how many are answered alike.

    .venv/bin/python -m tools.vllm.tool_calls.compare FOLDER [--count N] [--seed N] [--record] [PARSER...]

FOLDER is that of `tools.vllm.contract`. One real engine with random weights serves all parsers (`serve_parsers`), by a
tokenizer that has the marks of all families. Compared: status, type of the content, shape, the text of an error, and
the calls with their ids, names and end. A call that random weights left out, cut, or made of another tool is counted by
itself. `--record` writes `tests/results/vllm-tool-calls.json`, and some of the answers for the tests. The exit status
is 1 where more than 4 of 100 differ.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_base.loopback.listeners import free_port
from simulated_vllm_support import replayed, tool_calls
from simulated_vllm_support.process import simulated_vllm
from simulated_vllm_support.shapes import alike
from simulated_vllm_support.tool_calls import called_shape, is_unwritten
from tools.vllm.real_server import end_at_exit, environment, installed_release, log_file
from tools.vllm.releases.compare import ask
from tools.vllm.tool_calls.model import make_model
from tools.vllm.tool_calls.requests import COUNT, SEED, requests_of_tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simulated_vllm_support.client_requests import Asked

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "tests" / "results" / "vllm-tool-calls.json"
PARSERS = (
    *("hermes", "llama3_json", "mistral", "qwen3_coder", "deepseek_v3", "deepseek_v31", "granite", "granite4"),
    *("openai", "glm45", "kimi_k2", "pythonic", "internlm", "phi4_mini_json", "jamba", "xlam", "minimax_m2"),
    *("seed_oss", "hunyuan_a13b"),
)
_MOST_DIFFERENT = 0.04
_KEPT = 12
_Row = tuple[str, "Asked", list[Any], list[Any]]


def main() -> int:
    """Compare both servers; exit status 1 if more than 4 % of the answers differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parsers", nargs="*", default=PARSERS)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_intermixed_args()
    folder, parsers = options.folder.resolve(), tuple(options.parsers)
    release = installed_release(folder)
    with tempfile.TemporaryDirectory() as made:
        model = Path(made, "tiny")
        asked = requests_of_tools(make_model(folder / "models" / "tiny-gemma4", model), options.count, options.seed)
        with _real(folder, model, parsers) as first:
            theirs = [[called_shape(*ask(first + number, one)) for one in asked] for number in range(len(parsers))]
        # Without the tokenizer, of which the simulated server would read only whether it has the marks.
        files = {"config.json": (model / "config.json").read_bytes(), "model.safetensors": b"\0" * 400_000}
    rows: list[_Row] = []
    for name, answers in zip(parsers, theirs, strict=True):
        ours = _ask_simulated(asked, name, release, files)
        rows += [(name, *row) for row in zip(asked, answers, ours, strict=True)]
    different = [row for row in rows if _verdict(row) == "different"]
    for name, request, real, simulated in different:
        print(f"{name}: {request.kind} {request.content[-300:]!r}")
        print(f"  real      {json.dumps(real)[:400]}", f"  simulated {json.dumps(simulated)[:400]}", sep="\n")
    same = sum(_verdict(row) == "alike" for row in rows)
    unwritten = len(rows) - same - len(different)
    print(f"vLLM {release}: {same} of {len(rows)} alike, {unwritten} calls not written, {len(different)} different")
    if options.record:
        _record(release, rows)
        tool_calls.write(release, [(name, one, real) for name, one, real in _examples(rows)])
    return 1 if len(different) > _MOST_DIFFERENT * len(rows) else 0


def _verdict(row: _Row) -> str:
    _, request, real, simulated = row
    if alike(real, simulated):
        return "alike"
    return "unwritten" if is_unwritten(request, real, simulated) else "different"


@contextlib.contextmanager
def _real(folder: Path, model: Path, parsers: Sequence[str]) -> Iterator[int]:
    """The first port of the real servers, one for each parser."""
    first, log = free_port(), log_file("vllm-tool-calls.log")
    script = Path(__file__).with_name("serve_parsers.py")
    # -P: a module of this folder has the name of a library.
    line = [str(folder / "venv/bin/python"), "-P", str(script), str(model), str(first), *parsers]
    with (
        log.open("w") as out,
        end_at_exit(
            subprocess.Popen(
                line,
                env=environment(folder),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                text=True,
                start_new_session=True,
            )
        ) as process,
    ):
        if not any(text.strip() == "ready" for text in process.stdout or ()):
            raise SystemExit(f"the real vLLM did not start; its log is {log}")
        yield first


def _ask_simulated(asked: Sequence[Asked], parser: str, release: str, files: Mapping[str, bytes]) -> list[list[Any]]:
    arguments = ("--max-model-len=2048", "--enable-auto-tool-choice", f"--tool-call-parser={parser}")
    with (
        tempfile.TemporaryDirectory() as models,
        simulated_vllm(Path(models), *arguments, f"--release={release}", serving_speed=500, files=files) as url,
    ):
        return [called_shape(*ask(int(url.rpartition(":")[2]), one)) for one in asked]


def _examples(rows: Sequence[_Row]) -> Iterator[tuple[str, Asked, list[Any]]]:
    """Some answers of each parser that are alike, in the order of the requests."""
    counted: dict[str, int] = {}
    for row in rows:
        if _verdict(row) == "alike" and counted.get(row[0], 0) < _KEPT:
            counted[row[0]] = counted.get(row[0], 0) + 1
            yield row[:3]


def _record(release: str, rows: Sequence[_Row]) -> None:
    """Write the result of a release beside those of the others."""
    table_rows: list[list[Any]] = []
    if RESULTS.exists():
        table_rows = [row for row in json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if row[0] != release]
    for name in dict.fromkeys(row[0] for row in rows):
        verdicts = [_verdict(row) for row in rows if row[0] == name]
        counts = [verdicts.count(each) for each in ("alike", "unwritten", "different")]
        table_rows.append([release, name, len(verdicts), *counts])
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    table = {
        "title": "vLLM: calls of tools, by parser",
        "document": "fidelity",
        "order": 33,
        "about": (
            "Chat requests with tools, made from a seed, to a real vLLM and to the simulated server with the same "
            "--tool-call-parser: every choice of tools, strict and not, streamed and not, broken schemas. Alike means "
            "the same status, type of content, shape and text of a refusal, and the same calls."
        ),
        "command": ".venv/bin/python -m tools.vllm.tool_calls.compare FOLDER --record",
        "stamp": {"commit": commit.stdout.strip(), **replayed.today(release)}
        | {"machine": "each release on a CPU, a tiny Llama with random weights"},
        "columns": ["vLLM", "parser", "requests", "alike", "call not written", "different"],
        "rows": sorted(table_rows),
        "notes": [
            {
                "what": "a call that is not written",
                "why": "random weights left it out, cut it at the limit, or chose another tool; the simulated server "
                "always writes a whole call of the first tool",
                "evidence": "mistral forces a list in JSON, which its parser, with a tokenizer of another family, "
                "leaves as text",
            }
        ],
    }
    RESULTS.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
