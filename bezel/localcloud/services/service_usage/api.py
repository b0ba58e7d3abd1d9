"""Service Usage v1: the enabled APIs of the project."""

import re
from typing import Any

from bezel.localcloud.core.errors import ApiError, invalid
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.core.paths import PROJECT_NUMBER
from bezel.localcloud.routing.router import Api, Call

api = Api("serviceusage.googleapis.com", "Service Usage API")
_NAME = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.googleapis\.com")
_SECONDS = 6.0  # of the platform's time, to enable or disable
_TYPE = "type.googleapis.com/google.api.serviceusage.v1"
_ROOT = "/serviceusage/v1/projects/{project:id}/services"


@api.route("GET", _ROOT, needs="serviceusage.services.list", query="filter pageSize pageToken")
def list_services(call: Call) -> Json:
    """Services, or those of a state; services that were never enabled are not listed.

    Raises:
        ApiError: INVALID_ARGUMENT for another filter than the two that Google has.
    """
    state_filter = call.query("filter")
    if state_filter not in {"", "state:ENABLED", "state:DISABLED"}:
        text = f"Invalid filter {state_filter!r}: allowed are state:ENABLED and state:DISABLED."
        raise invalid(text, ("filter", state_filter))
    states = {name: body["state"] for name, body in call.cloud.store.rows("api")}
    items = [(name, _service(name, state)) for name, state in states.items() if state_filter in {"", f"state:{state}"}]
    return call.page(items, "services", default=50, max_size=200)


@api.route("GET", _ROOT + "/{service:id}", needs="serviceusage.services.get")
def get_service(call: Call) -> Json:
    """One service, enabled or not."""
    name = _valid_name(call.param("service"))
    return _service(name, "ENABLED" if call.cloud.is_enabled(name) else "DISABLED")


@api.route("POST", _ROOT + "/{service:id}:enable", needs="serviceusage.services.enable")
def enable(call: Call) -> Json:
    """Enable one service."""
    name = _valid_name(call.param("service"))
    return _switch(call, [name], "ENABLED", "EnableServiceResponse", service=_service(name, "ENABLED"))


@api.route("POST", _ROOT + "/{service:id}:disable", needs="serviceusage.services.disable")
def disable(call: Call) -> Json:
    """Disable one service; its resources stay, its calls are refused."""
    name = _valid_name(call.param("service"))
    if not call.cloud.is_enabled(name):
        raise ApiError("FAILED_PRECONDITION", f"Service {name} is not enabled for consumer projects/{PROJECT_NUMBER}.")
    return _switch(call, [name], "DISABLED", "DisableServiceResponse", service=_service(name, "DISABLED"))


@api.route("POST", _ROOT + ":batchEnable", needs="serviceusage.services.enable")
def batch_enable(call: Call) -> Json:
    """Enable up to 20 services, all or none."""
    names = [_valid_name(name) for name in call.body.get("serviceIds") or []]
    if not 1 <= len(names) <= 20:
        raise invalid("Between 1 and 20 services must be given.", ("service_ids", f"{len(names)} given"))
    services = [_service(name, "ENABLED") for name in names]
    return _switch(call, names, "ENABLED", "BatchEnableServicesResponse", services=services)


@api.route("GET", "/serviceusage/v1/operations/{operation:id}")
@api.route("GET", "/serviceusage/v1beta1/operations/{operation:id}")
def get_operation(call: Call) -> Json:
    """An operation; the real provider polls under v1beta1."""
    return call.cloud.operations.get(call.name("operations/{operation}"))


def _switch(call: Call, names: list[str], state: str, kind: str, **response: Any) -> Json:
    with call.cloud.store.transaction():
        for name in names:
            call.cloud.store.put("api", name, {"state": state})
        metadata = {"@type": f"{_TYPE}.OperationMetadata", "resourceNames": [_name(name) for name in names]}
        return call.cloud.operations.timed("", metadata, {"@type": f"{_TYPE}.{kind}"} | response, _SECONDS)


def _valid_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ApiError("PERMISSION_DENIED", f"Not found or permission denied for service(s): {name}.")
    return name


def _name(service: str) -> str:
    return f"projects/{PROJECT_NUMBER}/services/{service}"


def _service(name: str, state: str) -> Json:
    return {
        "name": _name(name),
        "parent": f"projects/{PROJECT_NUMBER}",
        "config": {"name": name, "title": name},
        "state": state,
    }
