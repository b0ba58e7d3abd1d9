"""Lists in the dialect of the site's generator: what belongs to an item is indented by four blanks for each level.

Forges indent it as far as the item's own text begins, two blanks for `- `, and begin a list, or an item behind a
paragraph, without a blank line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from markdown_it import MarkdownIt

_MARKER = re.compile(r" *(?:[-*+]|\d+[.)]) +")
_LEVEL = 4
MARKDOWN = MarkdownIt("gfm-like", {"html": True, "linkify": False})
"""Markdown as forges read it."""


@dataclass
class _Lines:
    """What a page's lists say of its lines: level and column of the item, and where items begin."""

    levels: list[int]
    columns: list[int]
    separate: set[int] = field(default_factory=set)
    items: set[int] = field(default_factory=set)


def with_wide_lists(text: str) -> str:
    """A page whose lists the generator reads as forges do."""
    lines = text.splitlines()
    read = _read_lists(text, lines)
    written: list[str] = []
    for number, line in enumerate(lines):
        level = read.levels[number]
        if number in read.separate and written and written[-1].strip():
            written.append("")
        if number in read.items:
            written.append(" " * _LEVEL * (level - 1) + line.lstrip())
        elif level and line.strip():
            blanks = min(read.columns[number], len(line) - len(line.lstrip()))
            written.append(" " * _LEVEL * level + line[blanks:])
        else:
            written.append(line)
    return "\n".join(written) + "\n"


def _read_lists(text: str, lines: list[str]) -> _Lines:
    read, level = _Lines([0] * len(lines), [0] * len(lines)), 0
    for token in MARKDOWN.parse(text):
        begin, end = token.map or (0, 0)
        if token.type in {"bullet_list_open", "ordered_list_open"}:
            read.separate.add(begin)
        elif token.type == "list_item_open":
            marker = _MARKER.match(lines[begin])
            level += 1
            for number in range(begin, end):
                read.levels[number], read.columns[number] = level, len(marker[0]) if marker else 0
            read.items.add(begin)
            if any(not line.strip() for line in lines[begin:end]):
                read.separate.add(end)
        elif token.type == "list_item_close":
            level -= 1
    return read
