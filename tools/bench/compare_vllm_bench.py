"""Comparison of the benchmark with `vllm bench serve` on a real vLLM: counters, figures, reasons of differences.

    .venv/bin/python -m tools.bench.compare_vllm_bench FOLDER [--only NAME ...] [--rounds N] [--write]

FOLDER is the one of tools/vllm/real_server.py. A server is started for each configuration; both clients send the same
load in turns (`ROUNDS` each, so that other work of the machine affects both). The tables show both clients' medians,
and each client's means beside those of the server's own clocks for the same requests, which no other load disturbs.
`--write` puts the tables into docs/metrics.md. A tiny model on a CPU: its speed does not apply to other hardware.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel_base.loopback.listeners import free_port
from bezel_bench.load.plan import Target
from bezel_bench.server.counters import series
from bezel_bench.server.http_probe import asker
from tools.docs.generated_sections import ROOT, put
from tools.vllm.real_server import command, end_at_exit, environment, log_file, until_healthy

if TYPE_CHECKING:
    from collections.abc import Sequence

_NGRAM = '{"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":3,"prompt_lookup_min":1}'
_SERVED = ("--served-model-name=tiny-gemma4", "--max-model-len=4096", "--generation-config=vllm")
SERVERS = {
    "without drafts": (*_SERVED, "--enable-prompt-tokens-details"),
    "with MTP": (*_SERVED, "--spec-method=mtp", "--spec-model={assistant}", "--spec-tokens=3"),
    "with n-grams": (*_SERVED, f"--speculative-config={_NGRAM}"),
}
USERS, REQUESTS, INPUT, OUTPUT = 8, 120, 128, 32
ROUNDS = 5
_RUN_SECONDS = 240
MODEL = "tiny-gemma4"


@dataclass(frozen=True)
class Figure:
    """One figure of both clients.

    Attributes:
        theirs: Its key in the JSON of `vllm bench serve`, and in our export of the same format.
        ours: The cell's own figure, where it has another definition.
        why: Reason of a difference.
    """

    name: str
    unit: str
    theirs: str
    ours: str
    why: str


FIGURES = (
    Figure(
        "requests", "1/s", "request_throughput", "requests_per_second",
        "theirs, and the export's, divide by the whole time, with a start and an end where few run; the cell's is of "
        "the steady part",
    ),
    Figure("output tokens", "1/s", "output_throughput", "output_tokens_per_second", "as requests"),
    Figure(
        "ttft p50", "ms", "median_ttft_ms", "ttft_p50",
        "theirs ends at the role chunk, which comes with the first token, when their event loop gets to it; ours at "
        "the kernel's stamp of the first token that has a text. Their prompts are longer (below)",
    ),
    Figure(
        "ttft p99", "ms", "p99_ttft_ms", "ttft_p99",
        "the start, where all users come at once, is in theirs and the export's only",
    ),
    Figure(
        "tpot p50", "ms", "median_tpot_ms", "tpot_p50",
        "(e2e - ttft) / (tokens - 1) by usage in both, with drafts too. Theirs begins at the role chunk, ours at the "
        "first token that has a text, a step later where an answer begins with one that has none (bytes of no whole "
        "character, special tokens: 12 % of this random model's). The rest is the server's own, from round to round",
    ),
    Figure(
        "itl mean", "ms", "mean_itl_ms", "itl_mean",
        "theirs has one gap more in each answer, of about 0.05 ms, between role chunk and first token (31 become 32: "
        "3 % less), and counts chunks without a text, of which ours makes longer gaps. Neither is a time for each "
        "token: a chunk carries several with drafts, and without drafts where the server's HTTP side is behind its "
        "engine and sends together what has gathered (3 % of the tokens of a single user)",
    ),
    Figure("e2e p50", "ms", "median_e2el_ms", "e2e_p50", "as ttft and tpot, of which it is made"),
    Figure(
        "prompt tokens", "", "total_input_tokens", "",
        "ours are 128 by the server's count, template included; theirs are 128 of a vocabulary, and what the template "
        "and tokenising them anew add",
    ),
    Figure("output tokens, all", "", "total_output_tokens", "", "exact in both: ignore_eos and max_tokens"),
    Figure(
        "acceptance", "%", "spec_decode_acceptance_rate", "",
        "the server's counters in both, of other prompts; an assistant with random weights foresees nothing",
    ),
)  # fmt: skip


# The server's histograms whose sum and count give a mean, and the clients' keys for it.
OWN_CLOCK = {
    "ttft": ("vllm:time_to_first_token_seconds", "mean_ttft_ms"),
    "tpot": ("vllm:request_time_per_output_token_seconds", "mean_tpot_ms"),
    "e2e": ("vllm:e2e_request_latency_seconds", "mean_e2el_ms"),
}


@dataclass(frozen=True)
class Round:
    """A turn of both: vLLM's JSON, ours in its format, our cell, the server's means (ms) of each client's requests."""

    theirs: dict[str, Any]
    export: dict[str, Any]
    cell: dict[str, Any]
    server_of_theirs: dict[str, float]
    server_of_ours: dict[str, float]


def main() -> int:
    """Run the requested measurements; exit status 1 if a cell is not ok or counters disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(SERVERS), default=list(SERVERS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    results = {name: _server(options.folder.resolve(), name, options.rounds) for name in options.only}
    text = _text(results)
    sys.stdout.write(text)
    if options.write:
        put(ROOT / "docs" / "metrics.md", "tools.bench.compare_vllm_bench", text)
    return 0 if all(_sound(result.cell) for rounds in results.values() for result in rounds) else 1


def _server(folder: Path, name: str, rounds: int) -> list[Round]:
    port = free_port()
    log = log_file(f"bench-real-vllm-{name}.log")
    line = command(folder, port, SERVERS[name])
    print(f"{name}: starts a real vLLM, log {log}", file=sys.stderr, flush=True)
    with (
        log.open("w") as out,
        tempfile.TemporaryDirectory() as work,
        end_at_exit(
            subprocess.Popen(line, env=environment(folder), stdout=out, stderr=out, start_new_session=True)
        ) as process,
    ):
        until_healthy(process, port, log)
        url = f"http://127.0.0.1:{port}"
        # Compilation and look-ups that happen once must count for neither client.
        _ours(url, Path(work) / "warm.json")
        results = []
        for turn in range(rounds):
            print(f"{name}: round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
            results.append(_round(folder, url, Path(work), turn))
    log.unlink()
    return results


def _round(folder: Path, url: str, work: Path, turn: int) -> Round:
    """Run both clients; the first one alternates."""
    theirs: dict[str, Any] = {}
    means: dict[str, dict[str, float]] = {}
    for client in ("theirs", "ours") if turn % 2 else ("ours", "theirs"):
        before = _clocks(url)
        if client == "theirs":
            theirs = _theirs(folder, url, work, turn)
        else:
            export, cell = _ours(url, work / f"{turn}.json")
        after = _clocks(url)
        means[client] = {
            name: 1000 * (after[name][0] - total) / (after[name][1] - count) for name, (total, count) in before.items()
        }
    return Round(theirs, export, cell, means["theirs"], means["ours"])


def _clocks(url: str) -> dict[str, tuple[float, float]]:
    """Sum (seconds) and count of each of the server's histograms."""
    text = asker(Target(url, MODEL), dict)("/metrics", None).body.decode()
    results = {name: value for name, _, value in series(text)}
    return {name: (results[f"{family}_sum"], results[f"{family}_count"]) for name, (family, _) in OWN_CLOCK.items()}


def _ours(url: str, out: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    bezel = [str(Path(sys.executable).parent / "bezel"), "bench"]
    load = [f"--users={USERS}", f"--requests={REQUESTS}", f"--input-tokens={INPUT}", f"--output-tokens={OUTPUT}"]
    sent = [*bezel, "run", f"--url={url}", f"--model={MODEL}", "--public", *load, f"--out={out}"]
    # 1: a cell is not ok, as the file shows.
    _checked_output(
        subprocess.run(sent, cwd=ROOT, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False), {0, 1}
    )
    shape = [*bezel, "export", str(out), "--format=vllm"]
    export = subprocess.run(shape, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return json.loads(_checked_output(export, {0})), json.loads(out.read_text(encoding="utf-8"))["cells"][0]


def _theirs(folder: Path, url: str, work: Path, turn: int) -> dict[str, Any]:
    client = [
        str(folder / "venv/bin/vllm"), "bench", "serve", "--backend=openai-chat", "--endpoint=/v1/chat/completions",
        f"--base-url={url}", f"--model={MODEL}", f"--tokenizer={folder / 'models' / MODEL}", "--dataset-name=random",
        f"--random-input-len={INPUT}", f"--random-output-len={OUTPUT}", f"--num-prompts={REQUESTS}",
        f"--max-concurrency={USERS}", "--ignore-eos", "--temperature=0", f"--seed={turn}", "--save-result",
        "--percentile-metrics=ttft,tpot,itl,e2el", "--metric-percentiles=50,90,95,99", f"--result-dir={work}",
        f"--result-filename=theirs-{turn}.json",
    ]  # fmt: skip
    done = subprocess.run(
        client, env=environment(folder), capture_output=True, text=True, timeout=_RUN_SECONDS, check=False
    )
    _checked_output(done, {0})
    return dict(json.loads((work / f"theirs-{turn}.json").read_text(encoding="utf-8")))


def _checked_output(done: subprocess.CompletedProcess[str], good: set[int]) -> str:
    if done.returncode not in good:
        raise SystemExit(f"{' '.join(done.args[:6])} ... ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def _sound(cell: dict[str, Any]) -> bool:
    counters = next(check for check in cell["checks"] if check["name"] == "counters")
    return bool(cell["state"] == "ok" and counters["state"] == "passed")


def _text(rounds_of: dict[str, list[Round]]) -> str:
    load = f"{USERS} users, {REQUESTS} chats of {INPUT} + {OUTPUT} tokens"
    rounds = max(len(result) for result in rounds_of.values())
    head = (
        f"vLLM 0.32.0 on a CPU, a tiny Gemma 4 with random weights, either client on the same {_cores()} cores as the\n"
        f"server, {datetime.now(UTC).date().isoformat()}: {load}, in turns, medians of {rounds} rounds\n"
        "(least to most). `export` has vLLM's definitions, `cell` the benchmark's own. Other work ran on the machine\n"
        "at the same time: the ranges are wide, and where they overlap no difference is shown.\n"
    )
    lines = [head, *_counters(rounds_of), *_own_clocks(rounds_of)]
    for name, turns in rounds_of.items():
        lines += [
            f"#### {name[0].upper()}{name[1:]}\n",
            "| figure | `vllm bench serve` | export | cell |",
            "|---|---|---|---|",
        ]
        for figure in FIGURES:
            row = [
                _column([result.theirs.get(figure.theirs) for result in turns]),
                _column([result.export.get(figure.theirs) for result in turns]),
                _column([_own(result.cell, figure.ours) for result in turns]),
            ]
            if any(cell != "-" for cell in row[:2]):
                lines.append(f"| {figure.name}{f', {figure.unit}' if figure.unit else ''} | {' | '.join(row)} |")
        lines.append("")
    return "\n".join([*lines, *_why()])


def _why() -> list[str]:
    return ["#### Why they differ\n", *(f"- **{figure.name}**: {figure.why}." for figure in FIGURES), ""]


def _counters(results: dict[str, list[Round]]) -> list[str]:
    """The largest difference between the server's counters and the client's."""
    lines = ["| server | requests | prompt tokens | output tokens | tokens a chunk | acceptance length | states |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name, rounds in results.items():
        cells = [result.cell for result in rounds]
        numbers = [next(check for check in cell["checks"] if check["name"] == "counters")["numbers"] for cell in cells]
        off = [
            f"{max(abs(result[f'{what}_off']) for result in numbers):.2%} off"
            if all(f"{what}_off" in result for result in numbers)
            else "not known"
            for what in ("requests", "prompt_tokens", "output_tokens")
        ]
        more = [_column([_own(cell, figure) for cell in cells]) for figure in ("tokens_per_chunk", "acceptance_length")]
        states = ", ".join(dict.fromkeys(cell["state"] for cell in cells))
        lines.append(f"| {name} | {' | '.join([*off, *more])} | {states} |")
    return [*lines, ""]


def _own_clocks(results: dict[str, list[Round]]) -> list[str]:
    """The excess of each client's means over the server's own, for the same requests."""
    lines = [
        "Milliseconds that a client's mean has on top of the mean of the server's own clock, for the same requests",
        "(the column shows the clock for the export's). That clock starts when a request is read and its prompt",
        "tokenised, so that a client's ttft and e2e have the way there on top, and a tpot has nothing:\n",
    ]
    lines += ["| server | mean | by the server | `vllm bench serve` | export |", "|---|---|---|---|---|"]
    for name, rounds in results.items():
        for metric, (_, key) in OWN_CLOCK.items():
            row = [
                _column([result.server_of_ours[metric] for result in rounds]),
                _column([result.theirs[key] - result.server_of_theirs[metric] for result in rounds]),
                _column([result.export[key] - result.server_of_ours[metric] for result in rounds]),
            ]
            lines.append(f"| {name} | {metric} | {' | '.join(row)} |")
    return [*lines, ""]


def _own(cell: dict[str, Any], figure: str) -> float | None:
    value = cell["metrics"].get(figure, {}).get("value")
    return None if value is None else float(value)


def _column(values: Sequence[float | None]) -> str:
    measured = [value for value in values if value is not None]
    if not measured:
        return "-"
    low, middle, high = (
        f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
        for value in (min(measured), statistics.median(measured), max(measured))
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def _cores() -> str:
    from bezel_bench.server.manifest import this_machine

    machine = this_machine()
    return f"{machine.cores} {platform.machine()}"


if __name__ == "__main__":
    sys.exit(main())
