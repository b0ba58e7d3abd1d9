"""Comparison of the plan's, the simulated vLLM's and a real vLLM's verdicts on cases of relations at start.

    .venv/bin/python -m tools.vllm.starts.compare PYTHON MODEL [--record]

PYTHON is the interpreter of a real vLLM 0.32.0, MODEL a folder with Gemma 4's tokenizer. It needs torchvision for
Gemma 4's image processor (without its dependencies: `pip install --no-deps --target DIR torchvision==0.28.0`, then
PYTHONPATH=DIR), and for the cases on a TPU the folder tpu_inference of tpu-inference 0.32.0's wheel on PYTHONPATH.
No server is started. Prints each case, and as last column why the three differ; a difference without a reason in
explanations.toml makes the exit status 1. `--record` stores the real one's verdicts and the documents' table.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.start_relations import real
from tests.support.start_relations import real_verdicts as judges
from tests.support.start_relations.cases import ROOT, Case, seed_models


def main() -> int:
    """Compare, print, and record on request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("model", type=Path)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    cases = tuple({case.id: case for case in judges.all_cases()}.values())
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "real").mkdir()
        real.seed_real_models(folder / "real", options.model)
        verdicts = real.ask(options.python, [real.question(case, folder / "real") for case in cases])
        seed_models(folder)
        judgments = judges.judge_cases(cases, folder)
        rows = [
            {"case": case.id, **{key: _without_paths(text, folder / "real") for key, text in verdict.items()}}
            for case, verdict in zip(cases, verdicts, strict=True)
        ]
    unexplained = 0
    for case, row in zip(cases, rows, strict=True):
        reasons = {who: judges.explanation(case, who, row, refuses=judgments[case.id][who]) for who in judges.JUDGES}
        unexplained += sum(reason is None for reason in reasons.values())
        answers = ["refused" if judgments[case.id][who] else "accepted" for who in judges.JUDGES]
        why = "; ".join(f"{who}: {reason or 'NOT EXPLAINED'}" for who, reason in reasons.items() if reason != "")
        print(" | ".join([case.id, *answers, f"{row['verdict']} {row['stage']} {row['said'][:200]}", why]))
    if options.record:
        _record(rows, cases, judgments)
    print(f"{len(rows)} cases, {unexplained} differences without an explanation")
    return 1 if unexplained else 0


def _without_paths(text: str, models: Path) -> str:
    """Name the folders of this machine by what they hold: no other machine has them."""
    return re.sub(r"[^\s\"]+/site-packages/", "PACKAGES/", text.replace(str(models), "MODELS"))


def _record(rows: list[dict[str, str]], cases: tuple[Case, ...], judgments: dict[str, dict[str, bool]]) -> None:
    lines = ",\n".join(f" {json.dumps(row, ensure_ascii=False)}" for row in rows)
    judges.RECORDED.parent.mkdir(exist_ok=True)
    judges.RECORDED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    judges.recorded_verdicts.cache_clear()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    stamp = {
        "commit": commit,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"vLLM 0.32.0 on {platform.machine()} (CPU build), no GPU",
    }
    text = json.dumps(judges.table(cases, judgments, stamp), indent=1, ensure_ascii=False)
    judges.TABLE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
