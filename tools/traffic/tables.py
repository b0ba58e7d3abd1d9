"""Evaluation of `compare_traffic.py`'s comparisons: the explained differences, and the tables of results."""

import json
import platform
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.traffic.replay import Difference

ROOT = Path(__file__).parents[2]
COMMAND = "python -m tools.traffic.compare FOLDER --write"
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


@dataclass
class Compared:
    """One recorded call or exchange beside ours."""

    section: str  # requests or calls
    resource: str
    what: str
    found: list[Difference]


@dataclass
class Explanations:
    """The known differences, the types without a recording, and which of these occurred."""

    differences: list[dict[str, str]]
    not_recorded: list[dict[str, str]]
    met: set[int] = field(default_factory=set)

    def explain(self, compared: Compared) -> list[Difference]:
        """The differences for which there is no explanation."""
        left = []
        for difference in compared.found:
            where = (compared.section, compared.resource, compared.what, difference.path)
            matches = [index for index, entry in enumerate(self.differences) if where == _where(entry)]
            self.met.update(matches)
            if not matches:
                left.append(difference)
        return left

    @property
    def unmet(self) -> list[str]:
        """Explanations whose difference did not occur."""
        return [", ".join(_where(entry)) for index, entry in enumerate(self.differences) if index not in self.met]

    def unrecorded(self, known: set[str], compared: list[Compared]) -> list[str]:
        """Types that were not compared, or that were compared though listed as without a recording."""
        explained = {(entry["section"], entry["resource"]) for entry in self.not_recorded}
        expected = {(name.removeprefix("provider-"), resource) for name in SECTIONS for resource in known}
        matches = {(item.section, item.resource) for item in compared}
        return sorted(f"{section} of {resource}" for section, resource in (expected - matches) ^ explained)


def _where(entry: dict[str, str]) -> tuple[str, ...]:
    return tuple(entry[key] for key in ("section", "resource", "what", "path"))


def _table(name: str, compared: list[Compared], explanations: Explanations) -> dict[str, Any]:
    section = name.removeprefix("provider-")
    unrecorded = [entry for entry in explanations.not_recorded if entry["section"] == section]
    rows = [[entry["resource"], 0, 0, 0] for entry in unrecorded]
    for resource in {item.resource for item in compared if item.section == section}:
        of_it = [item for item in compared if (item.section, item.resource) == (section, resource)]
        equal = sum(not item.found for item in of_it)
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


def settled(name: str, compared: list[Compared], explanations: Explanations, write: bool) -> bool:
    """Whether a committed table has the present results, whenever it was written; with `write` it is written first."""
    file = ROOT / "tests" / "results" / f"{name}.json"
    now = _table(name, compared, explanations)
    if write:
        file.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n")
    before = json.loads(file.read_text()) if file.exists() else {}
    return bool({**before, "stamp": None} == {**now, "stamp": None})
