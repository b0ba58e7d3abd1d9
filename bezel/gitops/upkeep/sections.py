"""Text of the sticky issue: one section for each report, each replaced by its own command only. Pure.

Leaves out the forge. A section is found by comments around it; a report's text cannot imitate them.
"""

import re
from dataclasses import dataclass

from bezel_base.text.markdown import escape_comments

MARKER = "<!-- bezel upkeep -->"
TITLE = "Upkeep of the deployed stacks"
_END = "<!-- bezel section end -->"
_SECTION = re.compile(
    rf"<!-- bezel section (?P<state>well|open) (?P<name>[^\n]*) -->\n(?P<text>.*?)\n{_END}", re.DOTALL
)
_LONGEST = 15_000
"""Characters of a section: a forge takes 65,536 in an issue."""
_CUT = "\n\n(cut: the run's summary has the rest)"


@dataclass(frozen=True)
class Section:
    """A report's part of the issue; `is_well` if it reports nothing to do."""

    name: str
    text: str
    is_well: bool


def sections_of(body: str) -> list[Section]:
    """The sections of an issue's text."""
    return [Section(match["name"], match["text"], match["state"] == "well") for match in _SECTION.finditer(body)]


def with_section(body: str, section: Section) -> str:
    """An issue's text with one section in place of its older one, or added."""
    mine = Section(_one_line(section.name), _cut(escape_comments(section.text.strip())), section.is_well)
    others = [other for other in sections_of(body) if other.name != mine.name]
    parts = [MARKER, "Written by the pipeline; edits are overwritten. It is closed once nothing is left to do."]
    for part in sorted([*others, mine], key=lambda part: part.name):
        state = "well" if part.is_well else "open"
        parts.append(f"<!-- bezel section {state} {part.name} -->\n{part.text}\n{_END}")
    return "\n\n".join(parts) + "\n"


def is_well(body: str) -> bool:
    """Whether no section of an issue's text reports anything to do."""
    return all(section.is_well for section in sections_of(body))


def _one_line(name: str) -> str:
    return " ".join(name.replace("-->", "").split())


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    kept = text[: _LONGEST - len(_CUT)].rpartition("\n")[0]
    # An opened block would swallow the sections behind it.
    closing = "\n\n</details>" * (kept.count("<details>") - kept.count("</details>"))
    return kept + closing + _CUT
