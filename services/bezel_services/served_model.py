"""Base of the components that serve a model: the outputs that both kinds have."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import pulumi

from bezel_services import environment

if TYPE_CHECKING:
    from bezel.planner import AnyPlan
    from bezel_services.door import DeclaredDoor
    from bezel_services.regions.address import DeclaredAddress
    from bezel_smoke.benchmark import ShortBenchmark
    from bezel_smoke.health import HealthCheck


class DeclaredServer(Protocol):
    """What both kinds of children hold."""

    @property
    def image(self) -> str:
        """Reference of the server's image, by digest."""

    @property
    def health(self) -> "HealthCheck":
        """The health check."""

    @property
    def benchmark(self) -> "ShortBenchmark":
        """The short benchmark."""

    @property
    def address(self) -> "DeclaredAddress | None":
        """The address with a name of its own, if there is one."""

    @property
    def door(self) -> "DeclaredDoor | None":
        """The door for callers by key, if there is one."""


class ServedModel(pulumi.ComponentResource):
    """A model on vLLM, checked and measured.

    Attributes:
        url: Address for requests: the one with a name of its own, where there is one.
        address: That address: its `domain`, `ip`, `records`, `certificate` and `check`; empty without one.
        urls: Region -> own URL of the service there, where there are several regions or an address; else empty.
        regions: These regions, in the order in which they are deployed.
        door: Address for callers by key; "" without a door.
        image: Reference of the server's image, by digest.
        model: The model's id at the server.
        arguments: Arguments of the server.
        plan: Fit, weights, start, expected speed and cost, as `as_output` of the plan has them.
        verdict: Verdict of the health check.
        figures: Figures of the short benchmark.
        simulated: Whether the server is a simulated one, so that no figure is a measurement.
    """

    url: pulumi.Output[str]
    address: dict[str, Any]
    urls: Mapping[str, pulumi.Output[str]]
    regions: list[str]
    door: pulumi.Output[str] | str
    image: str
    model: str
    arguments: list[str]
    plan: Mapping[str, Any]
    verdict: pulumi.Output[dict[str, Any]]
    figures: pulumi.Output[dict[str, Any]]
    simulated: bool

    def _register(
        self, plan: "AnyPlan", urls: Mapping[str, pulumi.Output[str]], declared: DeclaredServer, **further: Any
    ) -> None:
        """Set the outputs from the plan and the children, and register them with further ones of a kind.

        Args:
            plan: Plan of the service.
            urls: Region -> own URL of the service there, the first region first.
            declared: The children.
            further: Outputs that other kinds do not have.
        """
        address = declared.address
        self.url = next(iter(urls.values())) if address is None else pulumi.Output.from_input(address.url)
        self.address = {} if address is None else address.as_output()
        self.urls = urls if address is not None or len(urls) > 1 else {}
        self.regions = list(self.urls)
        self.door = "" if declared.door is None else declared.door.door.url
        self.image, self.model = declared.image, plan.served_model
        self.arguments, self.plan = list(plan.server.arguments), plan.as_output()
        self.verdict, self.figures = declared.health.verdict, declared.benchmark.figures
        self.simulated = environment.is_simulated()
        outputs = ("url", "image", "model", "arguments", "verdict", "figures", "simulated")
        values = {key: getattr(self, key) for key in outputs}
        self.register_outputs({**values, **self.placement, "planned_memory": _planned_memory(self.plan), **further})

    @property
    def placement(self) -> dict[str, Any]:
        """The outputs `regions`, `urls`, `address` and `door`, as far as there are several regions or the others."""
        placed = {"regions": self.regions, "urls": self.urls, "address": self.address, "door": self.door}
        return {key: value for key, value in placed.items() if value}


def _planned_memory(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan's fit and model, for the state. Policy packs take values named after accelerators for hardware."""
    fit = {"total_gib" if key == "accelerator_gib" else key: value for key, value in plan["fit"].items()}
    return {"fit": fit, "weights": {"model": plan["weights"]["model"]}}
