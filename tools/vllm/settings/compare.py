"""Comparison of the plan's, the simulated vLLM's and a real vLLM's verdicts on 300 generated settings.

    .venv/bin/python -m tools.vllm.settings.compare PYTHON MODEL [--record | --seed NUMBER ...]

PYTHON is the interpreter of a real vLLM 0.32.0, MODEL the folder of a tiny Gemma 4 of 32768 tokens. No engine is
started. Prints the table of differences; one without a row in explanations.json makes the exit status 1.
Each seed makes 300 other settings. `--record` stores the real vLLM's verdicts on those of the recorded seed, which the
tests compare with the plan's and the simulated server's, and the table of the documents.
"""

from __future__ import annotations

import argparse
import collections
import datetime as dt
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from tests.support.simulated_vllm import settings_compared as judges
from tools.vllm.settings.generated import SEED, generate

ROOT = Path(__file__).resolve().parents[3]

_SECONDS = 900


def main() -> int:
    """Compare, print the table, and record it on request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("model", type=Path)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--record", action="store_true")
    chosen.add_argument("--seed", type=int, nargs="+", default=[SEED])
    options = parser.parse_args()
    unexplained = 0
    for seed in options.seed:
        began = time.monotonic()
        settings = generate(seed)
        real = _real(options.python, options.model, settings)
        rows = [{**one, "real": verdict} for one, verdict in zip(settings, real, strict=True)]
        unexplained += _print(rows, seed)
        print(f"seed {seed}: {time.monotonic() - began:.0f} s", flush=True)
    if options.record:
        lines = ",\n".join(f" {json.dumps(row, ensure_ascii=False)}" for row in rows)
        judges.RECORDED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        stamp = {
            "commit": commit,
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "machine": f"vLLM 0.32.0 on {platform.machine()} (CPU), tiny Gemma 4",
        }
        with tempfile.TemporaryDirectory() as folder:
            judgments = judges.verdicts(rows, Path(folder))
        text = json.dumps(judges.table(rows, judgments, stamp), indent=1, ensure_ascii=False)
        judges.TABLE.write_text(text + "\n", encoding="utf-8")
    return 1 if unexplained else 0


def _print(rows: list[dict[str, Any]], seed: int) -> int:
    """Print the differences by their reasons, and each without one; return the number of those."""
    with tempfile.TemporaryDirectory() as folder:
        differences = [row for one in rows for row in _differences(one, Path(folder))]
    reasons = collections.Counter((row["who"], row["reason"] or "NOT EXPLAINED") for row in differences)
    refused = sum(row["real"] is not None for row in rows)
    print(f"seed {seed}: {len(rows)} settings, {refused} refused by the real vLLM; {len(differences)} differences:")
    for (who, reason), count in sorted(reasons.items()):
        print(f"  {count:3} {who:9} {reason}")
    unexplained = [row for row in differences if row["reason"] is None]
    for row in unexplained:
        print(json.dumps(row, ensure_ascii=False))
    return len(unexplained)


def _real(python: str, model: Path, settings: list[dict[str, Any]]) -> list[str | None]:
    questions = [{"words": judges.words(row), "variables": row["variables"]} for row in settings]
    done = subprocess.run(
        [python, "-m", "tools.vllm.settings.verdicts", str(model)],
        input=json.dumps(questions),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=_SECONDS,
    )
    verdicts: list[str | None] = json.loads(done.stdout)
    return verdicts


def _differences(row: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    verdicts = {"plan": judges.plan_verdict(row), "simulated": judges.simulated_verdict(row, folder)}
    return [
        {"who": who, "reason": reason, **row, "says": verdict}
        for who, verdict in verdicts.items()
        if (reason := judges.explanation(row, who, verdict, row["real"])) != ""
    ]


if __name__ == "__main__":
    sys.exit(main())
