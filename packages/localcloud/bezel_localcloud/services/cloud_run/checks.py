"""Validation of a service as Cloud Run does it before anything is created: each violation with its field. Pure."""

import re
from collections import Counter
from collections.abc import Iterator

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.http.messages import snake
from bezel_localcloud.services.cloud_run.containers.volumes import mount_violations, volume_violations
from bezel_localcloud.services.cloud_run.quotas import Granted, initial_values, quota_violations
from bezel_localcloud.services.cloud_run.spec import GIB, cores, limits, probe, serving_container, size_in_bytes

Violation = tuple[str, str]
_REST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")  # of a revision's name, behind its service's
NAME = re.compile(r"[a-z]([a-z0-9-]{0,47}[a-z0-9])?")
NAME_RULE = "'{}': only lower case letters, digits and hyphens, a letter first, below 50 characters"
_RESERVED = {"PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION"}
_RESERVED_NAMESPACES = {"run.googleapis.com", "cloud.googleapis.com", "serving.knative.dev", "autoscaling.knative.dev"}
_COUNTS = ("minInstanceCount", "maxInstanceCount", "manualInstanceCount")
_TEMPLATE = "service.template"
_CONTAINER = f"{_TEMPLATE}.containers[0]"
_ACCELERATOR = f"{_TEMPLATE}.node_selector.accelerator"


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
    if not template.get("containers"):
        yield "service.template.containers", "at least one container is required"
        return
    container = serving_container(template)
    if not container.get("image"):
        yield f"{_CONTAINER}.image", "is required"
    yield from _resources(template, container, location)
    yield from _scaling("service.scaling", service.get("scaling") or {})
    yield from _scaling("service.template.scaling", template.get("scaling") or {})
    yield from _probes(container, has_gpu=_gpus(container) > 0)
    yield from _requests(template)
    yield from _traffic(service.get("traffic") or [])
    yield from _names(service, template, service_id)
    yield from _ports(template)
    yield from _environment(container)
    yield from volume_violations(template)
    yield from mount_violations(template, container, _CONTAINER)


def between(field: str, value: float, low: int, high: int, unit: str = "") -> Iterator[Violation]:
    """The violation of a number that must be within two bounds."""
    if not low <= value <= high:
        yield field, f"{value:g}{unit} is not between {low}{unit} and {high}{unit}"


def _gpus(container: Json) -> int:
    value = _limits_of(container).get("nvidia.com/gpu", "0")
    return decimal(value, 999) or 0


def _limits_of(container: Json) -> Json:
    container_limits: Json = (container.get("resources") or {}).get("limits") or {}
    return container_limits


def _resources(template: Json, container: Json, location: str) -> Iterator[Violation]:
    field = f"{_CONTAINER}.resources.limits"
    container_limits = _limits_of(container)
    try:
        cpu, memory = (
            cores(str(container_limits.get("cpu", "1"))),
            size_in_bytes(str(container_limits.get("memory", "512Mi"))),
        )
    except ValueError as error:
        yield field, str(error)
        return
    if accelerator := (template.get("nodeSelector") or {}).get("accelerator"):
        yield from _accelerator(template, accelerator, location, cpu, memory)
        return
    if container_limits.get("nvidia.com/gpu", "0") != "0":
        yield _ACCELERATOR, "is required where nvidia.com/gpu is given"
    bounds = limits()["instances"]
    if f"{cpu:g}" not in bounds["cpus"] and not 0.08 <= cpu < 1:
        yield f"{field}.cpu", f"Invalid value specified for cpu. {cpu:g} is none of {', '.join(bounds['cpus'])}"
    if memory > bounds["max_memory_gib"] * GIB:
        yield f"{field}.memory", f"{container_limits['memory']} is more than {bounds['max_memory_gib']}Gi"


def _scaling(field: str, scaling: Json) -> Iterator[Violation]:
    counts, bound = {name: scaling.get(name, 0) for name in _COUNTS}, limits()["instances"]["most"]
    for name, count in counts.items():
        yield from between(f"{field}.{snake(name)}", count, 0, bound)
    minimum, maximum = counts["minInstanceCount"], counts["maxInstanceCount"]
    if maximum and minimum > maximum:
        yield f"{field}.min_instance_count", f"{minimum} is more than max_instance_count {maximum}"


def _accelerator(template: Json, accelerator: str, location: str, cpu: float, memory: int) -> Iterator[Violation]:
    container, field = serving_container(template), f"{_CONTAINER}.resources.limits"
    rules = limits()["accelerators"].get(accelerator)
    if rules is None:
        names = ", ".join(limits()["accelerators"])
        yield _ACCELERATOR, f"'{accelerator}' is not supported; supported: {names}"
        return
    if location not in rules["regions"]:
        where = ", ".join(rules["regions"])
        yield _ACCELERATOR, f"{accelerator} is not available in {location}; it is in {where}"
    if _gpus(container) != rules["per_instance"]:
        yield f"{field}.nvidia.com/gpu", f"must be {rules['per_instance']} with {accelerator}"
    if cpu < rules["min_cpu"]:
        text = f"{accelerator} needs at least {rules['min_cpu']}, {cpu:g} given"
        yield f"{field}.cpu", f"Invalid value specified for cpu: {text}"
    if not rules["min_memory_gib"] * GIB <= memory <= rules["max_memory_gib"] * GIB:
        text = f"must be between {rules['min_memory_gib']}Gi and {rules['max_memory_gib']}Gi with {accelerator}"
        yield f"{field}.memory", f"Invalid value specified for memory: {memory / GIB:g}Gi {text}"
    if (container.get("resources") or {}).get("cpuIdle"):
        yield f"{_CONTAINER}.resources.cpu_idle", "must be false with a GPU: it needs instance-based billing"
    if template.get("executionEnvironment") == "EXECUTION_ENVIRONMENT_GEN1":
        yield "service.template.execution_environment", "must be EXECUTION_ENVIRONMENT_GEN2 with a GPU"


def _probes(container: Json, *, has_gpu: bool) -> Iterator[Violation]:
    bounds = limits()["probes"]
    if container.get("startupProbe"):
        startup, field = probe(container["startupProbe"]), f"{_CONTAINER}.startup_probe"
        max_window = bounds["startup_window_gpu" if has_gpu else "startup_window"]
        window = startup.period * startup.failures
        if window > max_window:
            text = f"{startup.failures} failures x {startup.period:g}s is {window:g}s, more than {max_window}s"
            yield f"{field}.failure_threshold", text
        yield from _timing(container["startupProbe"], field, bounds["startup_max_delay"], bounds["startup_max_period"])
    for key, name in (("livenessProbe", "liveness_probe"), ("readinessProbe", "readiness_probe")):
        if container.get(key):
            max_delay, max_period = bounds["liveness_max_delay"], bounds["liveness_max_period"]
            yield from _timing(container[key], f"{_CONTAINER}.{name}", max_delay, max_period)


def _timing(body: Json, field: str, max_delay: int, max_period: int) -> Iterator[Violation]:
    spec = probe(body)
    yield from between(f"{field}.initial_delay_seconds", spec.initial_delay, 0, max_delay)
    yield from between(f"{field}.period_seconds", spec.period, 1, max_period)
    if not 1 <= spec.timeout <= spec.period:
        text = f"{spec.timeout:g} is not between 1 and period_seconds {spec.period:g}"
        yield f"{field}.timeout_seconds", text
    if spec.failures < 1:
        yield f"{field}.failure_threshold", "must be at least 1"


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


def _ports(template: Json) -> Iterator[Violation]:
    if len(template["containers"]) > 1:
        yield "service.template.containers", "localcloud runs one container per instance: remove the others"
    ports = template["containers"][0].get("ports") or []
    if len(ports) > 1:
        yield f"{_CONTAINER}.ports", "only one port is allowed"
    for port in ports:
        yield from between(f"{_CONTAINER}.ports", port.get("containerPort", 8080), 1, 65535)


def _environment(container: Json) -> Iterator[Violation]:
    names = [str(entry.get("name", "")) for entry in container.get("env") or []]
    for name in names:
        if name in _RESERVED:
            text = f"The following reserved env names were provided: {name}. These values are set by the system"
            yield f"{_CONTAINER}.env", text
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", name):
            yield f"{_CONTAINER}.env", f"'{name}' is not a name for an environment variable"
    for name in sorted(name for name, times in Counter(names).items() if times > 1):
        yield f"{_CONTAINER}.env", f"'{name}' is given more than once"
