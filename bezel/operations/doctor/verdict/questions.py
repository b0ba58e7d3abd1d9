"""Requests by which Google says whether it would accept a stack: a validation of its service, and reads. Pure.

`validateOnly` of Cloud Run v2: the request is validated and default values are populated, nothing is persisted. Source:
discovery document of run v2, `projects.locations.services.create` and `.patch`, November 2026. Leaves out sending them
(`ask`).
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from bezel.foundation import permissions
from bezel.planner.assemble.quota import Need
from bezel.planner.team.series_labels import SECRETS_OF_STACKS

_MOST_PERMISSIONS = 100  # of one testIamPermissions
_ENABLING = "serviceusage.services.enable"  # by hand a deploy enables APIs, which a pipeline's account may not


@dataclass(frozen=True)
class Question:
    """One request.

    Attributes:
        title: What it asks, for a reader.
        api: Name of the API, as of `bezel.rest.endpoint`.
        method: The HTTP method.
        path: Path below the API's base address.
        params: The query.
        body: The body; None for none.
        left_out: Paths of the body that are not sent, each with its reason.
    """

    title: str
    api: str
    method: str
    path: str
    params: Mapping[str, str | int] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    left_out: tuple[str, ...] = ()


def service_question(planned: Mapping[str, Any], later: str, *, exists: bool, has_account: bool) -> Question:
    """The validation of a planned service: as a create, or as a change of the one that exists.

    Args:
        planned: The service in run v2's description, with its whole name.
        later: The text in place of values that only the deploy makes known.
        exists: Whether there is a service of that name.
        has_account: Whether its service account exists: a first deploy creates it before the service.
    """
    body, left_out = deepcopy(dict(planned)), list[str]()
    _drop_unknown(body, "", later, left_out)
    name = str(body["name"])
    parent, _, service = name.rpartition("/services/")
    template = body.get("template")
    if not has_account and isinstance(template, dict) and template.pop("serviceAccount", None):
        left_out.append("template.serviceAccount (the deploy creates it first)")
    if isinstance(template, dict):
        _drop_secrets_of_stack(template, left_out)
    if exists:
        title, params = "change of the service", {"validateOnly": "true"}
        return Question(title, "CLOUD_RUN_V2", "PATCH", name, params, body, tuple(left_out))
    del body["name"]  # the API composes it
    params = {"serviceId": service, "validateOnly": "true"}
    title = "creation of the service"
    return Question(title, "CLOUD_RUN_V2", "POST", f"{parent}/services", params, body, tuple(left_out))


def for_localcloud(question: Question) -> Question:
    """The same validation for a localcloud that holds no service, no revision and no network of the project."""
    body, left_out = deepcopy(dict(question.body or {})), list(question.left_out)
    if body.get("template", {}).pop("vpcAccess", None):
        left_out.append("template.vpcAccess (localcloud has no network of the project)")
    if any(target.get("revision") for target in body.get("traffic") or ()):
        del body["traffic"]
        left_out.append("traffic (localcloud has no revision of the service)")
    params = {**question.params, **({"allowMissing": "true"} if question.method == "PATCH" else {})}
    return replace(question, params=params, body=body, left_out=tuple(left_out))


def permission_questions(
    project: str, *, leases: bool, addresses: bool = False, metrics: bool = False
) -> list[Question]:
    """The caller's permissions on the project, of those that a deploy needs."""
    roles = [permissions.DEPLOY, permissions.DEPLOY_RESOURCE_GRANTS, permissions.DEPLOY_WEIGHTS]
    if leases:
        roles.append(permissions.DEPLOY_LEASES)
    if leases or metrics:
        roles.append(permissions.DEPLOY_PROJECT_GRANTS)
    if addresses:  # without those on record sets, which are granted for single names
        roles.append(permissions.DEPLOY_ADDRESSES)
    names = sorted({_ENABLING, *(name for role in roles for name in role.permissions)})
    parts = [names[start : start + _MOST_PERMISSIONS] for start in range(0, len(names), _MOST_PERMISSIONS)]
    return [
        Question(
            f"permissions, part {number} of {len(parts)}",
            "RESOURCE_MANAGER",
            "POST",
            f"projects/{project}:testIamPermissions",
            body={"permissions": part},
        )
        for number, part in enumerate(parts, start=1)
    ]


def quota_questions(project: str, needs: Sequence[Need]) -> list[Question]:
    """The quotas that a deploy needs."""
    paths = {
        need.quota.id: f"projects/{project}/locations/global/services/{need.quota.service}/quotaInfos/{need.quota.id}"
        for need in needs
    }
    return [Question(f"quota {name}", "CLOUD_QUOTAS", "GET", path) for name, path in paths.items()]


def account_question(project: str, account: str) -> Question:
    """The service account of the service."""
    return Question("service account", "IAM_BETA", "GET", f"projects/{project}/serviceAccounts/{account}")


def policy_question(service: str) -> Question:
    """Who may call the service that exists."""
    return Question("policy of the service", "CLOUD_RUN_V2", "GET", f"{service}:getIamPolicy")


def missing_permissions(question: Question, content: Mapping[str, Any]) -> list[str]:
    """The permissions that were asked for and that the answer lacks."""
    wanted: Iterable[str] = (question.body or {}).get("permissions") or ()
    return sorted({*wanted} - {*(content.get("permissions") or ())})


def _drop_secrets_of_stack(template: dict[str, Any], left_out: list[str]) -> None:
    """Remove the volumes of secrets that the deploy makes before the service, with their mounts."""
    kept = []
    for number, volume in enumerate(template.get("volumes") or ()):
        secret = str((volume.get("secret") or {}).get("secret") or "").rpartition("/")[2]
        if not secret.startswith(SECRETS_OF_STACKS):
            kept.append(volume)
            continue
        left_out.append(f"template.volumes[{number}] (the deploy makes its secret first)")
        for container in template.get("containers") or ():
            mounts = container.get("volumeMounts") or ()
            container["volumeMounts"] = [mount for mount in mounts if mount.get("name") != volume.get("name")]
    if "volumes" in template:
        template["volumes"] = kept


def _drop_unknown(value: Any, path: str, later: str, left_out: list[str]) -> None:
    """Remove what only the deploy makes known; note the paths."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, item in reversed(items):
        inner = f"{path}.{key}".lstrip(".") if isinstance(value, dict) else f"{path}[{key}]"
        if isinstance(item, str) and later in item:
            del value[key]
            left_out.append(f"{inner} (known after the deploy)")
        elif isinstance(item, dict | list):
            _drop_unknown(item, inner, later, left_out)
