"""Price of a stack from what lives: the services as Cloud Run has them, and the machines that a lease holds now.

Owns which live values take the place of declared ones. A revision that the traffic names beside the newest one keeps
its own minimum of instances, so it is a part of the price. Leaves the prices to `bezel.resource_cost`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bezel.operations.deployment.deployment import SERVICE_TYPE, DeployedService, Deployment
from bezel.outside_changes.fields import short_name
from bezel.outside_changes.service_rules import named_revisions
from bezel.resource_cost.stack_cost import StackCost, StateResource, resources_in, stack_cost

_OF_SERVICE = ("template", "scaling", "multiRegionSettings")
_OF_REVISION = ("containers", "nodeSelector", "gpuZonalRedundancyDisabled", "scaling")
LiveService = tuple[Mapping[str, Any] | None, Sequence[Mapping[str, Any]]]
"""A service as Cloud Run has it, None where it is gone, and further revisions that its traffic names."""


def live_inputs(service: DeployedService, live: Mapping[str, Any] | None) -> dict[str, Any]:
    """Inputs of a service as they are in force; the declared ones where Cloud Run has not said what runs.

    Its schedule's dearest hour does not count: the minimum is that of the present.
    """
    declared = dict(service.inputs)
    if live is None:
        return declared
    inputs = {key: value for key, value in declared.items() if key not in {*_OF_SERVICE, "annotations"}}
    inputs |= {key: live[key] for key in _OF_SERVICE if live.get(key)}
    template = dict(inputs.get("template") or {})
    if not template.get("containers"):
        declared_template = dict(declared.get("template") or {})
        template = declared_template | template
    return {"location": service.location} | inputs | {"template": template}


def live_cost(
    deployment: Deployment,
    live: Mapping[str, Any] | None,
    revisions: Sequence[Mapping[str, Any]] = (),
    further: Mapping[str, LiveService] | None = None,
) -> StackCost:
    """The cost of a stack.

    Args:
        deployment: The stack.
        live: Its service as Cloud Run has it, of several regions that of the first; None without one.
        revisions: Further revisions that its traffic names.
        further: The services of further regions as Cloud Run has them with such revisions, by id.
    """
    service = deployment.service
    services: dict[str, LiveService] = {} if service is None else {service.id: (live, revisions)}
    services |= further or {}
    resources = resources_in(deployment.resources)
    if all(each is None for each, _ in services.values()):
        return stack_cost(resources)
    others = [each for each in resources if each.type != SERVICE_TYPE]
    kept = [row for each in deployment.services for row in _rows(each, *services.get(each.id, (None, ())))]
    return stack_cost([*others, *kept])


def live_service_cost(
    service: DeployedService, live: Mapping[str, Any] | None, revisions: Sequence[Mapping[str, Any]]
) -> StackCost:
    """The cost of one service, arguments as of `live_cost`."""
    return stack_cost(_rows(service, live, revisions))


def _rows(
    service: DeployedService, live: Mapping[str, Any] | None, revisions: Sequence[Mapping[str, Any]]
) -> list[StateResource]:
    """What of a service is paid for: it with its newest revision, and others that its traffic names."""
    if live is not None and not _reaches_newest(live):
        # What the traffic names takes the place of the newest revision, with the service's own scaling.
        first = next((each for each in revisions if _percent(live, each)), None)
        if first is not None:
            live = {**live, "template": {key: first[key] for key in _OF_REVISION if first.get(key)}}
            revisions = [each for each in revisions if each is not first]
    rows = [StateResource(service.name, SERVICE_TYPE, live_inputs(service, live))]
    for revision in revisions if live is not None else ():
        short = short_name(revision.get("name"))
        template = {key: revision[key] for key in _OF_REVISION if revision.get(key)}
        if not _minimum(template) and not _percent(live or {}, revision):
            continue  # only its tag reaches it, and it keeps no instance
        rows.append(StateResource(short, SERVICE_TYPE, {"location": service.location, "template": template}))
    return rows


def _reaches_newest(live: Mapping[str, Any]) -> bool:
    """Whether the newest revision costs anything: by a share of the traffic, or by a tag and a minimum of its own."""
    newest = short_name(live.get("latestReadyRevision"))
    targets = [row for row in live.get("traffic") or () if short_name(row.get("revision")) in ("", newest)]
    if not live.get("traffic") or any(row.get("percent") for row in targets):
        return True
    return any(row.get("tag") for row in targets) and bool(_minimum(live.get("template") or {}))


def _percent(live: Mapping[str, Any], revision: Mapping[str, Any]) -> int:
    """Share of the traffic that names a revision."""
    short = short_name(revision.get("name"))
    rows = [row for row in live.get("traffic") or () if short_name(row.get("revision")) == short]
    return sum(int(row.get("percent") or 0) for row in rows)


def _minimum(template: Mapping[str, Any]) -> int:
    return int((template.get("scaling") or {}).get("minInstanceCount") or 0)


def beside_the_newest(live: Mapping[str, Any]) -> list[str]:
    """Names of the revisions that run beside the newest one, as Cloud Run has them."""
    return [f"{live['name']}/revisions/{short}" for short in named_revisions(live)]
