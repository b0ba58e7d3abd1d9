"""Components and checks of the package: one row each. A further one is a row here and a new `schema.json`.

The classes are imported when a row is used: the modules of the Google provider's SDK take longer to load than the whole
plugin.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.dynamic import ResourceProvider

PACKAGE = "bezel"
VERSION = "0.1.0"


@dataclass(frozen=True)
class Keyword:
    """A keyword of a component beside its settings.

    Attributes:
        description: What it is.
        annotation: Its type: a text, or a list of texts.
    """

    description: str
    annotation: Any = str

    def problem(self, value: Any) -> tuple[str, str] | None:
        """What is wrong with a value, and what to write instead; None where nothing is."""
        if self.annotation is str:
            return None if isinstance(value, str) else ("expected a text", "write a text")
        # A refused part is None, and has a problem of its own.
        is_list = isinstance(value, list) and all(each is None or isinstance(each, str) for each in value)
        return None if is_list else ("expected a list of texts", "write a list, of one text too")


@dataclass(frozen=True)
class Component:
    """A component that programs of every language can use.

    Attributes:
        token: Its type.
        module: Where its class is.
        name: The class, called with the name, the arguments and the options.
        outputs: Attribute of the class -> type in the schema. Each always has a value.
        settings: `MODULE:NAME` of the TypedDict of its settings, where it takes these by keyword and no model.
        keywords: Its further keywords, which may be left out.
    """

    token: str
    module: str
    name: str
    outputs: Mapping[str, str]
    settings: str = ""
    keywords: Mapping[str, "Keyword"] = field(default_factory=dict)

    def resource(self) -> type[pulumi.ComponentResource]:
        """The component's class."""
        found: type[pulumi.ComponentResource] = getattr(importlib.import_module(self.module), self.name)
        return found

    def arguments(self) -> type[Any]:
        """The class of its arguments: a pydantic model, or the TypedDict of its settings."""
        module, _, name = (self.settings or f"{self.module}:{self.name}Args").partition(":")
        found: type[Any] = getattr(importlib.import_module(module), name)
        return found


@dataclass(frozen=True)
class Check:
    """A check, which the package runs itself.

    Attributes:
        token: Its type.
        module: Where its class is.
        name: The class, whose docstring describes the outputs.
        outputs: Output -> type in the schema.
        provider: Module of the provider's class, if it is another one.
        hidden: Arguments that only a component of the package gives: they are not in the schema.
    """

    token: str
    module: str
    name: str
    outputs: Mapping[str, str]
    provider: str = ""
    hidden: tuple[str, ...] = ()

    def resource(self) -> type[pulumi.CustomResource]:
        """The class of the resource."""
        found: type[pulumi.CustomResource] = getattr(importlib.import_module(self.module), self.name)
        return found

    def arguments(self) -> type[Any]:
        """The class of its arguments, a dataclass or a pydantic model."""
        found: type[Any] = getattr(importlib.import_module(self.module), f"{self.name}Args")
        return found

    def make_provider(self) -> ResourceProvider:
        """What checks, compares, makes and deletes it; holds no data."""
        module = importlib.import_module(self.provider or self.module)
        made: ResourceProvider = getattr(module, f"{self.name}Provider")()
        return made


_SERVICE = {"url": "string", "revision": "string", "created_revision": "string", "resource_name": "string"}
_ROWS = (
    Component(
        "bezel:address:GlobalAddress",
        "bezel_components.global_address",
        "GlobalAddress",
        {"url": "string", "address": "string", "records": "anys", "certificate": "string"},
    ),
    Component("bezel:door:KeyDoor", "bezel_components.door.key_door", "KeyDoor", _SERVICE),
    Component(
        "bezel:cloudrun:CloudRunGpuService",
        "bezel_components.cloud_run_gpu_service",
        "CloudRunGpuService",
        {"newest_url": "string", **_SERVICE},
    ),
    Component("bezel:gateway:IdentityGateway", "bezel_components.identity_gateway", "IdentityGateway", _SERVICE),
    Component(
        "bezel:identity:RuntimeIdentity",
        "bezel_components.runtime_identity",
        "RuntimeIdentity",
        {"email": "string", "member": "string"},
    ),
    Component("bezel:project:EnabledApis", "bezel_components.enabled_apis", "EnabledApis", {"services": "strings"}),
    Component(
        "bezel:registry:ContainerImage",
        "bezel_components.container_image",
        "ContainerImage",
        {"digest": "string", "reference": "string"},
    ),
    Component(
        "bezel:services:VllmService",
        "bezel_services.vllm_service",
        "VllmService",
        {
            "url": "string",
            "revision": "string",
            "image": "string",
            "model": "string",
            "arguments": "strings",
            "verdict": "any",
            "figures": "any",
            "simulated": "boolean",
            "regions": "strings",
            "urls": "any",
            "address": "any",
            "door": "string",
        },
        settings="bezel_services.settings.types:ServiceSettings",
        keywords={
            "project": Keyword(
                "Google Cloud project; by default that of the provider's configuration (`gcp:project`)."
            ),
            "cloud_name": Keyword(
                "Base of the names in Google Cloud; by default the component's name and the stack's."
            ),
            "without": Keyword(
                "Options of the server whose defaults are left out, without dashes, e.g. `reasoning-parser`.", list[str]
            ),
        },
    ),
    Component(
        "bezel:storage:WeightsBucket",
        "bezel_components.weights_bucket",
        "WeightsBucket",
        {"bucket": "string", "url": "string"},
    ),
)
_CHECKS = (
    Check(
        "bezel:components:ModelFiles",
        "bezel_components.model_files",
        "ModelFiles",
        {"files": "number", "total_bytes": "number"},
        provider="bezel_components.providers.model_files",
    ),
    Check(
        "bezel:components:ScheduledMinimum",
        "bezel_components.scaling_schedule",
        "ScheduledMinimum",
        {"minimum": "number"},
        provider="bezel_components.providers.scheduled_minimum",
    ),
    Check(
        "bezel:components:ServiceDrain",
        "bezel_components.global_address",
        "ServiceDrain",
        {},
        provider="bezel_components.providers.service_drain",
    ),
    Check(
        "bezel:components:TrafficSwitch",
        "bezel_components.traffic_switch",
        "TrafficSwitch",
        {"serving": "numbers"},
        provider="bezel_components.providers.traffic_switch",
    ),
    Check(
        "bezel:smoke:HealthCheck",
        "bezel_smoke.health",
        "HealthCheck",
        {"verdict": "any", "passed": "anys"},
        hidden=("resources", "leases", "start"),
    ),
    Check("bezel:smoke:DoorCheck", "bezel_smoke.door", "DoorCheck", {"verdict": "any"}),
    Check("bezel:smoke:ShortBenchmark", "bezel_smoke.benchmark", "ShortBenchmark", {"figures": "any"}),
    Check("bezel:smoke:AddressCheck", "bezel_smoke.address", "AddressCheck", {"verdict": "any"}),
)
COMPONENTS: Mapping[str, Component] = {row.token: row for row in _ROWS}
CHECKS: Mapping[str, Check] = {row.token: row for row in _CHECKS}
