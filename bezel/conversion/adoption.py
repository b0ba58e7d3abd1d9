"""Adoption of what exists by a stack: the import file that `pulumi import --file` reads.

The engine itself says what a stack would create, under which name and parent (`pulumi preview --import-file`); here
each resource that exists already gets its id, and the others are left out. So the names are those of the program,
whatever components they are children of. Nothing is replaced: a resource is imported by its id, and the next deploy
updates it. Pure.

Source: `pulumi preview --import-file` and `pulumi import --file` of 3.259.0; import ids of the provider's reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner import Plan
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.conversion.inputs.found_server import FoundServer
    from bezel.planner import AnyPlan

SERVICE = "gcp:cloudrunv2/service:Service"
ACCOUNT = "gcp:serviceaccount/account:Account"
REPOSITORY = "gcp:artifactregistry/repository:Repository"


def adopted_ids(server: FoundServer, plan: AnyPlan) -> dict[tuple[str, str], str]:
    """What exists already: (type, end of the resource's name) -> import id. Empty for what is not on Cloud Run.

    Grants are not among it: to make one again changes nothing. Nor is the bucket: a converted stack makes none.

    Args:
        server: As it was found.
        plan: Of the stack that adopts it.
    """
    if not (isinstance(plan, Plan) and server.on_cloud_run):
        return {}
    planned = plan.service
    if (server.name, server.region) != (planned.name, planned.region):
        return {}
    if server.project not in ("", plan.project):
        return {}
    service = f"projects/{plan.project}/locations/{planned.region}/services/{planned.name}"
    ids = {(SERVICE, ""): service}
    account = f"{planned.service_account_id}@{plan.project}.iam.gserviceaccount.com"
    if server.account == account:
        ids[ACCOUNT, "runtime-account"] = f"projects/{plan.project}/serviceAccounts/{account}"
    repository = f"{planned.region}-docker.pkg.dev/{plan.project}/{planned.image_repository_id}/"
    if server.image.startswith(repository):
        name = planned.image_repository_id
        ids[REPOSITORY, ""] = f"projects/{plan.project}/locations/{planned.region}/repositories/{name}"
    return ids


def import_document(created: Mapping[str, Any], ids: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """The import file: the resources that exist, with their ids, and the components above them.

    Args:
        created: The file that `pulumi preview --import-file` wrote for the stack.
        ids: As of `adopted_ids`.

    Raises:
        UserError: The stack would create no such service: another one is previewed, or it was adopted already.
    """
    resources = [each for each in created.get("resources", []) if isinstance(each, dict)]
    by_name: dict[str, list[dict[str, Any]]] = {}
    for each in resources:
        by_name.setdefault(str(each.get("name")), []).append(each)
    kept: list[dict[str, Any]] = []
    for each in resources:
        if (identity := _id_of(each, ids)) is not None:
            above = [component for component in _above(each, by_name) if component not in kept]
            kept += [*reversed(above), {**each, "id": identity}]
    if (SERVICE, "") not in ids or not any(each.get("type") == SERVICE for each in kept):
        consequence = "the stack creates no service that could be adopted: it has been adopted, or its name is another."
        repair = "write the service's name: bezel:service_name; what the stack has: `pulumi stack output`."
        raise UserError(Problem("import", ids.get((SERVICE, "")), consequence, repair))
    names = created.get("nameTable")
    return {**({"nameTable": names} if names else {}), "resources": kept}


def _id_of(resource: Mapping[str, Any], ids: Mapping[tuple[str, str], str]) -> str | None:
    return next(
        (
            identity
            for (token, ending), identity in ids.items()
            if resource.get("type") == token and str(resource.get("name", "")).endswith(ending)
        ),
        None,
    )


def _above(resource: Mapping[str, Any], by_name: Mapping[str, list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """The components above a resource, the nearest first."""
    name = resource.get("parent")
    while name:
        component = next((each for each in by_name.get(str(name), ()) if each.get("component")), None)
        if component is None:
            return
        yield component
        name = component.get("parent")


def adoption_commands(stack: str, file: str, *, provider: str = "", exists: bool = False) -> tuple[str, ...]:
    """The commands of an adoption, in order: the import, then the update that it needs.

    Args:
        stack: Name of the stack.
        file: The import file, in the folder of the project.
        provider: What encrypts the secrets of a new stack; "" for the backend's default.
        exists: Whether the backend has the stack already.
    """
    imported = f"pulumi import --stack {shell_word(stack)} --file {shell_word(file)} "
    made = [f"pulumi stack init {shell_word(stack)}"]
    if provider:
        made = [f"pulumi stack init {shell_word(stack)} --secrets-provider {shell_word(provider)}"]
    return (
        *([] if exists else made),
        imported + "--protect=false --generate-code=false --yes",
        f"pulumi preview --stack {shell_word(stack)}",
        f"pulumi up --stack {shell_word(stack)}",
    )
