"""Validation of a service as Cloud Run does it before anything is created: each violation with its field. Pure."""

import re
from collections.abc import Iterator

from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.http.messages import snake
from bezel_localcloud.services.cloud_run.containers.checks import Violation, between, container_violations
from bezel_localcloud.services.cloud_run.containers.hardware import gpus_of, instance_violations
from bezel_localcloud.services.cloud_run.containers.order import order_violations
from bezel_localcloud.services.cloud_run.containers.volumes import mount_violations, volume_violations
from bezel_localcloud.services.cloud_run.quotas import Granted, initial_values, quota_violations
from bezel_localcloud.services.cloud_run.spec import limits

_REST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")  # of a revision's name, behind its service's
NAME = re.compile(r"[a-z]([a-z0-9-]{0,47}[a-z0-9])?")
NAME_RULE = "'{}': only lower case letters, digits and hyphens, a letter first, below 50 characters"
_RESERVED_NAMESPACES = {"run.googleapis.com", "cloud.googleapis.com", "serving.knative.dev", "autoscaling.knative.dev"}
_COUNTS = ("minInstanceCount", "maxInstanceCount", "manualInstanceCount")
_TEMPLATE = "service.template"


def violations(service: Json, service_id: str, location: str, granted: Granted = initial_values) -> list[Violation]:
    """(field, text) of every violation of a service; `granted` has the quotas' values in the region."""
    problems = list(_violations(service, service_id, location))
    if problems:
        return problems
    texts = quota_violations(service["template"], service.get("scaling") or {}, granted)
    return [("service.template.scaling.max_instance_count", text) for text in texts]


def _violations(service: Json, service_id: str, location: str) -> Iterator[Violation]:
    if not NAME.fullmatch(service_id):
        yield "service_id", NAME_RULE.format(service_id)
    template = service.get("template") or {}
    containers = template.get("containers") or []
    if not containers:
        yield f"{_TEMPLATE}.containers", "at least one container is required"
        return
    yield from instance_violations(template, location)
    yield from _scaling("service.scaling", service.get("scaling") or {})
    yield from _scaling("service.template.scaling", template.get("scaling") or {})
    has_gpu = any(gpus_of(container) for container in containers)
    for index, container in enumerate(containers):
        yield from container_violations(container, f"{_TEMPLATE}.containers[{index}]", has_gpu=has_gpu)
        yield from mount_violations(template, container, f"{_TEMPLATE}.containers[{index}]")
    yield from order_violations(containers)
    yield from volume_violations(template)
    yield from _requests(template)
    yield from _traffic(service.get("traffic") or [])
    yield from _names(service, template, service_id)


def _scaling(field: str, scaling: Json) -> Iterator[Violation]:
    counts, bound = {name: scaling.get(name, 0) for name in _COUNTS}, limits()["instances"]["most"]
    for name, count in counts.items():
        yield from between(f"{field}.{snake(name)}", count, 0, bound)
    minimum, maximum = counts["minInstanceCount"], counts["maxInstanceCount"]
    if maximum and minimum > maximum:
        yield f"{field}.min_instance_count", f"{minimum} is more than max_instance_count {maximum}"


def _requests(template: Json) -> Iterator[Violation]:
    bounds = limits()["requests"]
    concurrency = int(template.get("maxInstanceRequestConcurrency") or 1)
    yield from between(f"{_TEMPLATE}.max_instance_request_concurrency", concurrency, 1, bounds["max_concurrency"])
    try:
        timeout = seconds_of(template.get("timeout"), 300)
    except ValueError as error:
        yield "service.template.timeout", str(error)
        return
    if timeout > bounds["max_timeout_seconds"]:
        yield "service.template.timeout", f"{timeout:g}s is more than {bounds['max_timeout_seconds']}s"


def _traffic(targets: list[Json]) -> Iterator[Violation]:
    percents = [target.get("percent", 0) for target in targets]
    if targets and (sum(percents) != 100 or min(percents) < 0):
        yield "service.traffic", "the percentages must add up to 100, none of them below 0"
    tags = [target["tag"] for target in targets if target.get("tag")]
    if len(tags) != len(set(tags)):
        yield "service.traffic.tag", "a tag is given more than once"
    for target in targets:
        pinned = target.get("type") == "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION"
        if pinned != bool(target.get("revision")):
            yield "service.traffic.revision", "is required with, and only with, TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION"


def _names(service: Json, template: Json, service_id: str) -> Iterator[Violation]:
    revision = template.get("revision")
    begun = revision and revision.startswith(f"{service_id}-")
    if revision and not (begun and _REST.fullmatch(revision.removeprefix(f"{service_id}-"))):
        yield "service.template.revision", f"'{revision}' does not begin with the service's name and a hyphen"
    if revision and len(revision) > 63:
        yield "service.template.revision", f"'{revision}' is longer than 63 characters"
    if len(service.get("description", "")) > 512:
        yield "service.description", "is longer than 512 characters"
    for where, holder in (("service", service), ("service.template", template)):
        for kind in ("labels", "annotations"):
            for key in holder.get(kind) or {}:
                if key.partition("/")[0] in _RESERVED_NAMESPACES:
                    yield f"{where}.{kind}", f"'{key}': Cloud Run's API v2 takes no {kind} of this namespace"
