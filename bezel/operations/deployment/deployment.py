"""A stack's deployment as its state records it: its services, its leases, its outputs. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bezel.diagnosis.passed import TOKENS
from bezel.engine.state.folder import STACK, mask_secrets
from bezel.leases.clock import unix
from bezel.operations.deployment.address import DeployedAddress, address_of
from bezel_base.errors import Problem, UserError

SERVICE_TYPE = "gcp:cloudrunv2/service:Service"
NODE_TYPE = "pulumi-python:dynamic/components:TpuNode"
REQUEST_TYPE = "pulumi-python:dynamic/components:TpuRequest"
NOT_GRANTED = "not granted"
"""Recorded state of a lease that no zone has granted, where a fallback serves; see the components' provider of it."""
DOOR_TYPE = "bezel:door:KeyDoor"
"""Component of a door for callers by key, whose service is none of those that serve."""
SERVED_TYPES = ("bezel:services:VllmService", "bezel:services:LeasedVllmService")
"""Components that serve a model; a stack file's stack has one, a program of one's own any number."""


@dataclass(frozen=True)
class DeployedService:
    """A Cloud Run service of a stack.

    Attributes:
        id: `projects/PROJECT/locations/REGION/services/NAME`.
        inputs: Its declaration; secrets are `[secret]`.
        uri: Its own URL, "" if it has none or that is not recorded.
    """

    id: str
    inputs: Mapping[str, Any]
    uri: str = ""

    @property
    def project(self) -> str:
        """Google Cloud project."""
        return self.id.split("/")[1]

    @property
    def location(self) -> str:
        """Region."""
        return self.id.split("/")[3]

    @property
    def name(self) -> str:
        """Name of the service."""
        return self.id.split("/")[5]

    @property
    def has_gpu(self) -> bool:
        """Whether it runs the model itself; otherwise it is the gateway in front of leased machines."""
        selector = (self.inputs.get("template") or {}).get("nodeSelector") or {}
        return bool(selector.get("accelerator"))


@dataclass(frozen=True)
class DeployedLease:
    """A leased machine of a stack, as of the last run.

    Attributes:
        name: Name of the lease.
        project: Google Cloud project.
        zones: Zones that may hold it.
        zone: Zone that granted it, "" before.
        back_end: `queued_resource` or `flex_start_vm`.
        state: State that the last run recorded, "" before the machine was awaited.
        active_at: Start of billing, unix seconds; None before.
        ends_at: End of its run duration, unix seconds; None without an end.
        hourly_usd: Zone -> price of an hour in USD, None if unknown.
        hours: Hours in which it is leased, each as start, end and zone; empty where only a deploy requests it.
    """

    name: str
    project: str
    zones: tuple[str, ...]
    zone: str = ""
    back_end: str = ""
    state: str = ""
    active_at: float | None = None
    ends_at: float | None = None
    hourly_usd: Mapping[str, float | None] = field(default_factory=dict)
    hours: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Deployment:
    """A stack as its backend records it.

    Attributes:
        stack: Name of the stack.
        outputs: Its outputs; secrets are `[secret]`.
        resources: The raw resources of the state.
        is_pending: Whether a run ended in the middle of an operation.
        changed_at: Time of the last run that wrote the state, RFC 3339; "" if it is not recorded.
        region: The only region that is meant, by `of_one_region`; "" for all.
    """

    stack: str
    outputs: Mapping[str, Any]
    resources: Sequence[Mapping[str, Any]]
    is_pending: bool = False
    changed_at: str = ""
    region: str = ""

    def of_one_region(self, region: str | None) -> "Deployment":
        """The same of one region alone: the named one, else the first, with its service's own URL.

        A stack of one region without an address of its own stays as it is.

        Raises:
            UserError: No service of the stack is in the named region.
        """
        regions = list(self.urls)
        if region and region not in regions:
            consequence = "the stack has no service there, so nothing can be read of it."
            named = f"name one of {', '.join(regions)}, or leave it out." if regions else "leave it out."
            raise UserError(Problem("--region", region, consequence, named))
        if not regions or (len(regions) == 1 and self.address is None):
            return self
        return replace(self, region=region or regions[0])

    @property
    def served_models(self) -> dict[str, Mapping[str, Any]]:
        """Name of each component that serves a model -> its outputs, once it has an address."""
        entries = [entry for entry in self.resources if entry.get("type") in SERVED_TYPES and not entry.get("delete")]
        by_name = {str(entry["urn"]).rpartition("::")[2]: entry.get("outputs") or {} for entry in entries}
        return {name: mask_secrets(outputs) for name, outputs in by_name.items() if outputs.get("url")}

    @property
    def server_outputs(self) -> Mapping[str, Any]:
        """`url`, `model` and more of the server: of the only component that serves one, else of the stack."""
        served = tuple(self.served_models.values())
        return served[0] if len(served) == 1 else self.outputs

    @property
    def url(self) -> str:
        """Address of the endpoint, "" if there is none, or several that the stack's outputs do not choose from.

        Of one region alone, the URL of its service.
        """
        return self.urls[self.region] if self.region else str(self.server_outputs.get("url") or "")

    @property
    def urls(self) -> Mapping[str, str]:
        """Region -> own URL of the service that callers reach there, the first region first; "" if not recorded."""
        recorded = self.server_outputs.get("urls")
        by_output = recorded if isinstance(recorded, Mapping) else {}
        only = "" if self.address or len(self.region_services) > 1 else str(self.server_outputs.get("url") or "")
        return {
            service.location: str(service.uri or by_output.get(service.location) or only).rstrip("/")
            for service in self.region_services
        }

    @property
    def region_notes(self) -> tuple[str, ...]:
        """A note on what is left out where one of several regions is meant; () otherwise."""
        others = ", ".join(region for region in self.urls if self.region not in ("", region))
        return (f"of {self.region} alone; --region reads another region: {others}",) if others else ()

    @property
    def address(self) -> DeployedAddress | None:
        """The address with a name of its own in front of the services; None without one."""
        return address_of(self.server_outputs.get("address"))

    @property
    def model(self) -> str:
        """Name under which the model is served."""
        return str(self.server_outputs.get("model") or "")

    @property
    def is_simulated(self) -> bool:
        """Whether the last smoke check met a simulated server."""
        return self.server_outputs.get("simulated") is True

    @property
    def pooled_at(self) -> str | None:
        """The endpoint of a model that vLLM pools with, "" for a plugin's; None for a model that generates."""
        checks = (entry.get("outputs") or {} for type_ in TOKENS for entry in self._of(type_))
        return next((str(check["pooled_at"]) for check in checks if check.get("pooled_at") is not None), None)

    @property
    def keeps_cache(self) -> bool:
        """Whether its server has a KV cache, by the plan of the last deploy; True where that is not recorded."""
        plan = self.outputs.get("plan") or self.server_outputs.get("planned_memory")
        fit = plan.get("fit") if isinstance(plan, Mapping) else None
        return not (isinstance(fit, Mapping) and "unused_gib" in fit)

    @property
    def services(self) -> tuple[DeployedService, ...]:
        """Its Cloud Run services: the one that callers reach first, those of one name in the order of the regions.

        Callers reach the service with a GPU, or the gateway in front of leases. The door for callers by key is none.
        """
        listed = self.server_outputs.get("regions")
        order = [str(region) for region in listed] if isinstance(listed, list) else []
        deployed = [_service(entry) for entry in self._of(SERVICE_TYPE) if not _is_of_door(entry)]

        def place(service: DeployedService) -> tuple[bool, str, int]:
            # One that is left in the state after its region was taken out of the stack comes last.
            is_behind = service.has_gpu == self.is_leased
            return is_behind, service.name, [*order, service.location].index(service.location)

        return tuple(sorted(deployed, key=place))

    @property
    def region_services(self) -> tuple[DeployedService, ...]:
        """The service that callers reach in each region, the first region first: that with a GPU, else the gateway."""
        services = self.services
        return tuple(each for each in services if (each.name, each.has_gpu) == (services[0].name, services[0].has_gpu))

    @property
    def service(self) -> DeployedService | None:
        """The service that callers reach, of the region that is meant: by default the first."""
        return next((each for each in self.region_services if self.region in ("", each.location)), None)

    @property
    def door(self) -> DeployedService | None:
        """The door for callers by key; None without one."""
        return next((_service(entry) for entry in self._of(SERVICE_TYPE) if _is_of_door(entry)), None)

    @property
    def is_leased(self) -> bool:
        """Whether leased machines serve."""
        return any(True for type_ in (REQUEST_TYPE, NODE_TYPE) for _ in self._of(type_))

    @property
    def fallback(self) -> DeployedService | None:
        """The service behind the gateway that serves while no lease does; None without one."""
        return next((service for service in self.services if service.has_gpu), None) if self.is_leased else None

    @property
    def leases(self) -> tuple[DeployedLease, ...]:
        """Its leases, by name."""
        requests = {str(entry["outputs"]["name"]): entry["outputs"] for entry in self._of(REQUEST_TYPE)}
        nodes = {str(entry["outputs"]["name"]): entry["outputs"] for entry in self._of(NODE_TYPE)}
        return tuple(_lease(requests.get(name, {}) | nodes.get(name, {})) for name in sorted({*requests, *nodes}))

    def _of(self, type_: str) -> Iterator[Mapping[str, Any]]:
        for entry in self.resources:
            if entry.get("type") == type_ and entry.get("id") and not entry.get("delete"):
                yield entry


def deployment_of(stack: str, state: Mapping[str, Any]) -> Deployment:
    """The deployment that a state records.

    Args:
        stack: Name of the stack.
        state: `read_state`'s.
    """
    resources = state.get("resources") or ()
    root: Mapping[str, Any] = next((entry for entry in resources if entry.get("type") == STACK), {})
    return Deployment(
        stack,
        {name: mask_secrets(value) for name, value in (root.get("outputs") or {}).items()},
        resources,
        bool(state.get("pending_operations")),
        str((state.get("manifest") or {}).get("time") or ""),
    )


def _service(entry: Mapping[str, Any]) -> DeployedService:
    return DeployedService(
        id=str(entry["id"]),
        inputs=mask_secrets(entry.get("inputs") or {}),
        uri=str((entry.get("outputs") or {}).get("uri") or ""),
    )


def _is_of_door(entry: Mapping[str, Any]) -> bool:
    return f"{DOOR_TYPE}${SERVICE_TYPE}::" in str(entry.get("urn"))


def _lease(values: Mapping[str, Any]) -> DeployedLease:
    state = str(values.get("state") or "")
    zones = tuple(str(zone["zone"] if isinstance(zone, Mapping) else zone) for zone in values.get("zones") or ())
    return DeployedLease(
        name=str(values["name"]),
        project=str(values.get("project") or ""),
        zones=tuple(dict.fromkeys((*zones, *map(str, values.get("former_zones") or ())))),
        zone=str(values.get("zone") or ""),
        back_end=str(values.get("back_end") or ""),
        state=state if "active_at" in values or state == NOT_GRANTED else "",
        active_at=unix(values.get("active_at")),
        ends_at=unix(values.get("ends_at")),
        hourly_usd=dict(values.get("hourly_usd") or {}),
        hours=tuple(tuple(map(str, window)) for window in values.get("hours") or ()),
    )
