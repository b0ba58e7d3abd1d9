"""The price line of a change: USD per hour at the maximum, per month at most, and idle, before -> after.

Owns its wording, and the reading of prices from a pipeline's JSON documents. An unknown amount stays unknown, and the
line names what is missing. Leaves the amounts to `bezel.resource_cost`.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from bezel.planner.base.money import UNKNOWN, Amount, Priced, Unpriced, text
from bezel.resource_cost.stack_cost import StackCost

ARROW = "->"
_CENTS = 2
_DIGITS_OF_DATA = 3
_NOT_DETERMINED = StackCost(*(Unpriced("the price was not determined"),) * 3, missing=("the price was not determined",))


def price_line(before: StackCost | None, after: StackCost | None) -> str:
    """The whole line, e.g. `0.00 -> 1.05 USD/h (+1.05), 0.00 -> 764.02 USD/month (+764.02), idle 0.00 USD/h`.

    Args:
        before: of the state's resources; None where it was not determined.
        after: of the planned resources; None where it was not determined.
    """
    line = ", ".join(price_parts(before, after)) + _data(after or before) + beside_note(after or before)
    return line + _unknown(missing_of(before, after)) + _by_region(region_parts(before, after))


def price_parts(before: StackCost | None, after: StackCost | None) -> tuple[str, str, str]:
    """The parts of the line: per hour, per month, idle; arguments as of `price_line`."""
    old, new = before or _NOT_DETERMINED, after or _NOT_DETERMINED
    return (
        _change(old.hourly, new.hourly, "USD/h"),
        _change(old.monthly, new.monthly, "USD/month"),
        f"idle {_change(old.idle_hourly, new.idle_hourly, 'USD/h')}",
    )


def region_parts(before: StackCost | None, after: StackCost | None) -> tuple[str, ...]:
    """The price per hour at the maximum in each region, of a program that has several before or after the change."""
    old, new = (before or _NOT_DETERMINED).regions, (after or _NOT_DETERMINED).regions
    if max(len(old), len(new)) < 2:
        return ()
    regions = dict.fromkeys((*new, *old))
    return tuple(f"{each} {_change(_of_region(before, each), _of_region(after, each), 'USD/h')}" for each in regions)


def _of_region(cost: StackCost | None, region: str) -> Amount:
    return _NOT_DETERMINED.hourly if cost is None else cost.regions.get(region, Priced(Decimal(0)))


def price_now(cost: StackCost) -> str:
    """The line of a program whose state is not known: its price after the change alone."""
    hourly, monthly, idle = (_amount(amount) for amount in (cost.hourly, cost.monthly, cost.idle_hourly))
    regions = [f"{region} {_amount(amount)} USD/h" for region, amount in cost.regions.items()]
    line = f"{hourly} USD/h, {monthly} USD/month at most, idle {idle} USD/h{_data(cost)}{beside_note(cost)}"
    return line + _unknown(cost.missing) + _by_region(regions if len(regions) > 1 else ())


def _unknown(missing: Sequence[str]) -> str:
    return f"; unknown: {'; '.join(missing)}" if missing else ""


def _by_region(parts: Sequence[str]) -> str:
    return f"; by region: {', '.join(parts)}" if parts else ""


def _data(cost: StackCost | None) -> str:
    """The price of data that the sums leave out, as how much there will be is unknown."""
    if cost is None or cost.gib is None:
        return ""
    return f"; data through the load balancer: unknown, {text(cost.gib, _DIGITS_OF_DATA)} USD a GiB in and out each"


def beside_note(cost: StackCost | None) -> str:
    """What the sums leave out: figures that collectors write, and services that cost while they serve requests."""
    if cost is None:
        return ""
    samples = "" if cost.samples is None else f"; vLLM's figures over time: at most {_amount(cost.samples)} USD/month"
    if not cost.left_out:
        return samples
    services = "a Cloud Run service" if cost.left_out == 1 else f"{cost.left_out} Cloud Run services"
    return f"{samples}; not included: {services} without a GPU"


def missing_of(before: StackCost | None, after: StackCost | None) -> tuple[str, ...]:
    """What is unknown in the line, each once; what the change would bring comes first."""
    return tuple(dict.fromkeys([*(after or _NOT_DETERMINED).missing, *(before or _NOT_DETERMINED).missing]))


def unpriced_problem(missing: str) -> str:
    """The problem of a preview for a price that is unknown, of which a comment repeats the cause beside the price only.

    Args:
        missing: what is unknown, one of `StackCost.missing`.
    """
    return f"the price is unknown, so nothing passes: {missing}"


def cost_of_json(document: object) -> StackCost | None:
    """The cost in a document of the pipeline; None where it holds none. What is not an amount is unknown."""
    if not isinstance(document, Mapping):
        return None
    listed = document.get("missing")
    missing = tuple(str(item) for item in listed) if isinstance(listed, list) else ()
    hourly, monthly, idle = (_read(document.get(f"{name}_usd")) for name in ("hourly", "monthly", "idle_hourly"))
    unknown = any(isinstance(amount, Unpriced) for amount in (hourly, monthly, idle))
    gib = _read(document["gib_usd"]) if "gib_usd" in document else None
    by_region = document.get("regions_hourly_usd")
    pairs = by_region.items() if isinstance(by_region, Mapping) else ()
    reasons = missing or (("a price without a reason",) if unknown else ())
    regions = {str(region): _read(usd) for region, usd in pairs}
    number = document.get("services_left_out")
    left_out = number if isinstance(number, int) and number > 0 else 0
    samples = _read(document["samples_monthly_usd"]) if "samples_monthly_usd" in document else None
    return StackCost(hourly, monthly, idle, reasons, gib=gib, regions=regions, left_out=left_out, samples=samples)


def _change(old: Amount, new: Amount, unit: str) -> str:
    before, after = _amount(old), _amount(new)
    if before == after:
        return f"{after} {unit}" + (" (unchanged)" if after != UNKNOWN else "")
    if isinstance(old, Unpriced) or isinstance(new, Unpriced):
        return f"{before} {ARROW} {after} {unit}"
    # The difference of what is shown, so that the line adds up.
    return f"{before} {ARROW} {after} {unit} ({Decimal(after) - Decimal(before):+})"


def _amount(amount: Amount) -> str:
    return text(amount, _CENTS)


def _read(value: object) -> Amount:
    try:
        usd = Decimal(value) if isinstance(value, str) else None
    except InvalidOperation:
        usd = None
    plausible = usd is not None and usd.is_finite() and 0 <= usd < Decimal(10) ** 12
    return Priced(usd) if usd is not None and plausible else Unpriced("not an amount")
