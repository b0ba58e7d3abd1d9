"""Known differences from the published provider, each with its evidence, and types of which nothing is recorded."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bezel_pulumi_offline.fidelity.replay import Difference

SECTIONS = ("requests", "calls")
_FILE = Path(__file__).parent / "explained.json"


@dataclass
class Compared:
    """One recorded call or exchange beside ours."""

    section: str  # requests or calls
    resource: str
    what: str
    differences: list[Difference]

    @property
    def place(self) -> str:
        """Where it stands, as text."""
        return f"{self.section} of {self.resource}, {self.what}"


@dataclass
class Explanations:
    """The known differences, the types without a recording, and which of these occurred."""

    differences: list[dict[str, str]]
    not_recorded: list[dict[str, str]]
    met: set[int] = field(default_factory=set)

    @classmethod
    def read(cls) -> "Explanations":
        """Those of this package; an entry of several `resources` is one for each, in both sections."""
        content = json.loads(_FILE.read_text(encoding="utf-8"))
        not_recorded = []
        for entry in content["not_recorded"]:
            common = {key: value for key, value in entry.items() if key != "resources"}
            names = [(section, name) for section in SECTIONS for name in entry.get("resources", ())]
            not_recorded += [{**common, "section": section, "resource": name} for section, name in names] or [entry]
        return cls(content["differences"], not_recorded)

    def explain(self, compared: Compared) -> list[Difference]:
        """The differences for which there is no explanation."""
        left = []
        for difference in compared.differences:
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

    @property
    def types_without_requests(self) -> frozenset[str]:
        """Types of which no request is recorded."""
        return frozenset(entry["resource"] for entry in self.not_recorded if entry["section"] == "requests")

    def unrecorded_types(self, resources: Collection[str], compared: Sequence[Compared]) -> list[str]:
        """Types that were not compared, or that were compared though listed as without a recording."""
        explained = {(entry["section"], entry["resource"]) for entry in self.not_recorded}
        expected = {(section, resource) for section in SECTIONS for resource in resources}
        matches = {(item.section, item.resource) for item in compared}
        return sorted(f"{section} of {resource}" for section, resource in (expected - matches) ^ explained)


def _where(entry: dict[str, str]) -> tuple[str, ...]:
    return tuple(entry[key] for key in ("section", "resource", "what", "path"))
