"""Compute v1 and beta: the project, its regions and zones, and operations. Both versions have the same handlers."""

import zlib
from functools import partial

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.core.regions import region_of_zone, regions, zones
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.compute.errors import not_found
from bezel_localcloud.services.compute.operations import operation_json, root, stored_name
from bezel_localcloud.services.compute.vpc_api import list_page, serves

api = Api("compute.googleapis.com", "Compute Engine API", legacy=True)
_WAIT_SECONDS = 120.0  # of the platform's time; source: the page on handling API responses, about `wait`
_LISTS = "maxResults pageToken returnPartialSuccess"
_serves = partial(serves, api)


@_serves("GET", "", "compute.projects.get")
def get_project(call: Call) -> Json:
    """The project by id or number."""
    link = f"{root(call)}/projects/{PROJECT}"
    return {"kind": "compute#project", "id": PROJECT_NUMBER, "name": PROJECT, "selfLink": link}


@_serves("GET", "/regions", "compute.regions.list", _LISTS)
def list_regions(call: Call) -> Json:
    """All regions."""
    items = [(name, _region(call, name)) for name in sorted(regions())]
    return list_page(call, "regionList", f"projects/{PROJECT}/regions", items)


@_serves("GET", "/regions/{region:id}", "compute.regions.get")
def get_region(call: Call) -> Json:
    """One region with its zones."""
    name = call.param("region")
    if name not in regions():
        raise not_found(f"projects/{PROJECT}/regions/{name}")
    return _region(call, name)


@_serves("GET", "/zones", "compute.zones.list", _LISTS)
def list_zones(call: Call) -> Json:
    """All zones."""
    names = sorted(zone for region in regions() for zone in zones(region))
    return list_page(call, "zoneList", f"projects/{PROJECT}/zones", [(name, _zone(call, name)) for name in names])


@_serves("GET", "/zones/{zone:id}", "compute.zones.get")
def get_zone(call: Call) -> Json:
    """One zone."""
    name = call.param("zone")
    if not region_of_zone(name):
        raise not_found(f"projects/{PROJECT}/zones/{name}")
    return _zone(call, name)


@_serves("GET", "/global/operations/{operation:id}", "compute.globalOperations.get")
@_serves("GET", "/regions/{region:id}/operations/{operation:id}", "compute.regionOperations.get")
@_serves("GET", "/zones/{zone:id}/operations/{operation:id}", "compute.zoneOperations.get")
def get_operation(call: Call) -> Json:
    """The current state of an operation."""
    call.cloud.machines.advance()
    return operation_json(call, _operation(call))


@_serves("POST", "/global/operations/{operation:id}/wait", "compute.globalOperations.get")
@_serves("POST", "/regions/{region:id}/operations/{operation:id}/wait", "compute.regionOperations.get")
@_serves("POST", "/zones/{zone:id}/operations/{operation:id}/wait", "compute.zoneOperations.get")
async def wait_operation(call: Call) -> Json:
    """Return an operation when it is done, or its state after two minutes of the platform's time."""
    name = _operation(call)
    operation_json(call, name)
    await call.cloud.operations.wait(name, call.cloud.pace.seconds(_WAIT_SECONDS))
    call.cloud.machines.advance()
    return operation_json(call, name)


def _operation(call: Call) -> str:
    parts = call.request.url.path.split("/projects/")[1].split("/")[1:]
    scope = "/".join(parts[: parts.index("operations")])
    return stored_name(f"projects/{PROJECT}/{scope}", call.param("operation"))


def _region(call: Call, name: str) -> Json:
    project_link = f"{root(call)}/projects/{PROJECT}"
    links = [f"{project_link}/zones/{zone}" for zone in zones(name)]
    return _place("region", name, f"{project_link}/regions/{name}") | {"zones": links}


def _zone(call: Call, name: str) -> Json:
    project_link = f"{root(call)}/projects/{PROJECT}"
    return _place("zone", name, f"{project_link}/zones/{name}") | {
        "region": f"{project_link}/regions/{region_of_zone(name)}"
    }


def _place(kind: str, name: str, link: str) -> Json:
    number = str(1000 + zlib.crc32(name.encode()) % 9000)
    return {"kind": f"compute#{kind}", "id": number, "name": name, "status": "UP", "selfLink": link}
