"""Children of both kinds of services: service account, images and weights before the server; the budget."""

from collections.abc import Mapping

import pulumi

from bezel.planner import AnyPlan
from bezel.planner.base.deployment import ImagePlan
from bezel.planner.base.environments import THROW_AWAY
from bezel.planner.cost.weights_transfer import BucketPlace
from bezel.rest import RestError
from bezel_base.errors import one_line
from bezel_components.container_image import ContainerImage, ContainerImageArgs
from bezel_components.enabled_apis import EnabledApis, EnabledApisArgs
from bezel_components.lookups.bucket import look_up_bucket
from bezel_components.lookups.project import project_number
from bezel_components.model_files import ModelFiles, ModelFilesArgs
from bezel_components.observability.budget import LABEL, StackBudgetArgs
from bezel_components.runtime_identity import RuntimeIdentity, RuntimeIdentityArgs
from bezel_components.weights_bucket import WeightsBucket, WeightsBucketArgs
from bezel_services.children import Children
from bezel_services.settings.late_inputs import NOTHING_LATE, LateInputs

INGRESS = {
    "all": "INGRESS_TRAFFIC_ALL",
    "internal": "INGRESS_TRAFFIC_INTERNAL_ONLY",
    "internal-and-cloud-load-balancing": "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER",
}
"""Cloud Run's ingress values."""


def enabled_apis(plan: AnyPlan, children: Children) -> EnabledApis:
    """Declare the Google APIs that the plan needs."""
    args = EnabledApisArgs(project=plan.project, services=plan.apis)
    return EnabledApis(children.name_of("apis"), args, opts=children.after())


def runtime_identity(
    plan: AnyPlan, children: Children, account_id: str, runs: str, apis: EnabledApis, *, writes_logs: bool = False
) -> RuntimeIdentity:
    """Declare the service account of the server: it reads the stack's secrets, and may write log entries and series."""
    args = RuntimeIdentityArgs(
        project=plan.project,
        account_id=account_id,
        description=f"Runs {runs}",
        secrets=tuple(plan.secrets.values()),
        writes_logs=writes_logs,
        writes_metrics=plan.metrics is not None,
    )
    return RuntimeIdentity(children.name_of("runtime"), args, opts=children.after(apis))


def stack_budget(plan: AnyPlan, labels: Mapping[str, str]) -> StackBudgetArgs | None:
    """The monthly budget of what has the stack's label; None where the stack file has none."""
    chosen = plan.settings.observability
    if chosen.budget is None:
        return None
    return StackBudgetArgs(
        number=project_number(plan.project),
        stack=labels[LABEL],
        billing_account=chosen.billing_account or "",
        amount=chosen.budget,
        currency=chosen.currency,
    )


def container_image(
    role: str,
    image: ImagePlan,
    children: Children,
    *,
    project: str,
    location: str,
    repository_id: str,
    labels: Mapping[str, str],
    earlier: tuple[pulumi.Resource, ...],
    readers: tuple[str, ...] = (),
) -> ContainerImage:
    """Declare an image in the project's own registry; `readers` pull it themselves."""
    args = ContainerImageArgs(
        project=project,
        location=location,
        repository_id=repository_id,
        registry=image.registry,
        image=image.repository,
        tag=image.tag,
        digest=image.digest,
        readers=readers,
        labels=labels,
    )
    return ContainerImage(children.name_of(role), args, opts=children.after(*earlier))


def weights(
    plan: AnyPlan,
    children: Children,
    identity: RuntimeIdentity,
    apis: EnabledApis,
    *,
    location: str,
    labels: Mapping[str, str],
    written_folder: str = "",
    late: LateInputs = NOTHING_LATE,
    is_first: bool = True,
) -> tuple[pulumi.Resource, ...]:
    """Declare the bucket and the checks of its models and adapters; nothing where the model comes from elsewhere.

    Args:
        plan: Plan of the service.
        children: Children of its component.
        identity: Service account of the server; it reads the bucket.
        apis: The enabled APIs.
        location: Region of the bucket.
        labels: Labels of the bucket.
        written_folder: The one folder that the server may write to; "" for none.
        late: The bucket's name, where the plan has a stand-in for it.
        is_first: Whether the model is that which `bezel weights copy STACK --from` copies.
    """
    planned = plan.weights
    if planned.bucket is None:
        return ()
    if not planned.create and pulumi.runtime.is_dry_run():
        _report_place(plan, planned.bucket, late)
    bucket = WeightsBucket(
        children.name_of("weights"),
        WeightsBucketArgs(
            project=plan.project,
            bucket=late.bucket_of(planned.bucket),
            location=location,
            create=planned.create,
            readers=(identity.email,),
            writers={written_folder: (identity.email,)} if written_folder else {},
            force_destroy=plan.environment == THROW_AWAY,
            labels=labels,
        ),
        opts=children.after(identity),
    )
    models: list[tuple[str, str, str, bool, int | None]] = [("model", planned.path, planned.source, False, None)]
    models += [(f"draft-{number}", *draft, True, None) for number, draft in enumerate(planned.drafts.items())]
    models += [
        (f"adapter-{number}", path, planned.adapter_sources.get(path, ""), False, rank)
        for number, (path, rank) in enumerate(planned.adapters.items())
    ]
    return bucket, *(
        ModelFiles(
            children.name_of(role),
            ModelFilesArgs(
                bucket=bucket.bucket,
                path=path,
                source=source,
                draft=draft,
                adapter_rank=rank,
                base_source="" if rank is None else planned.source,
                base_hidden_size=0 if rank is None else planned.hidden_size,
                base_layers=0 if rank is None else planned.layers,
                bucket_url=bucket.url,
                # Where the plan is that of a stack file, it has the stack's own name.
                stack=plan.stack if is_first and plan.stack == pulumi.get_stack() else "",
            ),
            opts=children.after(apis),
        )
        for role, path, source, draft, rank in models
    )


def _report_place(plan: AnyPlan, bucket: str, late: LateInputs) -> None:
    """Warn in a preview of a bucket that is far from the servers; name one whose location is not known."""
    if late.bucket is not None:
        pulumi.log.info(
            "the bucket with the weights is known only after the deploy, so neither its location nor the price of "
            "reading from it is judged."
        )
        return
    try:
        place = BucketPlace.of(look_up_bucket(bucket))
    except RestError as error:
        pulumi.log.info(
            f"the location of gs://{bucket} is not known, so starts may read across regions: {one_line(error)}"
        )
        return
    transfer = plan.transfer(place)
    if transfer is not None and (warning := transfer.warning()):
        pulumi.log.warn(warning)
