"""Base of result models, and the texts that results share. Leaves out what an operation's fields mean."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, PlainSerializer

from bezel_base.terminal.blocks import Block, Line, NamedValues
from bezel_base.terminal.layout import lay_out


def _usd_text(amount: Decimal) -> str:
    from bezel.planner.base.money import round_usd

    return round_usd(amount, 4)


_PADDING = re.compile(r"(?<=\S) {3,}(?=\S)")  # the indentation of a line is none

Usd = Annotated[Decimal, PlainSerializer(_usd_text, return_type=str, when_used="json")]
"""Amount of money in USD; a decimal string in JSON. An unknown amount is null."""


class Result(BaseModel):
    """Result of an operation. `None` means unknown or not applicable, never 0."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    is_padded: ClassVar[bool] = True
    """Whether blanks in its text align columns; False where they belong to what is shown, e.g. a line of a log."""
    may_be_shortened: ClassVar[bool] = True
    """Whether a reader who has little room may be shown a part of its text."""
    head_share: ClassVar[float] = 0.5
    """Share of a shortened text that is its begin; the rest is its end."""

    def page(self) -> Iterable[Block]:
        """The result as blocks, which the command line fits to the terminal. A result defines this, or `text`."""
        return (Line(line) for line in self.text().splitlines())

    def text(self) -> str:
        """The result as plain text, ending with a newline: the same on every terminal, each row one line."""
        return "".join(f"{line}\n" for line in lay_out(self.page()))

    def compact_text(self) -> str:
        """The text without the blanks that align its columns, for a reader who pays for them."""
        return _PADDING.sub("  ", self.text()) if self.is_padded else self.text()

    @property
    def exit_code(self) -> int:
        """Exit code of the command that prints it."""
        return 0


def lines(rows: Iterable[tuple[str, str | None]]) -> str:
    """Rows of a name and a value as aligned lines; a row without a value is left out."""
    return "".join(f"{line}\n" for line in lay_out([NamedValues(tuple(rows))]))


def format_count(count: int, thing: str) -> str:
    """A number of things: `1 quota`, `2 quotas`."""
    return f"{count} {thing}" + ("" if count == 1 else "s")


def utc(moment: float | None) -> datetime | None:
    """A moment in unix seconds as a time in UTC, to the second."""
    return None if moment is None else datetime.fromtimestamp(int(moment), UTC)
