"""The Plan: everything about a stack that can be known without the cloud, as plain frozen values.

Owns the shapes that components, smoke and commands read. Leaves filling them to bezel.planner.assemble.build.
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
    """A stack that can work: what is deployed, what fits, how soon and how fast it may answer and what it costs.

    `gain` is None without speculative decoding. `origins` says for each planned value where it came from: "stack
    file", "catalogue default" or "computed".
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
        """Where the model's files are."""
        return self.service.weights

    @property
    def secrets(self) -> Mapping[str, str]:
        """Variables that get the values of secrets."""
        return self.service.secrets

    @property
    def protected(self) -> bool:
        """Whether taking the stack down is refused."""
        return self.service.deletion_protection
