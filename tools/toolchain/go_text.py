"""Text of a Go file without lines that a build leaves out. Leaves out which they are: see `pulumi_source`."""

from collections.abc import Iterable


class MissingLinesError(Exception):
    """The lines to remove that a file doesn't have exactly once."""

    def __init__(self, beginnings: Iterable[str]) -> None:
        self.beginnings = tuple(beginnings)
        super().__init__(", ".join(self.beginnings))


def remove_lines(text: str, beginnings: Iterable[str]) -> str:
    """The text of a Go file without the lines that begin so, each with the block that it opens.

    Raises:
        MissingLinesError: No line, or more than one, begins so; it has all such beginnings.
    """
    lines = text.splitlines(keepends=True)
    removed: set[int] = set()
    missing = []
    for beginning in beginnings:
        match [number for number, line in enumerate(lines) if line.lstrip().startswith(beginning)]:
            case [number]:
                removed.update(range(number, _last_line(lines, number) + 1))
            case _:
                missing.append(beginning)
    if missing:
        raise MissingLinesError(missing)
    return "".join(line for number, line in enumerate(lines) if number not in removed)


def _last_line(lines: list[str], first: int) -> int:
    # As gofmt writes it: a block ends at the next brace that is indented as its first line.
    if not lines[first].rstrip().endswith("{"):
        return first
    indentation = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    return next(number for number in range(first + 1, len(lines)) if lines[number].rstrip() == f"{indentation}}}")
