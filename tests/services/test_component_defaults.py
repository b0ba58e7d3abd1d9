"""Defaults of the components are what a service passes to them; each that differs says so where it is described."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from pulumi.runtime import set_all_config

from bezel_components.base.arguments import ComponentArgs
from bezel_components.base.cloud_run_service import CloudRunServiceArgs
from bezel_components.container_image import ContainerImageArgs
from bezel_plugin.schema.descriptions import describe_fields
from bezel_services import cloud_run, lease  # noqa: F401 - loaded before calls are watched
from bezel_services.leased_vllm_service import LeasedVllmService
from bezel_services.vllm_service import VllmService
from bezel_smoke.benchmark import ShortBenchmarkArgs
from bezel_smoke.health import HealthCheckArgs
from tests.support.components.fake_engine import declare
from tests.support.rest.fake_google import Answer, serving
from tests.support.service_settings import CHAT, LEASED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

# What depends on the plan: each of these says in its description what `VllmService` passes.
DIFFERENT = {
    "CloudRunGpuServiceArgs": {"deletion_protection", "labels"},
    "IdentityGatewayArgs": {"deletion_protection", "labels"},
    "ContainerImageArgs": {"digest", "labels", "readers"},
    "WeightsBucketArgs": {"force_destroy", "labels", "readers", "writers"},
    "RuntimeIdentityArgs": {"description"},
    "VllmContainer": {"environment", "mounts"},
    "Probe": {"initial_delay_seconds"},
    "HealthCheckArgs": {"leases", "planned", "resources", "start"},
    "ShortBenchmarkArgs": {"template"},
    "TrafficSwitchArgs": {"template"},
    "GlobalAddressArgs": {"labels"},
    "DoorObservabilityArgs": {"labels"},
    "KeyDoorArgs": {"deletion_protection", "labels", "max_instances"},
    "TpuLeaseArgs": {"run_seconds"},
    "ServiceObservabilityArgs": {"labels"},
    "LeaseObservabilityArgs": {"labels"},
    "CollectorConfigurationArgs": {"labels"},
}
CHECKS = (HealthCheckArgs, ShortBenchmarkArgs)
_CODE = {each.__init__.__code__ for each in (ComponentArgs, *CHECKS)}


class Calls:
    """Arguments of components and checks as they are made: class -> the values of each."""

    def __init__(self) -> None:
        self.values: dict[type[Any], list[dict[str, Any]]] = {}

    def watch(self, program: Callable[[], None]) -> None:
        """Run a program on the listening engine, which has a thread of its own."""
        threading.settrace(self._note)  # it gets calls alone; a profiler gets each return and the calls of C as well
        try:
            declare(program)
        finally:
            threading.settrace(None)

    def _note(self, frame: FrameType, _event: str, _argument: Any) -> None:
        if frame.f_code not in _CODE:
            return
        values = dict(frame.f_locals)
        made = values.pop("self")
        self.values.setdefault(type(made), []).append(values.get("values", values))


def defaults_of(arguments: type[Any]) -> dict[str, Any]:
    """Argument -> its default; those that must be given have none."""
    if issubclass(arguments, ComponentArgs):
        fields = {name: field for name, field in arguments.model_fields.items() if not field.is_required()}
        return {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    return {f.name: f.default for f in dataclasses.fields(arguments) if f.default is not dataclasses.MISSING}


def all_arguments(base: type[Any] = ComponentArgs) -> Iterator[type[Any]]:
    """The classes of all components' arguments, without those that are a base of others."""
    for each in base.__subclasses__():
        if each.__module__.startswith("bezel_components."):  # other packages have components of their own
            yield from all_arguments(each) if each.__subclasses__() else (each,)


def different(calls: Calls, judge: Callable[[Iterator[bool]], bool] = any) -> dict[str, set[str]]:
    """Class -> its arguments that were passed with another value than the default, at any of its calls or at all."""
    named: dict[str, set[str]] = {}
    for arguments, made in calls.values.items():
        for name, default in defaults_of(arguments).items():
            if judge(name in values and not _is_equal(values[name], default) for values in made):
                named.setdefault(arguments.__name__, set()).add(name)
    return named


def _is_equal(value: Any, default: Any) -> bool:
    return not isinstance(value, pulumi.Output) and bool(value == default)


def program() -> None:
    """Services with the settings that they must have."""
    set_all_config({"gcp:project": "acme-llm"})
    VllmService("chat", **CHAT)
    LeasedVllmService("leased", **LEASED)


def program_of_all() -> None:
    """Services with settings that bring in further components, each of these settings in some."""
    set_all_config({"gcp:project": "acme-llm"})
    watched = {"alerts": True, "dashboard": True}
    costs = {"budget": 100, "billing_account": "000000-AAAAAA-BBBBBB", "currency": "USD"}
    scaled = {"schedule": [{"cron": f"0 {hour} * * *", "min_instances": least} for hour, least in ((8, 1), (18, 0))]}
    cost = {"max_idle_hourly_usd": 9.5}
    VllmService("gated", **CHAT, rollout="gated", observability=watched, scaling=scaled, cost=cost)
    for key in ("network", "subnetwork"):
        VllmService(f"in-a-{key}", **CHAT, vpc={key: pulumi.Output.from_input("shop")})
    settings = {"scaling": {"min_instances": 1}, "cost": cost, "observability": {**watched, **costs, "uptime": True}}
    VllmService("addressed", **CHAT, address={"domain": "llm.acme.example"})
    VllmService("kept", **CHAT, **settings)
    VllmService("by-key", **CHAT, access={"keys": True}, observability=watched)
    terms = {**LEASED["lease"], "duration": "7d", "hours": [{"start": "0 8 * * 1-5", "end": "0 18 * * 1-5"}]}
    LeasedVllmService("by-day", **{**LEASED, "lease": terms}, observability=watched)
    fallback = {"accelerator": "nvidia-rtx-pro-6000", "region": "us-central1"}
    LeasedVllmService("watched", **LEASED, observability={**watched, "metrics": True}, fallback=fallback)


@pytest.fixture
def _project_number(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Resource Manager with a project."""
    with serving() as server:
        server.routes[:] = [lambda _: Answer(json={"projectNumber": "12"})]
        monkeypatch.setenv("GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT", f"{server.url}/v1/")
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("_project_number")
def test_component_defaults_are_those_of_a_service() -> None:
    calls = Calls()
    calls.watch(program)
    further = Calls()
    further.watch(program_of_all)
    further.values = {each: made for each, made in further.values.items() if each not in calls.values}
    further.values.pop(CloudRunServiceArgs)  # the base of others, which a door passes on
    assert {*calls.values, *further.values} == {*all_arguments(), *CHECKS}
    assert different(calls) | different(further, all) == DIFFERENT
    by_name = {each.__name__: each for each in (*calls.values, *further.values)}
    untold = {
        (name, argument)
        for name, arguments in DIFFERENT.items()
        for argument in arguments
        if "VllmService`" not in describe_fields(by_name[name])[argument]
    }
    assert not untold


def test_differences_between_a_call_and_the_defaults_are_seen() -> None:
    calls = Calls()
    arguments = {"project": "p", "location": "l", "repository_id": "r", "image": "i", "tag": "t"}
    calls.values = {
        ContainerImageArgs: [{**arguments, "registry": "docker.io", "readers": ()}, {**arguments, "tag": "u"}]
    }
    assert different(calls) == {}
    calls.values[ContainerImageArgs].append({**arguments, "registry": "gcr.io"})
    assert different(calls) == {"ContainerImageArgs": {"registry"}}
