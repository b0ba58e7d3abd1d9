"""Differences of a later release of vLLM from the first recorded one, in the layouts of the same models.

    PYTHON tools/vllm/architectures/later_release.py FIRST LATER... OUT

FIRST is the file that record.py wrote with the first release, LATER those that it wrote with the later one for the same
models. OUT gets a row for each model of LATER: what differs from FIRST, null for what is not there any more, and the
whole row of a model that FIRST has not laid out. Imports nothing of this project.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

# Weights that vLLM fills in, and what it logs, are no part of a layout.
NOT_COMPARED = ("config", "parameters", "parameter_bytes", "tensors", "log")


def differing_row(first: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """The values of a later row that differ from the first."""
    if "groups" not in first and "groups" in later:
        return later
    # An error may name folders and lists that differ from run to run: that both end with one is the same.
    skipped = {*NOT_COMPARED, "error"} if "error" in first and "error" in later else NOT_COMPARED
    names = [name for name in {**first, **later} if name not in skipped]
    return {name: later.get(name) for name in names if first.get(name) != later.get(name)}


def main() -> None:
    """Write the differences."""
    files = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:-1]]
    first, *others = files
    models = {name: row for content in others for name, row in content["models"].items()}
    rows = {name: differing_row(first["models"].get(name, {}), models[name]) for name in sorted(models)}
    head = {"vllm": others[0]["vllm"].partition("+")[0], "transformers": others[0]["transformers"]}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    text = f'{json.dumps(head)[:-1]}, "models": {{\n{lines}\n}}}}\n'
    Path(sys.argv[-1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
