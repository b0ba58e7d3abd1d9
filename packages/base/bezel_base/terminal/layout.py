"""Layout of blocks: lines of text that are no wider than a terminal. Pure.

A line is broken between words. A value continues below itself. The columns of a table that hold sentences are made
narrower; where that is not enough, the last columns move below each row. A piece that is longer than the width, such
as an address, a path or a command between backticks, is a row of its own: it can be copied whole. Without a width each
line, value and row is one line. A text has no control characters on either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_base.terminal.blocks import Block, Grid, Line, Marked, NamedValues, Role, Table, label_role
from bezel_base.terminal.display_width import display_width, pad, pieces, wrap
from bezel_base.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_GAP = 2
_STEP = 2  # indent of what continues a line
_LEAST_NOTE = 24  # columns of a note beside its value
_LEAST_SENTENCE = 24  # columns of a sentence in a table
_MOST_LINES = 3  # about as many lines has the longest sentence of a column
_SHORT_LINES = 2  # of the last cells of a row, as a sentence below it
_NO_VALUES = ("", "-")
_Row = list["_Cell"]


class _Cell:
    """A text of a block without control characters, on one line, and how it is shown."""

    def __init__(self, value: object, style: _Style) -> None:
        self.text = style.clean(value)
        self._role = value.role if isinstance(value, Marked) else None
        self._style = style
        self.width = display_width(self.text)

    def longest(self) -> int:
        return max(map(display_width, pieces(self.text)), default=0)

    def lines(self, width: int) -> list[str]:
        """Its lines in a column, each as wide as the column."""
        lines = [self.text] if self.width <= width else wrap(self.text, width)
        return [self.show(line) + " " * (width - display_width(line)) for line in lines]

    def show(self, line: str) -> str:
        return self._style.show(line, self._role)


class _Style:
    """How texts are cleaned, and whether they are coloured."""

    def __init__(self, edit: Callable[[str], str], *, is_coloured: bool) -> None:
        self._edit = edit
        self._is_coloured = is_coloured

    def clean(self, value: object) -> str:
        text = printable(self._edit(str(value)))
        return " ".join(text.split()) if "\n" in text or "\t" in text else text

    def lines(self, text: str) -> list[str]:
        return printable(self._edit(text)).expandtabs().split("\n")

    def show(self, text: str, role: Role | None) -> str:
        return f"\x1b[{role.value}m{text}\x1b[0m" if self._is_coloured and role and text else text


def lay_out(
    blocks: Iterable[Block],
    width: int | None = None,
    *,
    is_coloured: bool = False,
    edit: Callable[[str], str] = str,
) -> list[str]:
    """The lines of blocks.

    Args:
        blocks: The blocks, in their order.
        width: Columns of a line; None: as many as it takes.
        is_coloured: Whether meanings are shown by colour and bold.
        edit: Changes each text before it is laid out.
    """
    style = _Style(edit, is_coloured=is_coloured)
    return [line.rstrip() for block in blocks for line in _lines_of(block, width, style)]


def _lines_of(block: Block, width: int | None, style: _Style) -> Iterator[str]:
    if isinstance(block, Line):
        return _line(block, width, style)
    if isinstance(block, NamedValues):
        rows = [[_Cell(cell, style) for cell in row] for row in block.rows if row[1] is not None]
        return _fields(rows, block.indent, width)
    if isinstance(block, Grid):
        return _grid(block, width, style)
    return _table(block, width, style)


def _line(line: Line, width: int | None, style: _Style) -> Iterator[str]:
    for text in style.lines(line.text):
        is_long = width is not None and not line.is_verbatim and display_width(text) > width
        indent = len(text) - len(text.lstrip(" "))
        first, *others = _hanging(text, indent, width) if is_long and width is not None else [text]
        label = label_role(first) if line.role is None else None
        if label is not None:
            end, role = label
            start = end - len(first[:end].lstrip(" "))
            yield first[:start] + style.show(first[start:end], role) + first[end:]
        else:
            yield style.show(first, line.role)
        yield from (style.show(each, line.role) for each in others)


def _fields(rows: Sequence[_Row], indent: int, width: int | None) -> Iterator[str]:
    names = max((row[0].width for row in rows), default=0)
    values = max((row[1].width for row in rows if len(row) > 2), default=0)
    start = indent + names + _GAP
    notes = start + values + _GAP
    room = None if width is None else width - notes
    fits = room is None or room >= _LEAST_NOTE
    if fits and all(width is None or len(row) > 2 or start + row[1].width <= width for row in rows):
        for row in rows:
            head = " " * indent + pad(row[0].text, names + _GAP)
            if len(row) == 2:
                yield head + row[1].show(row[1].text)
                continue
            head += row[1].show(row[1].text) + " " * (values + _GAP - row[1].width)
            note = f"({row[2].text})"
            first, *others = [note] if room is None or row[2].width + 2 <= room else wrap(note, room)
            yield head + first
            yield from (" " * notes + line for line in others)
    elif width is not None:
        for row in rows:
            yield from _field(row, indent, min(names, width // 3), width)


def _field(row: _Row, indent: int, names: int, width: int) -> Iterator[str]:
    """A field whose note follows its value; both continue below the value. A long name is a line of its own."""
    name, value = row[0], row[1]
    text = " ".join(filter(None, (value.text, f"({row[2].text})" if len(row) > 2 else "")))
    hanging = indent + names + _GAP
    if name.width > width // 2 - indent:
        yield from _hanging(name.text, indent, width)
        head = ""
    else:
        head = " " * indent + pad(name.text, max(names, name.width) + _GAP)
    for start in (hanging, indent + _STEP):
        lines = wrap(text, width - start, width - display_width(head) if head else None)
        if max(map(display_width, lines)) <= width - start:
            break
    if head:
        yield head + (value.show(lines[0]) if lines[0] == value.text else lines[0])
    yield from (" " * start + line for line in lines[1 if head else 0 :])


def _hanging(text: str, indent: int, width: int) -> Iterator[str]:
    """A text that continues below, indented by two more columns."""
    first, *others = wrap(text, width - indent - _STEP, width - indent)
    yield " " * indent + first
    yield from (" " * (indent + _STEP) + line for line in others)


def _table(table: Table, width: int | None, style: _Style) -> Iterator[str]:
    heads = [_Cell(Marked(head, Role.HEADING), style) for head in table.heads]
    rows = [row if isinstance(row, Line) else [_Cell(cell, style) for cell in row] for row in table.rows]
    columns = list(zip(heads, *(row for row in rows if not isinstance(row, Line)), strict=True))
    natural = [max(cell.width for cell in column) for column in columns]
    if width is None:
        widths = natural
    else:
        floors = [_floor(column, wide) for column, wide in zip(columns, natural, strict=True)]
        widths = _fitting(natural, floors, width - table.indent)
    kept = len(widths)
    if kept > 1 or kept == len(heads):
        yield from _row(heads[:kept], widths, table.indent)
    for row in rows:
        if isinstance(row, Line):
            yield from _line(row, width, style)
            continue
        yield from _row(row[:kept], widths, table.indent)
        if width is not None:
            below = [pair for pair in zip(heads[kept:], row[kept:], strict=True) if pair[1].text not in _NO_VALUES]
            yield from _below(below, table.indent + _STEP, width)


def _grid(grid: Grid, width: int | None, style: _Style) -> Iterator[str]:
    rows = [[_Cell(cell, style) for cell in row] for row in (grid.heads, *grid.rows)]
    widths = [max(cell.width for cell in column) for column in zip(*rows, strict=True)]
    first = 1
    while first < len(widths):
        last, room = first + 1, None if width is None else width - widths[0] - _GAP - widths[first]
        while last < len(widths) and (room is None or widths[last] + _GAP <= room):
            room = None if room is None else room - widths[last] - _GAP
            last += 1
        yield from ("",) if first > 1 else ()
        for row in rows:
            cells = [(row[at], widths[at]) for at in (0, *range(first, last))]
            yield (" " * _GAP).join(" " * (wide - cell.width) + cell.show(cell.text) for cell, wide in cells)
        first = last


def _below(pairs: Sequence[tuple[_Cell, _Cell]], indent: int, width: int) -> Iterator[str]:
    """The last cells of a row, below it: as a sentence where they are short, else as fields."""
    sentence = "; ".join(f"{head.text}: {cell.text}" for head, cell in pairs)
    lines = wrap(sentence, width - indent) if sentence else []
    if len(lines) > _SHORT_LINES or max(map(display_width, lines), default=0) > width - indent:
        names = max(head.width for head, _ in pairs)
        for head, cell in pairs:
            yield from _field([head, cell], indent, min(names, width // 3), width)
    else:
        yield from (" " * indent + line for line in lines)


def _row(cells: Sequence[_Cell], widths: Sequence[int], indent: int) -> Iterator[str]:
    lines = [cell.lines(width) for cell, width in zip(cells, widths, strict=True)]
    for number in range(max(map(len, lines), default=0)):
        parts = [
            column[number] if number < len(column) else " " * width for column, width in zip(lines, widths, strict=True)
        ]
        yield " " * indent + (" " * _GAP).join(parts)


def _floor(column: Sequence[_Cell], natural: int) -> int:
    """The fewest columns in which the texts of a column are still well read."""
    longest = max(cell.longest() for cell in column)
    return max(longest, min(natural, _LEAST_SENTENCE), -(-natural // _MOST_LINES))


def _fitting(natural: Sequence[int], floors: Sequence[int], width: int) -> list[int]:
    """The widths of the first columns that fit beside each other, as many as possible and at least one."""
    for kept in range(len(natural), 0, -1):
        room = width - _GAP * (kept - 1)
        if kept == 1 or sum(floors[:kept]) <= room:
            return _shrink(natural[:kept], floors[:kept], room)
    return []


def _shrink(natural: Sequence[int], floors: Sequence[int], room: int) -> list[int]:
    """The widths of columns in a room that holds their floors: the widest ones are made narrower, to the same width."""
    widths = list(natural)
    while sum(widths) > room:
        wider = [at for at, width in enumerate(widths) if width > floors[at]]
        if not wider:
            break
        widest = max(wider, key=lambda at: widths[at])
        others = [widths[at] for at in wider if widths[at] < widths[widest]]
        target = max(floors[widest], max(others, default=0), widths[widest] - (sum(widths) - room))
        widths[widest] = target if target < widths[widest] else widths[widest] - 1
    return widths
