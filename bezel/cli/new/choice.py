"""Choice of accelerator, region and settings for a model: the cheapest that the planner accepts.

What is chosen is planned as a preview plans it, so a stack file made of it has no problems. Pure. Leaves out the text
of the file (`stack_text`) and questions (`command`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from bezel.conversion.settings.model_settings import unpublished_place
from bezel.planner import PlanError, make_plan
from bezel.planner.assemble.compare import DEFAULT_CONTEXT, compare
from bezel.planner.base.money import Priced
from bezel.planner.base.problems import one_of, setting
from bezel_base.errors import Problem, WrongValueError
from bezel_catalog import accelerators, closest, closest_record, ids_by_hub_id, models, tpus

if TYPE_CHECKING:
    from bezel.planner import AnyPlan

DEFAULT_MODEL = "gemma-4-12b-it-qat-w4a16"
DEV, PROD = "dev", "prod"
ALLOWED = "allowed-accelerators"
_PROJECT = "my-project"  # a plan needs one; nothing that is written names it
_CONTEXTS = (32768, 16384, 8192, 4096)
_SEQUENCES = (8, 4)
# Each saves memory against the one before: a KV cache of half the size, then smaller steps and less left to others.
_SAVINGS: tuple[Mapping[str, object], ...] = (
    {},
    {"kv-cache-dtype": "fp8"},
    {"kv-cache-dtype": "fp8", "gpu-memory-utilization": 0.95, "max-num-batched-tokens": 4096},
)


@dataclass(frozen=True)
class Choice:
    """Settings of a stack, and their plan.

    Attributes:
        configuration: Keys of the stack file without the namespace, in the order of the file.
        plan: Their plan.
        hourly: USD per hour of one instance or machine.
    """

    configuration: Mapping[str, Any]
    plan: "AnyPlan"
    hourly: Priced

    @property
    def accelerator(self) -> str:
        """The accelerator's name in the catalogue."""
        return str(self.configuration["accelerator"])

    @property
    def region(self) -> str:
        """The region of the service; for leases, of gateway and weights."""
        return str(self.configuration["region"])

    @property
    def environment(self) -> str:
        """The environment, which chooses the limits."""
        return str(self.configuration["environment"])

    @property
    def stack(self) -> str:
        """The stack's name: that of its environment."""
        return self.environment

    def price_text(self) -> str:
        """The price of an hour, e.g. `1.0465 USD per hour (derived)`."""
        return f"{self.hourly.usd:.4f} USD per hour{' (derived)' if self.hourly.derived else ''}"


def choose(model: str, accelerator: str, region: str, limits: Mapping[str, Any]) -> Choice:
    """The cheapest choice with what is given.

    Args:
        model: Name of a checkpoint.
        accelerator: Name of an accelerator; "" for the cheapest that fits.
        region: Name of a region; "" for the cheapest with the accelerator.
        limits: Configuration of the policy pack of costs in `dev`; what it refuses becomes a stack of `prod`.

    Raises:
        WrongValueError: A name is unknown, the region has no such accelerator, or the model does not run there; the
            problems of the plan for the cheapest place.
    """
    check_names(model, accelerator, _machines())
    first: PlanError | None = None  # of the cheapest place, which is the one that is meant
    for kind, place in _places(model, accelerator, region):
        outcome = _try(model, kind, place, limits)
        if isinstance(outcome, Choice):
            return outcome
        first = first or outcome
    refusals = [*_as_options(first)] if first else []
    if region and not (first and accelerator):
        refusals = [*_region_problems(model, accelerator, region, limits), *refusals]
    where = f"on {accelerator}" if accelerator else f"in {region}" if region else "on any accelerator of the catalogue"
    raise WrongValueError(*refusals, title=f"{json.dumps(model)[1:-1]} cannot be served {where}")


def check_names(model: str, accelerator: str, machines: Sequence[str]) -> None:
    """Check names that options give; "" is none.

    Args:
        model: Of a checkpoint.
        accelerator: Of the hardware.
        machines: Names that the hardware may have.

    Raises:
        WrongValueError: The catalogue has no such model or accelerator.
    """
    problems = []
    for option, name, names in (("--model", model, list(models())), ("--accelerator", accelerator, machines)):
        if name and name not in names:
            consequence = "the catalogue has no such name, so nothing of it is known."
            near = closest_record(name, names, ids_by_hub_id() if option == "--model" else None)
            others = " A hub's OWNER/NAME, a folder or gs://… is a model too." if option == "--model" else ""
            problems.append(Problem(option, name, consequence, one_of(names, near) + others))
    if problems:
        raise WrongValueError(*problems)


def _machines() -> list[str]:
    return [*accelerators(), *tpus()]


def _places(model: str, accelerator: str, region: str) -> Iterator[tuple[str, str]]:
    """Accelerators with a region each, as given, the cheapest first; those without a known price are left out."""
    offers = []
    record = models()[model]
    for row in compare(record, min(DEFAULT_CONTEXT, record.architecture.context)):
        name, price = row.offer.machine, row.offer.hourly
        if name in _machines() and accelerator in ("", name) and (isinstance(price, Priced) or accelerator):
            usd = price.usd if isinstance(price, Priced) else Decimal(0)
            offers.append((usd, name, _region(name, row.offer.region)))
    for _, name, cheapest in sorted(offers):
        regions = _regions(name)
        if region in ("", *regions):
            yield name, region or cheapest


def _regions(accelerator: str) -> list[str]:
    if accelerator in tpus():
        return sorted({_region(accelerator, zone) for zone in tpus()[accelerator].zones})
    return sorted(accelerators()[accelerator].regions)


def _region(accelerator: str, place: str) -> str:
    """The region of a place: a lease has a zone."""
    return place.rpartition("-")[0] if accelerator in tpus() else place


def regions(accelerator: str) -> list[str]:
    """Regions that have an accelerator, sorted; of all for the name ""."""
    return sorted({region for name in ([accelerator] if accelerator else _machines()) for region in _regions(name)})


def _configurations(
    model: str, accelerator: str, region: str, limits: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Settings to try, those with the longest requests first."""
    allowed = limits.get(ALLOWED, {}).get("limits", {}).get(DEV)
    environment = DEV if allowed is None or accelerator in allowed else PROD
    base: dict[str, object] = {"environment": environment, "model": model, "accelerator": accelerator, "region": region}
    record = models()[model]
    if record.hub_id is None:
        base |= {"weights": unpublished_place(record)}
    if accelerator in tpus():
        zones = [zone for zone in tpus()[accelerator].zones if _region(accelerator, zone) == region]
        base |= {"lease": {"zones": [{"zone": zone} for zone in zones]}}
    for context in dict.fromkeys(min(each, record.architecture.context) for each in _CONTEXTS):
        for sequences in _SEQUENCES:
            for saving in _SAVINGS:
                yield {**base, "vllm": {"max-model-len": context, "max-num-seqs": sequences, **saving}}


def _choice_of(configuration: Mapping[str, Any]) -> Choice:
    stack = str(configuration["environment"])
    plan = make_plan(configuration, project=_PROJECT, stack=stack)
    hourly = plan.cost.hourly
    if not isinstance(hourly, Priced):  # pragma: no cover - the plan refuses an unknown price
        raise PlanError.of([Problem(setting("accelerator"), None, hourly.reason, "choose another one.")], stack)
    return Choice(configuration, plan, hourly)


def _region_problems(model: str, accelerator: str, region: str, limits: Mapping[str, Any]) -> Iterator[Problem]:
    """Why nothing can be chosen in a region that was given, and the regions where something can."""
    tried = [_try(model, kind, place, limits) for kind, place in _places(model, accelerator, "")]
    elsewhere: dict[str, Choice] = {}
    for choice in (each for each in tried if isinstance(each, Choice)):
        for name in _regions(choice.accelerator):
            if name not in elsewhere and isinstance(here := _try(model, choice.accelerator, name, limits), Choice):
                elsewhere[name] = here
    there = [name for name in _machines() if region in _regions(name)]
    consequence = f"it has {', '.join(there)}, none of which serves {model} at a known price."
    if not there or accelerator not in ("", *there):
        what = accelerator or "an accelerator of the catalogue"
        consequence = f"this region is not known to have {what}, so nothing could be deployed there."
    near = closest(region, elsewhere, likeness=0.85)  # a typing error, not a neighbouring region
    cheapest = sorted(elsewhere.values(), key=lambda each: (each.region != near, each.hourly.usd, each.region))
    listed = ", ".join(f"{each.region} ({each.accelerator}, {each.price_text()})" for each in cheapest)
    repair = f"choose a region where {model} can be served: {listed}."
    if not listed:
        repair = f"leave it out, or choose one of {', '.join(regions(accelerator))}."
    yield Problem("--region", region, consequence, repair)
    if not elsewhere:
        yield from (problem for each in tried[:1] if isinstance(each, PlanError) for problem in _as_options(each))


def _try(model: str, accelerator: str, region: str, limits: Mapping[str, Any]) -> Choice | PlanError:
    """What can be chosen at a place, with the longest requests; the last refusal where nothing can."""
    refusal = PlanError.of([], "")
    for configuration in _configurations(model, accelerator, region, limits):
        try:
            return _choice_of(configuration)
        except PlanError as error:
            refusal = error
    return refusal


def _as_options(error: PlanError) -> Iterator[Problem]:
    """The problems of a plan, by the options that the user gave."""
    options = {setting(name): f"--{name}" for name in ("model", "accelerator", "region")}
    for each in error.problems:
        named = each.value is not None
        yield Problem(options.get(each.key, each.key), each.value, each.consequence, each.repair) if named else each
