"""State names dynamic providers by their module: those that stacks made before 0.1.0 name still hold them."""

from __future__ import annotations

import importlib

import pytest
from pulumi.dynamic import ResourceProvider

EARLIER = {
    "bootstrap.providers.stack_guard": "StackGuardProvider",
    "components.providers.lease_hours": "LeaseAfterChecksProvider",
    "components.providers.model_files": "ModelFilesProvider",
    "components.providers.scheduled_minimum": "ScheduledMinimumProvider",
    "components.providers.tpu_node": "TpuNodeProvider",
    "components.providers.tpu_request": "TpuRequestProvider",
    "components.providers.traffic_switch": "TrafficSwitchProvider",
    "smoke.base": "SmokeProvider",
    "smoke.benchmark": "ShortBenchmarkProvider",
    "smoke.health": "HealthCheckProvider",
}


@pytest.mark.parametrize(("module", "name"), EARLIER.items())
def test_a_provider_is_found_where_an_earlier_state_names_it(module: str, name: str) -> None:
    assert issubclass(getattr(importlib.import_module(module), name), ResourceProvider)


def test_a_module_that_was_never_there_is_not() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("components.no_such_provider")
