"""Plan: everything about a Cloud Run stack that can be known without the cloud, as plain frozen values.

Owns the types that components, smoke and commands read. Leaves their construction to bezel.planner.assemble.build.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.base.deployment import ServicePlan, SmokePlan, WeightsPlan
    from bezel.planner.base.settings import Settings
    from bezel.planner.cost.service_cost import Cost
    from bezel.planner.cost.token_cost import TokenCost
    from bezel.planner.rules.startup import StartEstimate
    from bezel.planner.sizing.memory import MemoryFit
    from bezel.planner.sizing.roofline import Estimate
    from bezel.planner.sizing.speculation import Gain


@dataclass(frozen=True, slots=True)
class Plan:
    """A valid stack: what is deployed, memory fit, expected startup time and speed, and cost.

    `gain` is None without speculative decoding. `origins` has the origin of each planned value: "stack file",
    "catalogue default" or "computed".
    """

    stack: str
    project: str
    environment: Literal["dev", "prod"]
    model: str
    served_model: str
    settings: Settings
    service: ServicePlan
    smoke: SmokePlan
    fit: MemoryFit
    start: StartEstimate
    estimate: Estimate
    gain: Gain | None
    cost: Cost
    token_cost: TokenCost
    apis: tuple[str, ...]
    origins: Mapping[str, str]

    @property
    def weights(self) -> WeightsPlan:
        """Location of the model's files."""
        return self.service.weights

    @property
    def secrets(self) -> Mapping[str, str]:
        """Variables whose values are secrets, with the secrets' ids."""
        return self.service.secrets

    @property
    def protected(self) -> bool:
        """Whether destroying the stack is refused."""
        return self.service.deletion_protection
