"""Policies of the packs: what each holds, its configuration, and the limits beside the packs of the project.

The records are made from the packs (`python -m tools.docs.operations --write`): operations do not import policies.
"""

import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from bezel.operations.explain.entry import Entry, facts, list_text

RECORDS = "policies.json"


@lru_cache
def records() -> tuple[dict[str, Any], ...]:
    """Pack, name, what holds, and keys of each policy."""
    return tuple(json.loads((files(__package__ or "") / RECORDS).read_text(encoding="utf-8")))


def names() -> list[str]:
    """Names of the policies."""
    return [record["policy"] for record in records()]


def entries(subject: str, project: Path) -> list[Entry]:
    """What a policy holds, and its limits in each environment of a project."""
    name = subject.strip()
    return [_entry(record, project) for record in records() if record["policy"] == name]


def _entry(record: dict[str, Any], project: Path) -> Entry:
    rows: dict[str, str | None] = {"pack": record["pack"]}
    for key in record["keys"]:
        rows[f"key {key['key']}"] = f"{key['about']}; default {key['default']}"
    stem = record["pack"].replace("-", "_")
    for file in sorted((project / "policies").glob(f"{stem}.*.json")):
        environment = file.name.split(".")[-2]
        configured = json.loads(file.read_text(encoding="utf-8")).get(record["policy"])
        rows[f"in {environment}"] = None if configured is None else _configured_text(configured)
    return Entry(
        kind="policy",
        name=record["policy"],
        meaning=record["holds"],
        facts=facts(rows),
        why=(),
        source=f"policies/{stem}, docs/policies.md",
    )


def _configured_text(configured: dict[str, Any]) -> str | None:
    limits = configured.get("limits")
    return json.dumps(configured) if limits is None else list_text(json.dumps(limit) for limit in limits.values())
