"""Texts of clouds and states in Markdown: shown as they are, and never as markup."""

import re

from bezel.errors import shown

_TICKS = re.compile(r"`+")


def code(value: object) -> str:
    """A value as inline code: on one line, of bounded length, whatever characters it has."""
    text = " ".join(shown(value).split()) or " "
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if text[0] == "`" or text[-1] == "`" else ""
    # A table's cell ends at a bar, in code too.
    return f"{fence}{space}{text}{space}{fence}".replace("|", "\\|")
