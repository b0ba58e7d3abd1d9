"""Check for finding 7: more load than the service takes at once, so that the queue in front of it was measured.

    users > requests that one instance takes x instances
    a grid: four times the users give no more requests per second, and requests are lost to waiting

Two systems that admit different numbers of requests are not comparable. Needs concurrency (or max-num-seqs) and
instances, if need be from another item of the same audit; or a grid with success rates.
"""

from collections.abc import Iterator, Sequence

from bezel_bench.audit.figure import StatedFigure
from bezel_bench.audit.findings import QUEUES, AuditFinding, Rule
from bezel_bench.audit.grids import series
from bezel_bench.audit.table import AuditTable, Claim, ResultSource, Row, System
from bezel_bench.audit.words import count, group_by

_TIMES = 4
_NO_MORE = 1.10
_WHOLE, _LOST = 0.98, 0.90  # success of a load that is admitted, and of one that loses more than a few errors
_RULE = Rule(
    QUEUES,
    "load at most concurrency x instances, or mark the cell as queueing; more instances or concurrency take more",
)


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield findings for rows above a stated capacity, grids that show a queue, ratios between unequal capacities."""
    for claim in table.claims:
        yield from _over(claim.item, [claim.row], table.claims, ("cloud-run", None))
        yield from _unequal(claim)
    for source in table.sources:
        over = list(_over(source.item, source.rows, table.claims, ("cloud-run",)))
        yield from over
        if not over:
            for cells in series(source.rows):
                yield from _waiting(source, cells)


def _over(
    item: str, rows: Sequence[Row], claims: Sequence[Claim], platforms: tuple[str | None, ...]
) -> Iterator[AuditFinding]:
    """Report rows above the capacity; a value that they do not state may come from a claim on the same machine."""
    if not rows:
        return
    system, whose = rows[0].system, ""
    if system.capacity is None:
        system, whose = next(_stated_systems(item, system, claims, platforms), (system, ""))
    above = [row for row in rows if _above(row, row.system.capacity or system.capacity)]
    if not above:
        return
    worst = max(above, key=lambda row: row.users or 0)
    system = worst.system if worst.system.capacity else system
    capacity, instances = system.capacity or 0, system.instances or 1
    name = "requests" if system.concurrency else "sequences (max-num-seqs)"
    stated = f" (stated by {whose})" if whose else ""
    text = (
        f"{worst.users} users where {count(instances, 'instance')} x {system.concurrency or system.max_num_seqs} "
        f"{name} = {capacity} are taken at once{stated}: {(worst.users or 0) - capacity} always wait"
    )
    yield _RULE.finding("suspect", (item, whose) if whose else item, text, above)


def _stated_systems(
    item: str, system: System, claims: Sequence[Claim], platforms: tuple[str | None, ...]
) -> Iterator[tuple[System, str]]:
    """Return what claims state of the same service (machine, platform), or of the same engine (machine, model)."""
    for claim in claims:
        for side in claim.sides:
            same = side.system.machine == system.machine and system.platform in platforms
            if system.machine and same and side.system.concurrency and side.system.instances:
                yield side.system, claim.item
        other = claim.row.system
        same = (other.machine, other.shape) == (system.machine, system.shape)
        if system.machine and system.shape and same and other.capacity and claim.item != item:
            yield other, claim.item


def _above(row: Row, capacity: int | None) -> bool:
    return bool(capacity and row.users and row.users > capacity and row.good)


def _unequal(claim: Claim) -> Iterator[AuditFinding]:
    capacities = [row.system.capacity for row in claim.sides]
    if len(capacities) != 2 or not capacities[0] or not capacities[1]:
        return
    first, second = capacities[0], capacities[1]
    if max(first, second) < 2 * min(first, second):
        return
    stated = [
        f"{row.system.label}: {row.system.instances or 1} x {row.system.concurrency or row.system.max_num_seqs} = "
        f"{row.system.capacity}"
        for row in claim.sides
    ]
    text = (
        f"requests taken at once: {'; '.join(stated)}: {max(first, second) / min(first, second):.0f} times as many on "
        "one side, so the ratio is one of queues"
    )
    repair = "compare at the same number of instances and a load below what each side takes"
    yield _RULE.finding("not comparable", claim.item, text, repair=repair)


def _waiting(source: ResultSource, cells: Sequence[tuple[Row, StatedFigure]]) -> Iterator[AuditFinding]:
    """Report cells in which more users get no more responses, and lose some."""
    queued: list[tuple[Row, Row, StatedFigure, StatedFigure]] = []
    complete = [cell for cell in cells if cell[0].success is not None and cell[0].success.value >= _WHOLE]
    whole = group_by(complete, lambda cell: cell[0].context)
    for row, rate in cells:
        if not row.good or row.success is None or not 0 < row.success.value < _LOST or not rate.value:
            continue
        if any((other.users or 0) > (row.users or 0) for other, _ in whole.get(row.context, ())):
            continue  # a heavier load lost nothing: a queue is not the cause
        for other, there in whole.get(row.context, ()):
            fewer = other.users is not None and row.users is not None and other.users * _TIMES <= row.users
            if fewer and rate.value <= _NO_MORE * there.value:
                queued.append((other, row, there, rate))
                break
    if not queued:
        return
    few, many, before, rate = max(queued, key=lambda pair: (pair[1].users or 0) / (pair[0].users or 1))
    lost = 1 - (many.success.value if many.success else 0)
    text = (
        f"{many.cell} give {rate.value:g} where {few.users} give {before.value:g}, and {lost:.0%} are lost to waiting: "
        f"in {count(len(queued), 'cell')} the added users only waited in a queue"
    )
    yield _RULE.finding("suspect", source.item, text, (row for _, row, *_ in queued))
