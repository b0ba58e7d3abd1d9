"""Answers of Prometheus's own code to questions about scrapes: `python -m tools.traffic.scrape_answers`.

Writes packages/localcloud/tests/collector/answers.json; needs Go, which builds the code (tools/go/scrape-reference).
Leaves out the questions (`localcloud_support.scrape_questions`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from localcloud_support.scrape_questions import relabelings, texts

ROOT = Path(__file__).parents[2]
FILE = ROOT / "packages" / "localcloud" / "tests" / "collector" / "answers.json"


def reference_answers(folder: Path) -> dict[str, Any]:
    """What the program in a folder answers."""
    asked = json.dumps({"relabelings": relabelings(), "texts": texts()})
    ended = subprocess.run([folder / "scrape-reference"], input=asked, capture_output=True, text=True, check=True)
    answers: dict[str, Any] = json.loads(ended.stdout)
    return answers


def file_text(answers: dict[str, Any]) -> str:
    """The text of the file: one line for each answer, in the order of the questions."""
    pins = (ROOT / "tools" / "go" / "scrape-reference" / "go.mod").read_text()
    version = re.findall(r"prometheus/prometheus (v\S+)", pins)[0]
    source = f"github.com/prometheus/prometheus {version}, model/relabel and model/textparse"
    parts = [f'"source": {json.dumps(source)}']
    for kind in ("relabelings", "texts"):
        lines = ",\n".join(json.dumps(answer, separators=(",", ":"), sort_keys=True) for answer in answers[kind])
        parts.append(f'"{kind}": [\n{lines}\n]')
    return "{" + ",\n".join(parts) + "}\n"


def main() -> None:
    """Write the file."""
    command = [sys.executable, str(ROOT / "tools" / "toolchain" / "go_programs.py"), "scrape-reference"]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    FILE.write_text(file_text(reference_answers(Path(ended.stdout.strip()))))


if __name__ == "__main__":
    main()
