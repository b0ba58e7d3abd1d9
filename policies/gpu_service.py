"""A Cloud Run service with a GPU, read from its own inputs and priced by the planner's rules.

Each value is read when a rule asks for it, so that a rule refuses only for what it needs. What Cloud Run would choose
by itself is read as its dearest choice, or refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

from bezel.planner.base.money import Unpriced
from bezel.planner.cost.service_cost import service_cost

if TYPE_CHECKING:
    from bezel.planner.base.money import Amount
    from policies.inputs import Inputs

GPU = "nvidia.com/gpu"
# Quantities as Kubernetes writes them, which Cloud Run took over.
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(\w*)")
_CPU = {"": Decimal(1), "m": Decimal("0.001")}
_BYTES = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40
}  # fmt: skip
_GIB = {unit: Decimal(size) / 2**30 for unit, size in _BYTES.items()}


@dataclass(frozen=True, slots=True)
class GpuService:
    """One service. Counts are instances, money is USD."""

    inputs: Inputs

    @property
    def labels(self) -> Inputs:
        """Its labels."""
        return self.inputs.at("labels")

    @property
    def accelerator(self) -> str:
        """Cloud Run's name of the GPU, which is the catalogue's."""
        return self.inputs.needed("a GPU without a name has no price.", "name it, e.g. nvidia-l4.", *_ACCELERATOR)

    @property
    def accelerator_key(self) -> str:
        """Where that stands."""
        return self.inputs.key(*_ACCELERATOR)

    @property
    def most_instances(self) -> int:
        """Most instances at a time.

        Raises:
            InputError: nothing bounds them but Cloud Run's own choice.
        """
        most, _ = self._larger("maxInstanceCount")
        if most or self._manual:
            return most
        raise self.inputs.refusal(
            None,
            "Cloud Run then starts as many instances as the project's quota allows.",
            "set `bezel:scaling.max_instances`.",
            "template",
            "scaling",
            "maxInstanceCount",
        )

    @property
    def most_key(self) -> str:
        """Where they stand."""
        return self._larger("maxInstanceCount")[1]

    @property
    def least_instances(self) -> int:
        """Instances that run without any traffic."""
        return self._larger("minInstanceCount")[0]

    @property
    def least_key(self) -> str:
        """Where they stand."""
        return self._larger("minInstanceCount")[1]

    @property
    def hourly(self) -> Amount:
        """All instances running, per hour."""
        if self.inputs.get("multiRegionSettings"):
            return Unpriced("a service that runs in several regions at a time")
        return service_cost(
            self.accelerator,
            region=self.inputs.needed("the price depends on it.", "set `bezel:region`.", "location"),
            cpu=self._limit("cpu", _CPU),
            memory_gib=self._limit("memory", _GIB),
            min_instances=self.least_instances,
            max_instances=self.most_instances,
            accelerator_count=self._gpus,
            # Reserved capacity in another zone, the dearer price, is what Google takes where nothing is said.
            zonal_redundancy=self.inputs.get("template", "gpuZonalRedundancyDisabled") is not True,
        ).hourly_at_max

    def monthly(self, hourly: Decimal, hours_per_month: int) -> Decimal:
        """All instances running all month, of what they cost per hour."""
        return hourly * hours_per_month

    def _larger(self, name: str) -> tuple[int, str]:
        """What is said of a revision or of the service, whichever allows more, and where it stands."""
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
        """GPUs of one instance; one where only its kind is named."""
        return max(1, sum(container.count("resources", "limits", GPU) for container in self._containers))

    def _limit(self, name: str, units: dict[str, Decimal]) -> int:
        """What one instance gets of a resource, all containers together, rounded up to whole units."""
        path = ("resources", "limits", name)
        amount = Decimal(0)
        for container in self._containers:
            written = container.get(*path)
            found = _QUANTITY.fullmatch(f"{written:g}" if isinstance(written, float) else str(written))
            if found is None or found[2] not in units:
                raise container.refusal(
                    written, "the price depends on it.", f"set it, e.g. {_EXAMPLES[name]}, for each container.", *path
                )
            amount += Decimal(found[1]) * units[found[2]]
        if not amount:
            raise self.inputs.refusal(None, "the price depends on its limits.", "name one.", "template", "containers")
        return _up(amount)


_ACCELERATOR = ("template", "nodeSelector", "accelerator")
_EXAMPLES = {"cpu": '"4"', "memory": '"16Gi"'}


def _up(number: Decimal) -> int:
    return int(number.to_integral_value(ROUND_CEILING))


def has_gpu(inputs: Inputs) -> bool:
    """Whether a Cloud Run service asks for a GPU."""
    return bool(inputs.get(*_ACCELERATOR)) or any(
        container.get("resources", "limits", GPU) for container in inputs.each("template", "containers")
    )
