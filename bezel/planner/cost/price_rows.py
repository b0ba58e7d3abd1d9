"""Price rows of the stack file: their form, and whether a value can be the price of its unit.

Owns the units. Leaves the quantities to bezel.planner.cost.service_cost and the catalogue's own rows to bezel.catalog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel.catalog import accelerators, closest, prices
from bezel.catalog.checks.prices import BOUNDS
from bezel.errors import NOT_SET, Problem, shown
from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.problems import one_of, setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bezel.catalog import Unpriced
    from bezel.planner.base.settings import PriceRow

HOUR = 3600
_LEAST_SHARE = Decimal("0.2")
"""Share of the catalogue's lowest price: no discount of Google's goes below it, spot and 3-year commitment included."""
_DATED = re.compile(r"(20\d\d)-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?")


@dataclass(frozen=True, slots=True)
class Unit:
    """Unit of a price row: `words` as in "USD per second of one GPU", and the bounds of any real price, in USD."""

    words: str
    least: Decimal
    most: Decimal
    by_time: bool = True

    def told(self, usd: Decimal) -> str:
        """The price as text, per hour where the unit is a time."""
        return f"{float(usd * HOUR if self.by_time else usd):,.6g} USD per {'hour' if self.by_time else self.words}"


def priced_items() -> dict[str, Unit]:
    """All items whose price a plan looks up, with the unit of each price."""
    kinds = [f"gpu {name} {kept} redundancy" for name in accelerators() for kept in ("no zonal", "zonal")]
    gpus = dict.fromkeys(kinds, _unit("GPU", "gpu-second"))
    leased = {
        each.price_item: _unit("chip", "chip-hour") if each.gpu is None else _unit("machine", "machine-hour")
        for each in leased_hardware().values()
    }
    requests = Unit("million requests", *_bounds("million requests"), by_time=False)
    one = {"vcpu": _unit("vCPU", "vcpu-second"), "memory": _unit("GiB", "gib-second")}
    return gpus | one | {"requests": requests} | leased


def _unit(what: str, unit: str) -> Unit:
    by = HOUR if unit.endswith("-hour") else 1
    least, most = _bounds(unit)
    return Unit(f"second of one {what}", least / by, most / by)


def _bounds(unit: str) -> tuple[Decimal, Decimal]:
    least, most = BOUNDS[unit]
    return Decimal(least), Decimal(most)


def rows_to_add(missing: Iterable[Unpriced]) -> str:
    """The repair for price rows missing from the catalogue: the rows, ready to be filled in."""
    units = priced_items()
    rows = {(row.item, row.region): units.get(row.item) for row in missing}
    lines = [
        f"- {{item: {item}, region: {region}, usd_per_unit: {_placeholder(unit)}, as_of: YYYY-MM, source: ''}}"
        for (item, region), unit in rows.items()
    ]
    per = " or ".join(dict.fromkeys(_told(unit) for unit in rows.values() if unit))
    return f"write what it costs into the stack file; usd_per_unit is {per}:\n" + "\n".join(
        [f"     {setting('cost')}:", "       prices:", *(f"         {line}" for line in lines)]
    )


def _told(unit: Unit) -> str:
    return f"USD per {unit.words}" + (f" (the price of an hour divided by {HOUR})" if unit.by_time else "")


def _placeholder(unit: Unit | None) -> str:
    return "USD_PER_" + (unit.words if unit else "unit").replace(" ", "_").upper()


def check_own_prices(rows: Sequence[PriceRow], *, today: date | None) -> list[Problem]:
    """Check that a plan uses each row, that its value is plausible for its unit, and that its source is given.

    Args:
        rows: of the stack file.
        today: latest possible date of a price; None without a clock.
    """
    units = priced_items() if rows else {}
    problems = []
    for number, row in enumerate(rows):
        key = setting(f"cost.prices.{number}")
        unit = units.get(row.item)
        if unit is None:
            near = closest(row.item, units)
            why = "no plan looks for such an item: the row would stay unused."
            problems.append(Problem(f"{key}.item", shown(row.item), why, one_of(units, near)))
        else:
            problems += _implausible(f"{key}.usd_per_unit", row, unit)
        problems += _undated(f"{key}.as_of", row.as_of, today)
        if not re.search(r"\w", row.source):
            why = "nobody can check the price, and limits hold by it."
            repair = "say where it was read, e.g. `source: our invoice of 2026-11`."
            problems.append(Problem(f"{key}.source", shown(row.source) if row.source else NOT_SET, why, repair))
    return problems


def mispriced(problems: Iterable[Problem]) -> bool:
    """Whether a price of the user's own is refused: amounts computed with it are meaningless."""
    return any(problem.key.endswith(".usd_per_unit") for problem in problems)


def _implausible(key: str, row: PriceRow, unit: Unit) -> list[Problem]:
    """Refuse an implausible price: a wrong digit, or the price of another unit."""
    usd = Decimal(str(row.usd_per_unit))
    per = f"USD per {unit.words}"
    listed = [_per_second(each.unit, each.usd_per_unit) for each in prices().values() if each.item == row.item]
    if unit.least <= usd <= unit.most and (not listed or usd >= min(listed) * _LEAST_SHARE):
        return []
    repair = f"write {per}, between {max(unit.least, _floor(listed)):.3g} and {unit.most:.3g}"
    if unit.by_time and unit.least <= usd / HOUR <= unit.most:
        repair = f"if it is the price of an hour, write `usd_per_unit: {usd / HOUR:.4g}`; otherwise {repair}"
    too = "more than anybody asks, so no cost would be true" if usd > unit.most else "less, so no limit would hold"
    return [
        Problem(
            key,
            shown(row.usd_per_unit),
            f"it counts as {per}, which is {unit.told(usd)}: far {too}.",
            f"{repair}.",
        )
    ]


def _floor(listed: Sequence[Decimal]) -> Decimal:
    return min(listed) * _LEAST_SHARE if listed else Decimal(0)


def _per_second(unit: str, usd: Decimal) -> Decimal:
    return usd / HOUR if unit.endswith("-hour") else usd


def _undated(key: str, as_of: str, today: date | None) -> list[Problem]:
    found = _DATED.fullmatch(as_of)
    # One day more: in the author's time zone it may already be the next day.
    latest = today + timedelta(days=1) if today else None
    late = found and latest and (int(found[1]), int(found[2]), int(found[3] or 1)) > latest.timetuple()[:3]
    if found and not late:
        return []
    why = f"today is {today}: no price was read later." if late else "nobody can tell how old the price is."
    example = f"{today:%Y-%m}" if today else "2026-11"
    return [Problem(key, shown(as_of) if as_of else NOT_SET, why, f"write when it was read, e.g. {example}.")]
