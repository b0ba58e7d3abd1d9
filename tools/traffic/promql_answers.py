"""Answers of Prometheus's own engine to the questions of localcloud's tests: `python -m tools.traffic.promql_answers`.

Writes packages/localcloud/tests/promql/answers.json; needs Go, which builds the engine (tools/go/promql-reference).
Leaves out the questions (`localcloud_support.promql_questions`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from localcloud_support.promql_questions import queries, reference_questions

ROOT = Path(__file__).parents[2]
FILE = ROOT / "packages" / "localcloud" / "tests" / "promql" / "answers.json"


def reference_answers(folder: Path) -> list[dict[str, Any]]:
    """What the program in a folder answers."""
    asked = json.dumps(reference_questions())
    ended = subprocess.run([folder / "promql-reference"], input=asked, capture_output=True, text=True, check=True)
    answers: list[dict[str, Any]] = json.loads(ended.stdout)
    for answer in answers:  # the engine's order is that of a map
        answer.get("series", []).sort(key=lambda series: sorted(series[0].items()))
    return answers


def file_text(answers: list[dict[str, Any]]) -> str:
    """The text of the file: one line for each question and its answer."""
    pins = (ROOT / "tools" / "go" / "promql-reference" / "go.mod").read_text()
    version = re.findall(r"prometheus/prometheus (v\S+)", pins)[0]
    source = f"github.com/prometheus/prometheus {version}, promql.Engine with UseStartTimestamps"
    pairs = zip(queries(), answers, strict=True)
    lines = ",\n".join(json.dumps([list(question), answer], separators=(",", ":")) for question, answer in pairs)
    return f'{{"source": {json.dumps(source)}, "answers": [\n{lines}\n]}}\n'


def main() -> None:
    """Write the file."""
    command = [sys.executable, str(ROOT / "tools" / "toolchain" / "go_programs.py"), "promql-reference"]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    FILE.write_text(file_text(reference_answers(Path(ended.stdout.strip()))))


if __name__ == "__main__":
    main()
