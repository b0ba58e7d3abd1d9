"""Placement of a chart's labels: beside their point, clear of other labels, markers and, where possible, lines."""

from collections.abc import Sequence
from dataclasses import dataclass, field

_CHARACTER, _UP, _DOWN = 6.9, 11.0, 4.0
_MARGIN, _KEY = 4.0, 42.0  # of a legend: its left end, and the room of a name's sign
Box = tuple[float, float, float, float]
Place = tuple[float, float]


def text_width(content: str) -> float:
    """Return the approximate width of a text of 12 pixels; wider than most fonts make it."""
    return len(content) * _CHARACTER


def legend(names: Sequence[str], width: float) -> list[tuple[float, int]]:
    """Return the left end and the row of each name of a legend, in as many rows as they need."""
    places: list[tuple[float, int]] = []
    left, row = _MARGIN, 0
    for name in names:
        needed = _KEY + text_width(name)
        if left > _MARGIN and left + needed > width:
            left, row = _MARGIN, row + 1
        places.append((left, row))
        left += needed
    return places


@dataclass
class Labels:
    """The labels of one chart, within its frame (all in pixels)."""

    left: float
    right: float
    top: float
    bottom: float
    _taken: list[Box] = field(default_factory=list)
    _lines: list[tuple[Place, Place]] = field(default_factory=list)

    def keep_clear(self, x: float, y: float) -> None:
        """Keep labels off a marker."""
        self._taken.append((x - 5, y - 5, x + 5, y + 5))

    def keep_off(self, lines: list[tuple[Place, Place]]) -> None:
        """Keep labels off these lines where possible."""
        self._lines += lines

    def place(self, x: float, y: float, content: str, *, far: bool) -> Place | None:
        """Return the start of a point's text, or None where there is no room; `far` keeps a ring around it clear."""
        width, gap = text_width(content), 12.0 if far else 8.0
        candidates = [
            (x - width / 2, y - gap - 2),
            (x - width / 2, y + gap + 11),
            (x + gap, y + 4),
            (x - gap - width, y + 4),
            (x + gap, y - gap),
            (x - gap - width, y - gap),
            (x + gap, y + gap + 9),
            (x - gap - width, y + gap + 9),
        ]
        rated = []
        for order, (begin, line) in enumerate(candidates):
            box = (begin - 1, line - _UP, begin + width + 1, line + _DOWN)
            inside = box[0] >= self.left and box[2] <= self.right and box[1] >= self.top and box[3] <= self.bottom
            if inside and not any(_overlap(box, other) for other in self._taken):
                rated.append((sum(_crosses(box, line) for line in self._lines), order, (begin, line), box))
        if not rated:
            return None
        _, _, start, box = min(rated)
        self._taken.append(box)
        return start


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _crosses(box: Box, line: tuple[Place, Place]) -> bool:
    """Whether a line passes through a box, tested at points 6 pixels apart."""
    (x, y), (to_x, to_y) = line
    steps = 1 + int(max(abs(to_x - x), abs(to_y - y)) / 6)
    return any(
        box[0] <= x + (to_x - x) * step / steps <= box[2] and box[1] <= y + (to_y - y) * step / steps <= box[3]
        for step in range(steps + 1)
    )
