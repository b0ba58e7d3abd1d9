"""Flags of a gcloud command as gcloud splits them: values, switches, lists and maps with their own delimiters. Pure.

Source: `gcloud topic escaping`, and the reference of `gcloud beta run deploy`, 2026-11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.conversion.inputs.word_tables import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_DELIMITER = re.compile(r"\^([^^]+)\^")
_SHORT = {"-q": "--quiet", "-h": "--help"}


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its name without dashes, and its value; None without one (a switch is "true" or "false")."""

    name: str
    value: str | None

    @property
    def is_on(self) -> bool:
        """Whether a switch is on."""
        return self.value == "true"


def read_flags(tokens: Sequence[str]) -> tuple[list[str], list[Flag]]:
    """The tokens that are no flags, and the flags in their order."""
    plain: list[str] = []
    flags: list[Flag] = []
    switches = words_of("gcloud", "switches")
    place = 0
    while place < len(tokens):
        word = _SHORT.get(tokens[place], tokens[place])
        place += 1
        if not word.startswith("--") or word == "--":
            plain.append(word)
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        negated = name.removeprefix("no-") in switches and name.startswith("no-")
        if name.removeprefix("no-") in switches or name.startswith("clear-"):
            is_on = (value or "true").lower() in ("true", "yes", "1") if equals else True
            flags.append(Flag(name.removeprefix("no-"), "false" if negated or not is_on else "true"))
        elif equals:
            flags.append(Flag(name, value))
        elif place < len(tokens) and not tokens[place].startswith("--"):  # as argparse has it
            flags.append(Flag(name, tokens[place]))
            place += 1
        else:
            flags.append(Flag(name, None))
    return plain, flags


def list_of(text: str) -> list[str]:
    """The items of a list: separated by commas, or by the delimiter between two carets in front of it."""
    if match := _DELIMITER.match(text):
        text, delimiter = text[match.end() :], match[1]
    else:
        delimiter = ","
    return text.split(delimiter) if text else []


def map_of(text: str) -> dict[str, str]:
    """The items of a list of KEY=VALUE; an item without `=` has an empty value."""
    pairs = (item.partition("=") for item in list_of(text))
    return {key.strip(): value for key, _, value in pairs}
