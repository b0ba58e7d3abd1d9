"""Validation of what an instance asks for: CPUs, memory and GPUs of its containers, alone and in sum. Pure.

The limits of an instance hold for the sum of its containers: Cloud Run's page on limits has them for an instance.
"""

import math
from collections.abc import Iterator

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.services.cloud_run.containers.order import serving_container
from bezel_localcloud.services.cloud_run.spec import GIB, cores, limits, size_in_bytes

Violation = tuple[str, str]
_TEMPLATE = "service.template"
_ACCELERATOR = f"{_TEMPLATE}.node_selector.accelerator"


def gpus_of(container: Json) -> int:
    """Number of GPUs that a container asks for."""
    value = _limits_of(container).get("nvidia.com/gpu", "0")
    return decimal(value, 999) or 0


def instance_violations(template: Json, location: str) -> Iterator[Violation]:
    """(field, text) of every violation of the hardware of an instance."""
    containers = template["containers"]
    try:
        sizes = [_size(container, f"{_TEMPLATE}.containers[{i}]") for i, container in enumerate(containers)]
    except _NoQuantityError as error:
        yield error.field, error.text
        return
    with_gpu = [container for container in containers if _limits_of(container).get("nvidia.com/gpu", "0") != "0"]
    accelerator = (template.get("nodeSelector") or {}).get("accelerator")
    if len(with_gpu) > 1:
        yield f"{_TEMPLATE}.containers", "only one container may have GPUs"
    chosen = containers.index((with_gpu or [serving_container(template)])[0]) if accelerator else None
    if with_gpu and not accelerator:
        yield _ACCELERATOR, "is required where nvidia.com/gpu is given"
    for index, (cpu, memory) in enumerate(sizes):
        field = f"{_TEMPLATE}.containers[{index}]"
        if index == chosen:
            yield from _accelerator(template, containers[index], field, location, (cpu, memory))
        else:
            yield from _plain(containers[index], field, cpu, memory)
    if len(sizes) > 1:
        yield from _sums(accelerator, sizes)


class _NoQuantityError(Exception):
    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field, self.text = field, text


def _limits_of(container: Json) -> Json:
    container_limits: Json = (container.get("resources") or {}).get("limits") or {}
    return container_limits


def _size(container: Json, field: str) -> tuple[float, int]:
    """(CPUs, bytes of memory) of a container.

    Raises:
        _NoQuantityError: One of them is no quantity.
    """
    container_limits = _limits_of(container)
    try:
        return cores(str(container_limits.get("cpu", "1"))), size_in_bytes(str(container_limits.get("memory", "512Mi")))
    except ValueError as error:
        raise _NoQuantityError(f"{field}.resources.limits", str(error)) from None


def _plain(container: Json, field: str, cpu: float, memory: int) -> Iterator[Violation]:
    bounds, field = limits()["instances"], f"{field}.resources.limits"
    if f"{cpu:g}" not in bounds["cpus"] and not 0.08 <= cpu < 1:
        yield f"{field}.cpu", f"Invalid value specified for cpu. {cpu:g} is none of {', '.join(bounds['cpus'])}"
    if memory > bounds["max_memory_gib"] * GIB:
        yield f"{field}.memory", f"{_limits_of(container)['memory']} is more than {bounds['max_memory_gib']}Gi"


def _accelerator(
    template: Json, container: Json, field: str, location: str, size: tuple[float, int]
) -> Iterator[Violation]:
    accelerator, (cpu, memory) = template["nodeSelector"]["accelerator"], size
    rules = limits()["accelerators"].get(accelerator)
    if rules is None:
        names = ", ".join(limits()["accelerators"])
        yield _ACCELERATOR, f"'{accelerator}' is not supported; supported: {names}"
        return
    if location not in rules["regions"]:
        where = ", ".join(rules["regions"])
        yield _ACCELERATOR, f"{accelerator} is not available in {location}; it is in {where}"
    if gpus_of(container) != rules["per_instance"]:
        yield f"{field}.resources.limits.nvidia.com/gpu", f"must be {rules['per_instance']} with {accelerator}"
    if cpu < rules["min_cpu"]:
        text = f"{accelerator} needs at least {rules['min_cpu']}, {cpu:g} given"
        yield f"{field}.resources.limits.cpu", f"Invalid value specified for cpu: {text}"
    if not rules["min_memory_gib"] * GIB <= memory <= rules["max_memory_gib"] * GIB:
        text = f"must be between {rules['min_memory_gib']}Gi and {rules['max_memory_gib']}Gi with {accelerator}"
        yield f"{field}.resources.limits.memory", f"Invalid value specified for memory: {memory / GIB:g}Gi {text}"
    if (container.get("resources") or {}).get("cpuIdle"):
        yield f"{field}.resources.cpu_idle", "must be false with a GPU: it needs instance-based billing"
    if template.get("executionEnvironment") == "EXECUTION_ENVIRONMENT_GEN1":
        yield "service.template.execution_environment", "must be EXECUTION_ENVIRONMENT_GEN2 with a GPU"


def _sums(accelerator: str | None, sizes: list[tuple[float, int]]) -> Iterator[Violation]:
    bounds = limits()["instances"]
    rules = limits()["accelerators"].get(accelerator or "", {})
    most_cpu = rules.get("max_cpu", math.inf) if rules else float(bounds["cpus"][-1])
    most_memory = rules.get("max_memory_gib", bounds["max_memory_gib"])
    cpu, memory = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
    if cpu > most_cpu:
        yield f"{_TEMPLATE}.containers", f"the containers' {cpu:g} vCPUs together are more than {most_cpu:g}"
    if memory > most_memory * GIB:
        text = f"the containers' {memory / GIB:g}Gi of memory together are more than {most_memory}Gi"
        yield f"{_TEMPLATE}.containers", text
