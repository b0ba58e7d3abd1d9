"""Second try of a load that the client could not send, or that other work of its machine disturbed. Pure.

Either is seen for as long as a disturbance lasts, so one try proves nothing: a limit of the client is believed where a
second, later try meets it again. A load that stays disturbed is not measured, which is said, and the next run of the
command tries it anew. Leaves out when the second try comes (`bezel_bench.sweep.run`, `bezel_bench.sweep.goodput`,
`bezel_bench.sweep.ab`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_base.text.counting import format_count

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from bezel_bench.result.document import Cell
    from bezel_bench.sweep.grid import Place

DISTURBED = ("client_limited", "busy_machine")
TRIES = 2


def is_disturbed(cell: Cell) -> bool:
    """Whether a cell shows its client or its machine, and so nothing about the server."""
    return cell.state in DISTURBED


def to_try_again(cells: Mapping[Place, Cell], tries: Mapping[Place, int]) -> list[Place]:
    """Return the disturbed cells that have had one try, the fewest users first."""
    return sorted(
        (place for place, cell in cells.items() if is_disturbed(cell) and tries.get(place, 0) < TRIES),
        key=lambda place: place[::-1],
    )


def describe_unmeasured(cells: Iterable[Cell], left_out: Collection[Place] = ()) -> str:
    """Return how many cells were not measured because of the client or its machine, and why; "" where none were.

    Args:
        cells: The cells that were tried.
        left_out: Cells that were not tried, as the client could not send a lighter load.
    """
    states = [cell.state for cell in cells]
    parts = []
    if limited := states.count("client_limited"):
        parts.append(f"at {format_count(limited, 'cells')} the client was the limit (more --workers may send them)")
    if left_out:
        parts.append(
            f"{format_count(len(left_out), 'cells')} with still more users {_were(len(left_out))} not requested"
        )
    if busy := states.count("busy_machine"):
        parts.append(f"at {format_count(busy, 'cells')} other work kept the machine busy")
    return ", ".join(parts)


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
