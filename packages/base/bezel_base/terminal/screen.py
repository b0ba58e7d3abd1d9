"""Screen that a stream leads to: how wide it is, and whether it shows colours.

A terminal is as wide as it says. A pipe and a file have the 80 columns of `--help`, and `COLUMNS` sets another width of
either. Colours are for terminals: `NO_COLOR` and `TERM=dumb` turn them off, `FORCE_COLOR` and `CLICOLOR_FORCE` on for
a pipe too; `NO_COLOR` has the last word. No variable changes what JSON, an answer to an agent or a document holds.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from bezel_base.terminal.turns import settle
from bezel_base.text.printable import encodable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bezel_base.terminal.blocks import Block

COLUMNS = 80
_EXAMPLE = " " * 4
_LEAST = 40
"""Columns below which nothing is laid out: a terminal that narrow breaks the lines itself."""


@dataclass(frozen=True)
class Screen:
    """Where a text is shown.

    Attributes:
        width: Columns of a line.
        is_coloured: Whether it shows colours.
    """

    width: int
    is_coloured: bool

    def lines(self, blocks: Iterable[Block], edit: Callable[[str], str] = str) -> list[str]:
        """The lines of blocks on it, each text changed by `edit` before."""
        from bezel_base.terminal.layout import lay_out  # late: a line of progress needs none

        return lay_out(blocks, self.width, is_coloured=self.is_coloured, edit=edit)


def screen_of(stream: TextIO, environ: Mapping[str, str] | None = None) -> Screen:
    """The screen of a stream, by default with the variables of this process."""
    variables = os.environ if environ is None else environ
    return Screen(max(_LEAST, _columns(stream, variables)), _shows_colours(stream, variables))


def is_redrawn(stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Whether a line of a stream can be written anew: it leads to a terminal that knows how."""
    variables = os.environ if environ is None else environ
    return variables.get("TERM") != "dumb" and stream.isatty()


def show(blocks: Iterable[Block], stream: TextIO | None = None, edit: Callable[[str], str] = str) -> None:
    """Write blocks at once, by default to standard output."""
    out = sys.stdout if stream is None else stream
    settle()
    out.write("".join(f"{line}\n" for line in screen_of(out).lines(blocks, edit)))
    out.flush()


def show_text(text: str, stream: TextIO | None = None) -> None:
    """Write a text for people, by default to standard output.

    What is indented by more than a repair is an example to be copied, which is never broken.
    """
    from bezel_base.terminal.blocks import Line

    show((Line(line, is_verbatim=line.startswith(_EXAMPLE)) for line in text.split("\n")), stream)


def show_message(text: str, stream: TextIO) -> None:
    """Write an error or a note: fitted to a terminal, elsewhere a line for each sentence, as logs are read."""
    if stream.isatty():
        show_text(text, stream)
        return
    settle()
    stream.write(f"{encodable(text)}\n")
    stream.flush()


def _columns(stream: TextIO, environ: Mapping[str, str]) -> int:
    columns = environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or COLUMNS
    except (OSError, ValueError, AttributeError):
        return COLUMNS


def _shows_colours(stream: TextIO, environ: Mapping[str, str]) -> bool:
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_redrawn(stream, environ)
