"""`VllmService`: a model on vLLM as one resource, on a GPU of Cloud Run.

Owns the whole of it: the plan, which refuses what cannot work before anything is declared; APIs, account, bucket and
image; the check of the model's files; the service; the health check and the short benchmark that end a deploy. Leaves
out leased machines (`LeasedVllmService`).

Example:
    ```python
    chat = VllmService("chat", model="gemma-4-12b-it-qat-w4a16", accelerator="nvidia-l4", region="us-east4")
    pulumi.export("url", chat.url)
    ```
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack

import pulumi

from bezel.planner import Plan
from bezel_components.base.check_resource import is_in_package
from bezel_services.preparation import prepare, with_limits
from bezel_services.regions.deployed import look_up_deployed, with_earlier_region_name
from bezel_services.served_model import ServedModel
from bezel_services.settings.late_inputs import NOTHING_LATE, LateInputs, check_late_inputs, split_late_inputs
from bezel_services.settings.left_out import leave_out
from bezel_services.settings.planning import plan_service, refused_as

if TYPE_CHECKING:
    from types import ModuleType

    from bezel_components.lookups.quota import QuotaState
    from bezel_services.settings.types import ServiceSettings

TOKEN = "bezel:services:VllmService"  # noqa: S105 - a type token


class PlannedVllmService(ServedModel):
    """A service from a plan that the program has made itself, with the attributes of `ServedModel` and more.

    Attributes:
        revision: Name of the revision that serves, once it has passed its checks; of several regions in the first.

    Raises:
        PlanError: The cloud has no room for the service, or its registry no such image; nothing is declared.
    """

    revision: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        plan: Plan,
        opts: pulumi.ResourceOptions | None = None,
        *,
        late: LateInputs = NOTHING_LATE,
    ) -> None:
        load = partial(_load, plan, is_preview=pulumi.runtime.is_dry_run())
        (cloud_run, quotas), images = prepare(plan, load, *plan.images)
        deployed = look_up_deployed(name, plan)
        plan = cloud_run.fit_to_cloud(plan, quotas, images, late, deployed)
        names = [each.region for each in plan.regions]
        # The package sees one component: what the program declares beside it would pass for a change from outside.
        resources = None if is_in_package() else cloud_run.DeclaredResources()
        super().__init__(TOKEN, name, None, with_limits(opts, with_earlier_region_name(names, deployed)))
        children = cloud_run.Children(self, name, opts)
        declared = cloud_run.declare(plan, children, images, resources, late, deployed)
        self.revision = declared.first.revision
        urls = {region: each.service.url for region, each in declared.regions.items()}
        self._register(plan, urls, declared, revision=self.revision)


class VllmService(PlannedVllmService):
    """A model on vLLM on a GPU of Cloud Run: planned, deployed, checked and measured as one resource.

    Attributes:
        See `ServedModel` and `PlannedVllmService`.

    Args:
        name: Name of the component; the names of its children begin with it.
        opts: Options; `depends_on` and `provider` count for the children too.
        project: Google Cloud project; by default that of the provider's configuration (`gcp:project`).
        cloud_name: Base of the names in Google Cloud, e.g. of the service and its account; by default the component's
            name and the stack's, as in `chat-dev`.
        without: Options of the server whose defaults are left out, without dashes, e.g. `reasoning-parser`; the same as
            None for each in `vllm`.
        settings: The settings of a stack file, e.g. `model`, `accelerator`, `region`, `vllm`, `cost`, `labels`. The
            bucket of the weights, the network and the subnetwork may be outputs of other resources.

    Raises:
        ServiceRefusedError: The service cannot work as it is set, or the cloud has no room for it: every problem with
            value, consequence and repair. Nothing of the service is declared. A program that lets it pass ends with its
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
        **settings: "Unpack[ServiceSettings]",
    ) -> None:
        with refused_as(f"VllmService {name} cannot be planned"):
            plan_settings, late = split_late_inputs(leave_out(settings, without))
            plan = plan_service(Plan, name, plan_settings, project, cloud_name)
            check_late_inputs(plan, late)
            super().__init__(name, plan, opts, late=late)


def _load(plan: Plan, *, is_preview: bool) -> "tuple[ModuleType, Mapping[str, QuotaState]]":
    """The module that declares the children, and the quotas that they need."""
    from bezel_services import cloud_run

    return cloud_run, cloud_run.read_quotas(plan, is_preview=is_preview)
