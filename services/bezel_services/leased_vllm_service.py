"""`LeasedVllmService`: a model on vLLM as one resource, on leased machines behind a gateway.

As `VllmService`, for accelerators that are leased: TPU slices and machines with several GPUs. Its requests go through a
gateway on Cloud Run, which lets only its invokers through.

Example:
    ```python
    chat = LeasedVllmService("chat", model="gemma-4-26b-a4b-it", accelerator="v6e-4", region="us-east5",
                             lease={"zones": [{"zone": "us-east5-b"}]})
    pulumi.export("url", chat.url)
    ```
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import pulumi

from bezel.planner import LeasePlan
from bezel_services.preparation import prepare, refuse, with_limits
from bezel_services.regions.deployed import look_up_deployed
from bezel_services.served_model import ServedModel
from bezel_services.settings.late_inputs import refuse_outputs
from bezel_services.settings.left_out import leave_out
from bezel_services.settings.planning import plan_service, refused_as

if TYPE_CHECKING:
    from types import ModuleType

    from bezel_services.lease import LeaseQuotas
    from bezel_services.settings.types import LeasedServiceSettings

TOKEN = "bezel:services:LeasedVllmService"  # noqa: S105 - a type token


class PlannedLeasedVllmService(ServedModel):
    """Leased machines and their gateway, from a plan that the program has made itself.

    It has the attributes of `ServedModel`, of which `url` is the address of the gateway, and one more.

    Attributes:
        leases: Name of each lease -> its state, zone, end, cost and hours.

    Raises:
        PlanError: The cloud has no room for the leases, or a registry no such image; nothing is declared.
    """

    leases: Mapping[str, Mapping[str, Any]]

    def __init__(self, name: str, plan: LeasePlan, opts: pulumi.ResourceOptions | None = None) -> None:
        load = partial(_load, plan, is_preview=pulumi.runtime.is_dry_run())
        (lease, quotas), images = prepare(plan, load, *plan.images)
        deployed = look_up_deployed(name, plan)
        refuse(plan, lease.find_problems(plan, quotas, images, deployed))
        resources = lease.DeclaredResources()
        super().__init__(TOKEN, name, None, with_limits(opts))
        declared = lease.declare(plan, lease.Children(self, name, opts), images, resources, deployed)
        self.leases = declared.leases
        urls = {plan.gateway.region: declared.gateway.url}
        self._register(plan, urls, declared, leases=self.leases)


class LeasedVllmService(PlannedLeasedVllmService):
    """A model on vLLM on leased machines, with the attributes of `PlannedLeasedVllmService`.

    Args:
        name: Name of the component; the names of its children begin with it.
        opts: Options; `depends_on` and `provider` count for the children too.
        project: Google Cloud project; by default that of the provider's configuration (`gcp:project`).
        cloud_name: Base of the names in Google Cloud, e.g. of the leases and the gateway; by default the component's
            name and the stack's, as in `chat-dev`.
        without: Options of the server whose defaults are left out, without dashes, e.g. `reasoning-parser`; the same as
            None for each in `vllm`.
        settings: The settings of a stack file, e.g. `model`, `accelerator`, `region`, `lease`, `cost`, `labels`.

    Raises:
        ServiceRefusedError: The leases cannot work as they are set, or the cloud has no room for them: every problem
            with value, consequence and repair. Nothing of them is declared. A program that lets it pass ends with its
            text and without a traceback.
    """

    def __init__(
        self,
        name: str,
        opts: pulumi.ResourceOptions | None = None,
        *,
        project: str | None = None,
        cloud_name: str | None = None,
        without: Sequence[str] = (),
        **settings: "Unpack[LeasedServiceSettings]",
    ) -> None:
        with refused_as(f"LeasedVllmService {name} cannot be planned"):
            refuse_outputs(settings)
            plan = plan_service(LeasePlan, name, leave_out(settings, without), project, cloud_name)
            super().__init__(name, plan, opts)


def _load(plan: LeasePlan, *, is_preview: bool) -> "tuple[ModuleType, LeaseQuotas]":
    """The module that declares the children, and the quotas that they need."""
    from bezel_services import lease

    return lease, lease.read_quotas(plan, is_preview=is_preview)
