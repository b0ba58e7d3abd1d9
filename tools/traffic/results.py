"""Tables of the fidelity document from recordings of the published provider.

    python -m tools.traffic.results FOLDER [--write]

Every difference must be explained, each explanation must occur, and each type must be recorded or listed as not
recorded: otherwise the exit status is 1. `--write` writes tests/results/provider-{requests,calls}.json; without it the
counts there must equal the present ones. The comparison itself is that of `bezel_pulumi_offline.fidelity`.
"""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bezel_base.command_line.program import run_program
from bezel_pulumi_offline.fidelity.explanations import Compared, Explanations
from bezel_pulumi_offline.fidelity.report import compare, differences_without_explanation, gaps, summary

ROOT = Path(__file__).parents[2]
COMMAND = "python -m tools.traffic.results FOLDER --write"
_RECORDED = (
    " The recordings are of the upstream provider behind Pulumi's bridge, in August 2026, against an emulator; its "
    "attribution label is read as the published plugin's."
)
SECTIONS: dict[str, dict[str, Any]] = {
    "provider-requests": {
        "title": "Google provider: requests",
        "document": "fidelity",
        "order": 10,
        "about": "What the stand-in sends to Google (method, path, query, body) against recordings of the published "
        "provider's, for each operation of each resource type that the program uses, failures included." + _RECORDED,
    },
    "provider-calls": {
        "title": "Google provider: answers to the engine",
        "document": "fidelity",
        "order": 11,
        "about": "What the stand-in answers to Check, Diff, Create, Read, Update and Delete (and, before there are "
        "resources, to Handshake, GetPluginInfo, CheckConfig, Configure and DiffConfig) against recordings, previews, "
        "refused creates, failed operations and an import included." + _RECORDED,
    },
}


def _table(name: str, compared: list[Compared], explanations: Explanations) -> dict[str, Any]:
    section = name.removeprefix("provider-")
    unrecorded = [entry for entry in explanations.not_recorded if entry["section"] == section]
    rows = [[entry["resource"], 0, 0, 0] for entry in unrecorded]
    for resource in {item.resource for item in compared if item.section == section}:
        of_it = [item for item in compared if (item.section, item.resource) == (section, resource)]
        equal = sum(not item.differences for item in of_it)
        rows.append([resource, len(of_it), equal, len(of_it) - equal])
    notes = [("not recorded", entry) for entry in unrecorded]
    notes += [(f"{e['what']}: {e['path']}", e) for e in explanations.differences if e["section"] == section]
    return {
        **SECTIONS[name],
        "command": COMMAND,
        "stamp": _stamp(),
        "columns": ["resource", "compared", "equal", "explained"],
        "rows": sorted(rows),
        "notes": [
            {"what": f"{entry['resource']}, {what}", "why": entry["why"], "evidence": entry["evidence"]}
            for what, entry in notes
        ],
    }


def _stamp() -> dict[str, str]:
    """The commit and day of the comparison."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return {"commit": commit, "date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine}


def is_current(name: str, compared: list[Compared], explanations: Explanations, write: bool) -> bool:
    """Whether a committed table has the present results, whenever it was written; with `write` it is written first."""
    file = ROOT / "tests" / "results" / f"{name}.json"
    now = _table(name, compared, explanations)
    if write:
        file.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n")
    before = json.loads(file.read_text()) if file.exists() else {}
    return bool({**before, "stamp": None} == {**now, "stamp": None})


def run(arguments: Sequence[str]) -> int:
    """Compare, and write or check the tables; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.traffic.results")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write the tables of the results")
    options = parser.parse_args(arguments)
    compared, explanations = compare(options.folder)
    problems = [*differences_without_explanation(compared, explanations)]
    problems += gaps(compared, explanations)
    print("\n".join([*problems, *summary(compared)]))
    if problems:
        return 1
    stale = [name for name in SECTIONS if not is_current(name, compared, explanations, options.write)]
    if stale:
        print(f"{', '.join(stale)}: the committed tables say something else. Look at why, then: {COMMAND}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(run_program("results", None, run))
