"""Validation of a container by itself, as Cloud Run does it: image, port, probes, variables. Pure."""

import re
from collections import Counter
from collections.abc import Iterator

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.services.cloud_run.spec import limits, probe

Violation = tuple[str, str]
_RESERVED = {"PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION"}


def between(field: str, value: float, low: int, high: int, unit: str = "") -> Iterator[Violation]:
    """The violation of a number that must be within two bounds."""
    if not low <= value <= high:
        yield field, f"{value:g}{unit} is not between {low}{unit} and {high}{unit}"


def container_violations(container: Json, field: str, *, has_gpu: bool) -> Iterator[Violation]:
    """(field, text) of every violation of a container; `field` is its own, `has_gpu` tells of its instance."""
    if not container.get("image"):
        yield f"{field}.image", "is required"
    yield from _probes(container, field, has_gpu=has_gpu)
    ports = container.get("ports") or []
    if len(ports) > 1:
        yield f"{field}.ports", "only one port is allowed"
    for port in ports:
        yield from between(f"{field}.ports", port.get("containerPort", 8080), 1, 65535)
    yield from _environment(container, f"{field}.env")


def _probes(container: Json, place: str, *, has_gpu: bool) -> Iterator[Violation]:
    bounds = limits()["probes"]
    if container.get("startupProbe"):
        startup, field = probe(container["startupProbe"]), f"{place}.startup_probe"
        max_window = bounds["startup_window_gpu" if has_gpu else "startup_window"]
        window = startup.period * startup.failures
        if window > max_window:
            text = f"{startup.failures} failures x {startup.period:g}s is {window:g}s, more than {max_window}s"
            yield f"{field}.failure_threshold", text
        yield from _timing(container["startupProbe"], field, bounds["startup_max_delay"], bounds["startup_max_period"])
    for key, name in (("livenessProbe", "liveness_probe"), ("readinessProbe", "readiness_probe")):
        if container.get(key):
            max_delay, max_period = bounds["liveness_max_delay"], bounds["liveness_max_period"]
            yield from _timing(container[key], f"{place}.{name}", max_delay, max_period)


def _timing(body: Json, field: str, max_delay: int, max_period: int) -> Iterator[Violation]:
    spec = probe(body)
    yield from between(f"{field}.initial_delay_seconds", spec.initial_delay, 0, max_delay)
    yield from between(f"{field}.period_seconds", spec.period, 1, max_period)
    if not 1 <= spec.timeout <= spec.period:
        text = f"{spec.timeout:g} is not between 1 and period_seconds {spec.period:g}"
        yield f"{field}.timeout_seconds", text
    if spec.failures < 1:
        yield f"{field}.failure_threshold", "must be at least 1"


def _environment(container: Json, field: str) -> Iterator[Violation]:
    names = [str(entry.get("name", "")) for entry in container.get("env") or []]
    for name in names:
        if name in _RESERVED:
            text = f"The following reserved env names were provided: {name}. These values are set by the system"
            yield field, text
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", name):
            yield field, f"'{name}' is not a name for an environment variable"
    for name in sorted(name for name, times in Counter(names).items() if times > 1):
        yield field, f"'{name}' is given more than once"
