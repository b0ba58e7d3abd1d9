"""Blocks as the text that a screen of any width has."""

from collections.abc import Iterable

from bezel_base.terminal.blocks import Block
from bezel_base.terminal.layout import lay_out


def text_of(blocks: Iterable[Block]) -> str:
    """The text of blocks, each row one line."""
    return "\n".join(lay_out(blocks))
