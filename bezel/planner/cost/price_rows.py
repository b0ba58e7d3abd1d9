"""Price rows of the stack file: their form, and whether a value can be the price of its unit.

Owns the units. Leaves the quantities to bezel.planner.cost.service_cost and the catalogue's own rows to bezel_catalog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.problems import one_of, setting
from bezel_base.errors import NOT_SET, Problem
from bezel_catalog import accelerators, closest, prices
from bezel_catalog.checks.prices import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bezel.planner.base.settings import PriceRow
    from bezel_catalog import Unpriced

HOUR = 3600
# Share of the catalogue's lowest price: no discount of Google's goes below it, spot and 3-year commitment included.
_MIN_SHARE = Decimal("0.2")
_DATED = re.compile(r"(20\d\d)-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?")


class UnpricedProblem(Problem):
    """A price is unknown: what depends on it is not judged, and everything else of the plan is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """Unit of a price row: `phrase` as in "USD per second of one GPU", and the bounds of any real price, in USD."""

    phrase: str
    min_usd: Decimal
    max_usd: Decimal

    @property
    def by_time(self) -> bool:
        """Whether the price is that of a second."""
        return self.phrase.startswith("second")


def priced_items() -> dict[str, Unit]:
    """All items whose price a plan looks up, with the unit of each price."""
    gpus = [f"gpu {name} {kind} redundancy" for name in accelerators() for kind in ("no zonal", "zonal")]
    chip, machine = _unit("chip-hour", "second of one chip"), _unit("machine-hour", "second of one machine")
    leased = {kind.price_item: chip if kind.gpu is None else machine for kind in leased_hardware().values()}
    return {
        **dict.fromkeys(gpus, _unit("gpu-second", "second of one GPU")),
        "vcpu": _unit("vcpu-second", "second of one vCPU"),
        "memory": _unit("gib-second", "second of one GiB"),
        "requests": _unit("million requests", "million requests"),
        **leased,
    }


def _unit(unit: str, phrase: str) -> Unit:
    low, high = (_per_second(unit, Decimal(bound)) for bound in BOUNDS[unit])
    return Unit(phrase, low, high)


def rows_to_add(missing: Iterable[Unpriced]) -> str:
    """The repair for price rows missing from the catalogue: the rows, ready to be filled in."""
    units = priced_items()
    rows = {(row.item, row.region): units[row.item] for row in missing}
    lines = [
        f"         - {{item: {item}, region: {region}, usd_per_unit: USD_PER_{unit.phrase.replace(' ', '_').upper()}, "
        "as_of: YYYY-MM, source: ''}"
        for (item, region), unit in rows.items()
    ]
    hint = {unit: f" (the price of an hour divided by {HOUR})" if unit.by_time else "" for unit in rows.values()}
    per = " or ".join(f"USD per {unit.phrase}{hint[unit]}" for unit in hint)
    head = f"write the price into the stack file; usd_per_unit is {per}:"
    return "\n".join([head, f"     {setting('cost')}:", "       prices:", *lines])


def check_own_prices(rows: Sequence[PriceRow], *, today: date | None) -> Iterator[Problem]:
    """Check that a plan uses each row, that its value is plausible for its unit, and that its source is given.

    Args:
        rows: of the stack file.
        today: latest possible date of a price; None without a clock.
    """
    units = priced_items() if rows else {}
    for number, row in enumerate(rows):
        key = setting(f"cost.prices.{number}")
        unit = units.get(row.item)
        if unit is None:
            near = closest(row.item, units)
            why = "this item is not billed: the row would have no effect."
            yield Problem(f"{key}.item", row.item, why, one_of(units, near))
        else:
            yield from _implausible(f"{key}.usd_per_unit", row, unit)
        yield from _check_date(f"{key}.as_of", row.as_of, today)
        if not re.search(r"\w", row.source):
            why = "without a source the price cannot be checked, and limits depend on it."
            repair = "write the source of the price, e.g. `source: our invoice of 2026-11`."
            yield Problem(f"{key}.source", row.source or NOT_SET, why, repair)


def has_refused_price(problems: Iterable[Problem]) -> bool:
    """Whether a price of the user's own is refused: amounts computed with it are meaningless."""
    return any(problem.key.endswith(".usd_per_unit") for problem in problems)


def _implausible(key: str, row: PriceRow, unit: Unit) -> Iterator[Problem]:
    """Refuse an implausible price: a wrong digit, or the price of another unit."""
    usd, per = Decimal(str(row.usd_per_unit)), f"USD per {unit.phrase}"
    listed = [_per_second(price.unit, price.usd_per_unit) for price in prices().values() if price.item == row.item]
    lowest = max(unit.min_usd, min(listed, default=Decimal(0)) * _MIN_SHARE)
    if lowest <= usd <= unit.max_usd:
        return
    repair = f"write {per}, between {lowest:.3g} and {unit.max_usd:.3g}"
    if unit.by_time and unit.min_usd <= usd / HOUR <= unit.max_usd:
        repair = f"if it is the price of an hour, write `usd_per_unit: {usd / HOUR:.4g}`; otherwise {repair}"
    read = f"{float(usd * HOUR):,.6g} USD per hour" if unit.by_time else f"{float(usd):,.6g} {per}"
    above = "above any real price, so no cost would be true"
    far = above if usd > unit.max_usd else "below any real price, so no limit would hold"
    yield Problem(key, row.usd_per_unit, f"it counts as {per}, which is {read}: far {far}.", f"{repair}.")


def _per_second(unit: str, usd: Decimal) -> Decimal:
    return usd / HOUR if unit.endswith("-hour") else usd


def _check_date(key: str, as_of: str, today: date | None) -> Iterator[Problem]:
    match = _DATED.fullmatch(as_of)
    # One day more: in the author's time zone it may already be the next day.
    latest = today + timedelta(days=1) if today else None
    late = match and latest and (int(match[1]), int(match[2]), int(match[3] or 1)) > latest.timetuple()[:3]
    if not match or late:
        why = f"it is after today, {today}." if late else "without a date the age of the price is not known."
        example = f"{today:%Y-%m}" if today else "2026-11"
        yield Problem(key, as_of or NOT_SET, why, f"write the date of the price, e.g. {example}.")
