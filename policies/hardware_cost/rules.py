"""Rules of the pack: what a resource requests against its environment's limits. Pure.

Costs come from the planner's rules over the resource's own inputs. A month is the most expensive one that these allow:
all instances running for 730 hours, and a lease that ends by itself until its end.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

from bezel.errors import NOT_SET, Problem
from bezel.planner.base.money import Priced, Unpriced, total
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from policies.gpu_service import GpuService
from policies.hardware import Foreign, hardware_of
from policies.inputs import InputError, plainly
from policies.leases import MODELS, Lease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bezel.planner.base.money import Amount
    from policies.config import CountLimits, HourLimits, Limits, NameLimits, UsdLimits
    from policies.hardware import Hardware
    from policies.inputs import Inputs

_MISSING_ROW = (
    "choose what the catalogue prices, or add the row to bezel/catalog/data/prices.csv with its source; `unit` says "
    "per what usd_per_unit is: gpu-second, vcpu-second, gib-second, chip-hour or machine-hour."
)
_ENDING = "take a queued resource with runDuration, or an instance with scheduling.maxRunDuration."


def hourly_ceiling(token: str, inputs: Inputs, config: UsdLimits) -> Iterator[Problem]:
    """Limit the cost per hour with all instances running."""
    hardware = _judged(token, inputs, config)
    if hardware is not None:
        environment, limit = config.of(hardware.labels)
        yield from _over(_hourly(hardware), limit, environment, "an hour", hardware)


def monthly_ceiling(token: str, inputs: Inputs, config: UsdLimits) -> Iterator[Problem]:
    """Limit the cost of the most expensive month that the inputs allow."""
    hardware = _judged(token, inputs, config)
    if hardware is not None:
        environment, limit = config.of(hardware.labels)
        yield from _over(_monthly(hardware), limit, environment, "a month", hardware)


def most_instances(token: str, inputs: Inputs, config: CountLimits) -> Iterator[Problem]:
    """Limit the number of instances, or nodes of a TPU, at a time."""
    hardware = _judged(token, inputs, config)
    if hardware is None or isinstance(hardware, Foreign):
        return  # the number of a foreign accelerator is unknown: the cost limits refuse it
    environment, limit = config.of(hardware.labels)
    most = hardware.most_instances
    if most > limit:
        yield Problem(
            hardware.most_key,
            str(most),
            f"{environment} may have at most {limit} at a time.",
            f"lower `bezel:scaling.max_instances` to {limit}." if limit else "take another environment.",
        )


def always_on(token: str, inputs: Inputs, config: CountLimits) -> Iterator[Problem]:
    """Limit the instances of a service that run, and cost, without traffic. A TPU is limited by its run duration."""
    hardware = _judged(token, inputs, config)
    if not isinstance(hardware, GpuService):
        return
    environment, limit = config.of(hardware.labels)
    least = hardware.least_instances
    if least > limit:
        may = f"at most {limit} may run" if limit else "none may run"
        yield Problem(
            hardware.least_key,
            str(least),
            f"in {environment} {may} without traffic: each is paid for day and night.",
            f"lower `bezel:scaling.min_instances` to {limit}.",
        )


def allowed_accelerators(token: str, inputs: Inputs, config: NameLimits) -> Iterator[Problem]:
    """Allow only accelerators on the environment's list."""
    hardware = _judged(token, inputs, config)
    if hardware is None:
        return
    environment, allowed = config.of(hardware.labels)
    if isinstance(hardware, Foreign) or hardware.accelerator not in allowed:
        yield Problem(
            hardware.accelerator_key,
            plainly(hardware.accelerator),
            f"{environment} may have {', '.join(allowed) or 'no accelerator'}"
            + (f", on types that this policy knows; {token} is none." if isinstance(hardware, Foreign) else " only."),
            _exempting(token)
            if isinstance(hardware, Foreign)
            else "choose one of these, or deploy to an environment that may have it.",
        )


def lease_ceiling(token: str, inputs: Inputs, config: UsdLimits) -> Iterator[Problem]:
    """Limit the cost of one lease, from its beginning until it ends by itself."""
    hardware = _judged(token, inputs, config)
    if isinstance(hardware, Lease) and hardware.run_seconds is not None:  # without an end: run_duration refuses it
        environment, limit = config.of(hardware.labels)
        yield from _over(hardware.until_its_end(), limit, environment, "a lease", hardware)


def provisioning_models(token: str, inputs: Inputs, config: NameLimits) -> Iterator[Problem]:
    """Allow only the environment's provisioning models."""
    hardware = _judged(token, inputs, config)
    if not isinstance(hardware, Lease):
        return
    environment, allowed = config.of(hardware.labels)
    model = MODELS.get(hardware.model, hardware.model)
    if model not in allowed:
        yield Problem(
            hardware.model_key,
            plainly(hardware.model or model),
            f"{environment} may lease {', '.join(allowed) or 'nothing'} only, and this is {plainly(model)}.",
            "set `bezel:lease.provisioning` to one of these, or deploy to an environment that may buy so.",
        )


def run_duration(token: str, inputs: Inputs, config: HourLimits) -> Iterator[Problem]:
    """Require that every leased machine ends by itself within the limit."""
    hardware = _judged(token, inputs, config)
    if isinstance(hardware, Foreign) and hardware.may_be_tpu:
        raise inputs.refusal(
            hardware.accelerator,
            f"a resource of type {token} has no maximum run duration that this policy knows.",
            f"{_ENDING} {_exempting(token)}",
            hardware.accelerator_key,
        )
    if not isinstance(hardware, Lease):
        return
    environment, limit = config.of(hardware.labels)
    seconds = hardware.run_seconds
    if seconds is None or seconds > Decimal(str(limit)) * 3600:
        yield Problem(
            hardware.run_key,
            NOT_SET if seconds is None else f"{seconds} s",
            f"a lease of {environment} must end by itself after at most {limit:g} h."
            + (" Nothing would end this one." if seconds is None else ""),
            f"set a maximum run duration of at most {int(limit * 3600)} s; on a type of resource that has none, "
            + _ENDING,
        )


def _judged(token: str, inputs: Inputs, config: Limits) -> Hardware | None:
    """The accelerators of a resource; None where it requests none, or its type is exempt from this policy."""
    hardware = hardware_of(token, inputs)
    return None if isinstance(hardware, Foreign) and token in config.exempt else hardware


def _exempting(token: str) -> str:
    return (
        "take it out, or choose a type and an accelerator that the catalogue prices. Whoever owns the limit can let "
        f'the type pass uncounted: `"exempt": ["{token}"]` beside the `limits` of this policy.'
    )


def stack_hourly(resources: Iterable[tuple[str, Inputs]], config: UsdLimits) -> Iterator[Problem]:
    """Limit the cost of all resources of a stack together, per hour."""
    yield from _sums(resources, config, "an hour", _hourly)


def stack_monthly(resources: Iterable[tuple[str, Inputs]], config: UsdLimits) -> Iterator[Problem]:
    """Limit the cost of all resources of a stack together, in the most expensive month."""
    yield from _sums(resources, config, "a month", _monthly)


def _hourly(hardware: Hardware) -> Amount:
    return hardware.hourly


def _monthly(hardware: Hardware) -> Amount:
    hourly = hardware.hourly
    if isinstance(hourly, Unpriced):
        return hourly
    return Priced(hardware.monthly(hourly.usd, HOURS_PER_MONTH), hourly.derived)


def _over(amount: Amount, limit: float, environment: str, per: str, hardware: Hardware) -> Iterator[Problem]:
    if isinstance(amount, Unpriced):
        yield Problem(
            hardware.accelerator_key,
            plainly(hardware.accelerator),
            f"it has no price, so it cannot be held against the {limit:g} USD {per} of {environment}. "
            f"Missing: {amount.reason}.",
            _exempting(hardware.token) if isinstance(hardware, Foreign) else _MISSING_ROW,
        )
    elif amount.usd > Decimal(str(limit)):
        key, value, repair = hardware.accelerator_key, hardware.accelerator, "let it end earlier, "
        if isinstance(hardware, GpuService):
            fewer = int(Decimal(str(limit)) / amount.usd * hardware.most_instances)
            key, value = hardware.most_key, str(hardware.most_instances)
            repair = f"lower it to {fewer}, " if fewer else ""
        yield Problem(
            key,
            plainly(value),
            f"at most {_usd(amount.usd)} USD {per} with everything running; {environment} may spend {limit:g}.",
            f"{repair}choose a cheaper accelerator, or let whoever owns the limit raise it.",
        )


def _sums(
    resources: Iterable[tuple[str, Inputs]], config: UsdLimits, per: str, amount_of: Callable[[Hardware], Amount]
) -> Iterator[Problem]:
    """Compare each environment's sum with its limit; in a stack of one environment, the stack's sum."""
    amounts: dict[tuple[str, float], list[Amount]] = {}
    seen: set[tuple[str, Amount, int | None]] = set()
    for token, inputs in resources:
        try:
            hardware = _judged(token, inputs, config)
            if isinstance(hardware, Lease) and hardware.name is not None:
                # The request for a lease and the wait for it concern the same machine, which is paid for once.
                lease = (hardware.name, hardware.hourly, hardware.run_seconds)
                if lease in seen:
                    continue
                seen.add(lease)
            if hardware is not None:
                amounts.setdefault(config.of(hardware.labels), []).append(amount_of(hardware))
        except InputError as error:
            yield from error.problems
    for (environment, limit), found in amounts.items():
        together = total(found)
        if isinstance(together, Unpriced):
            yield Problem(
                "stack",
                _with_accelerators(len(found)),
                f"they have no price together. Missing: {together.reason}.",
                "choose what the catalogue prices.",
            )
        elif together.usd > Decimal(str(limit)):
            yield Problem(
                "stack",
                _with_accelerators(len(found)),
                f"at most {_usd(together.usd)} USD {per} with everything running; a stack of {environment} may spend "
                f"{limit:g}.",
                "run fewer of them, or let whoever owns the limit raise it.",
            )


def _with_accelerators(number: int) -> str:
    return "1 resource with accelerators" if number == 1 else f"{number} resources with accelerators"


def _usd(amount: Decimal) -> str:
    """The amount as text, rounded up, so that it is above the limit wherever the amount is."""
    return str(amount.quantize(Decimal("0.0001"), ROUND_CEILING))
