"""Columns that a text takes on a terminal, and its parts that are never broken. Pure."""

from __future__ import annotations

import re
import unicodedata

_WIDE = ("W", "F")
_WITHOUT_WIDTH = ("Mn", "Me", "Cf")
# A word, or a command between backticks with what touches it.
_PIECE = re.compile(r"(?:`[^`\n]+`|\S)+")


def display_width(text: str) -> int:
    """Columns of a text without control characters: two for an East Asian wide character, none for a combining one."""
    return len(text) if text.isascii() else sum(map(_width, text))


def pad(text: str, width: int) -> str:
    """A text filled up with spaces to a number of columns."""
    return text + " " * (width - display_width(text))


def cut(text: str, width: int) -> str:
    """As much of a text as a number of columns holds, with an ellipsis where it is more."""
    if display_width(text) <= width:
        return text
    while display_width(text) >= width:
        text = text[:-1]
    return f"{text}…"


def pieces(text: str) -> list[str]:
    """The parts of a text between which a line may end: words, and commands between backticks as a whole."""
    return _PIECE.findall(text)


def wrap(text: str, width: int, first: int | None = None) -> list[str]:
    """A text as lines of a number of columns; a piece that is longer is a line of its own.

    Args:
        text: The text; its spaces in front and within are not kept.
        width: Columns of a line.
        first: Columns of the first line, where they differ; below 1, and where its first piece has no room there, the
            first line is empty.
    """
    lines, room = [""], width if first is None else first
    for piece in pieces(text):
        joined = f"{lines[-1]} {piece}" if lines[-1] else piece
        if display_width(joined) <= room or (not lines[-1] and room == width):
            lines[-1] = joined
        else:
            lines.append(piece)
            room = width
    return lines


def _width(letter: str) -> int:
    if unicodedata.category(letter) in _WITHOUT_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1
