"""Cloud Run service with a GPU, read from its own inputs and priced by the planner's rules.

Each value is read when a rule needs it, so that a rule refuses only for its own inputs. Where Cloud Run would choose a
default, its most expensive choice counts, or the input is refused.
"""

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from bezel.planner.base.money import Amount, Unpriced
from bezel.planner.base.schedule import ANNOTATION
from bezel.planner.cost.service_cost import ServiceCost, service_cost
from bezel.resource_cost.inputs import Inputs
from bezel.resource_cost.prices.leases import Beside

GPU = "nvidia.com/gpu"
# Quantities in the notation of Kubernetes, which Cloud Run uses.
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(\w*)")
_CPU = {"": Decimal(1), "m": Decimal("0.001")}
_BYTES = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40
}  # fmt: skip
_GIB = {unit: Decimal(size) / 2**30 for unit, size in _BYTES.items()}


@dataclass(frozen=True, slots=True)
class GpuService:
    """One service. Counts are of instances, amounts in USD.

    `beside` is another accelerator that the service requests, which has no price here.
    """

    inputs: Inputs
    run_seconds: None = None
    beside: Beside | None = None

    @property
    def priced_paths(self) -> frozenset[tuple[str, ...]]:
        """Paths of the inputs that request its GPUs."""
        limits = ((*container.where, "resources", "limits", GPU) for container in self._containers)
        return frozenset({_ACCELERATOR, *limits})

    @property
    def labels(self) -> Inputs:
        """Its labels."""
        return self.inputs.at("labels")

    @property
    def accelerator(self) -> str:
        """Cloud Run's name of the GPU, which the catalogue uses too; of several, which no list contains."""
        name = self.inputs.required_text(
            "a GPU without a name has no price.", "add its name, e.g. nvidia-l4.", *_ACCELERATOR
        )
        return f"{name} and {self.beside.accelerator}" if self.beside else name

    @property
    def accelerator_key(self) -> str:
        """Input of the accelerator."""
        return self.beside.key if self.beside else self.inputs.key(*_ACCELERATOR)

    @property
    def max_instances(self) -> int:
        """Maximum of instances at a time.

        Raises:
            InputError: only Cloud Run's default bounds them.
        """
        count, _ = self._larger("maxInstanceCount")
        if count or self._manual:
            return count
        raise self.inputs.refusal(
            None,
            "Cloud Run then starts as many instances as the project's quota allows.",
            "set `bezel:scaling.max_instances`.",
            "template",
            "scaling",
            "maxInstanceCount",
        )

    @property
    def max_key(self) -> str:
        """Input of the maximum."""
        return self._larger("maxInstanceCount")[1]

    @property
    def min_instances(self) -> int:
        """Instances that run without traffic; with a schedule, in its dearest hour."""
        return self._least[0]

    @property
    def min_key(self) -> str:
        """Input of the minimum."""
        return self._least[1]

    @property
    def instance_hourly(self) -> Amount:
        """Cost of one running instance, per hour."""
        cost = self._cost
        return cost.hourly if isinstance(cost, ServiceCost) else cost

    @property
    def hourly(self) -> Amount:
        """Cost of all instances running, per hour."""
        cost = self._cost
        return cost.hourly_at_max if isinstance(cost, ServiceCost) else cost

    @property
    def idle_hourly(self) -> Amount:
        """Cost of the instances that run without traffic, per hour."""
        cost = self._cost
        return cost.hourly_at_min if isinstance(cost, ServiceCost) else cost

    @property
    def _cost(self) -> ServiceCost | Unpriced:
        if self.beside:
            return self.beside.hourly
        if self.inputs.get("multiRegionSettings"):
            return Unpriced("a service that runs in several regions at a time")
        return service_cost(
            self.accelerator,
            region=self.inputs.required_text("the price depends on it.", "set `bezel:region`.", "location"),
            cpu=self._limit("cpu", _CPU),
            memory_gib=self._limit("memory", _GIB),
            min_instances=self.min_instances,
            max_instances=self.max_instances,
            accelerator_count=self._gpus,
            # Google's default is reserved capacity in another zone, which is more expensive.
            zonal_redundancy=not self.inputs.switch("template", "gpuZonalRedundancyDisabled"),
        )

    @property
    def _least(self) -> tuple[int, str]:
        path = ("annotations", ANNOTATION)
        return max(self._larger("minInstanceCount"), (self.inputs.count(*path), self.inputs.key(*path)))

    def _larger(self, name: str) -> tuple[int, str]:
        """The revision's or the service's value, whichever is larger, and its input."""
        places: list[tuple[str, ...]] = [("scaling",)]
        if self._manual:
            name = "manualInstanceCount"
        else:
            places.append(("template", "scaling"))
        return max((self.inputs.count(*place, name), self.inputs.key(*place, name)) for place in places)

    @property
    def _manual(self) -> bool:
        return self.inputs.text("scaling", "scalingMode") == "MANUAL"

    @property
    def _containers(self) -> list[Inputs]:
        return self.inputs.each("template", "containers")

    @property
    def _gpus(self) -> int:
        """GPUs of one instance; 1 where only the type is named."""
        return max(1, sum(container.count("resources", "limits", GPU) for container in self._containers))

    def _limit(self, name: str, units: dict[str, Decimal]) -> int:
        """Limit of a resource of one instance, over all containers, rounded up to whole units."""
        path = ("resources", "limits", name)
        amount = Decimal(0)
        for container in self._containers:
            written = container.get(*path)
            quantity = _QUANTITY.fullmatch(f"{written:g}" if isinstance(written, float) else str(written))
            if quantity is None or quantity[2] not in units:
                raise container.refusal(
                    written, "the price depends on it.", f"set it, e.g. {_EXAMPLES[name]}, for each container.", *path
                )
            amount += Decimal(quantity[1]) * units[quantity[2]]
        if not amount:
            raise self.inputs.refusal(
                None, "the price depends on its limits.", "add a container.", "template", "containers"
            )
        return int(amount.to_integral_value(ROUND_CEILING))


_ACCELERATOR = ("template", "nodeSelector", "accelerator")
_EXAMPLES = {"cpu": '"4"', "memory": '"16Gi"'}


def has_gpu(inputs: Inputs) -> bool:
    """Whether a Cloud Run service requests a GPU."""
    return bool(inputs.get(*_ACCELERATOR)) or any(
        container.get("resources", "limits", GPU) for container in inputs.each("template", "containers")
    )
