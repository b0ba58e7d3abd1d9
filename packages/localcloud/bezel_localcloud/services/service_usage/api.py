"""Service Usage v1: the enabled APIs of the project."""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bezel_localcloud.core.errors import ApiError, error_info, invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.routing.operations_api import serve_operations
from bezel_localcloud.routing.router import Api, Call

api = Api("serviceusage.googleapis.com", "Service Usage API")
_FULL_NAME = re.compile(rf"projects/({PROJECT}|{PROJECT_NUMBER})/services/[^/]+")
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
    name = _known_name(call)
    return _service(name, "ENABLED" if call.cloud.is_enabled(name) else "DISABLED")


@api.route("GET", _ROOT + ":batchGet", needs="serviceusage.services.get", query="names")
def batch_get(call: Call) -> Json:
    """Up to 30 services by their full names, enabled or not."""
    names = call.request.query_params.getlist("names")
    if not 1 <= len(names) <= 30:
        raise invalid("Between 1 and 30 services must be given.", ("names", f"{len(names)} given"))
    services = [name.rpartition("/")[2] for name in names]
    for name in names:
        if not _FULL_NAME.fullmatch(name):
            raise invalid(f"{name!r} is not a service of the project.", ("names", "has another parent"))
    _check_known(services)
    states = {name: "ENABLED" if call.cloud.is_enabled(name) else "DISABLED" for name in services}
    return {"services": [_service(name, state) for name, state in states.items()]}


@api.route("POST", _ROOT + "/{service:id}:enable", needs="serviceusage.services.enable")
def enable(call: Call) -> Json:
    """Enable one service."""
    name = _known_name(call)
    return _switch(call, [name], "ENABLED", "EnableServiceResponse", service=_service(name, "ENABLED"))


@api.route("POST", _ROOT + "/{service:id}:disable", needs="serviceusage.services.disable")
def disable(call: Call) -> Json:
    """Disable one service; its resources stay, its calls are refused."""
    name = _known_name(call)
    if not call.cloud.is_enabled(name):
        raise ApiError("FAILED_PRECONDITION", f"Service {name} is not enabled for consumer projects/{PROJECT_NUMBER}.")
    return _switch(call, [name], "DISABLED", "DisableServiceResponse", service=_service(name, "DISABLED"))


@api.route("POST", _ROOT + ":batchEnable", needs="serviceusage.services.enable")
def batch_enable(call: Call) -> Json:
    """Enable up to 20 services, all or none."""
    names = [str(name) for name in call.body.get("serviceIds") or []]
    if not 1 <= len(names) <= 20:
        raise invalid("Between 1 and 20 services must be given.", ("service_ids", f"{len(names)} given"))
    _check_known(names)
    services = [_service(name, "ENABLED") for name in names]
    return _switch(call, names, "ENABLED", "BatchEnableServicesResponse", services=services)


serve_operations(api, "/serviceusage/v1", "", "get list")
serve_operations(api, "/serviceusage/v1beta1", "", "get")  # where a provider polls without an endpoint of its own


def _switch(call: Call, names: list[str], state: str, kind: str, **response: Any) -> Json:
    with call.cloud.store.transaction():
        for name in names:
            call.cloud.store.put("api", name, {"state": state})
        metadata = {"@type": f"{_TYPE}.OperationMetadata", "resourceNames": [_name(name) for name in names]}
        return call.cloud.operations.begin_timed("", metadata, {"@type": f"{_TYPE}.{kind}"} | response, _SECONDS)


def _known_name(call: Call) -> str:
    name = call.param("service")
    _check_known([name])
    return name


def _check_known(names: Sequence[str]) -> None:
    """Refuse names of no public API, as Google does: it does not tell them from private ones."""
    if unknown := [name for name in names if name not in _titles()]:
        listed = ",".join(unknown)
        violation = {"type": "googleapis.com", "subject": f"?error_code=220002&services={quote(listed, safe=',')}"}
        info = {"domain": "serviceusage.googleapis.com", "metadata": {"services": listed}}
        details = [
            {"@type": "type.googleapis.com/google.rpc.PreconditionFailure", "violations": [violation]},
            error_info("SERVICE_CONFIG_NOT_FOUND_OR_PERMISSION_DENIED") | info,
        ]
        text = f"Not found or permission denied for service(s): {listed}."
        raise ApiError("PERMISSION_DENIED", text, details)


@cache
def _titles() -> dict[str, str]:
    titles: dict[str, str] = json.loads(
        (Path(__file__).parents[2] / "data" / "services.json").read_text(encoding="utf-8")
    )["titles"]
    return titles


def _name(service: str) -> str:
    return f"projects/{PROJECT_NUMBER}/services/{service}"


def _service(name: str, state: str) -> Json:
    return {
        "name": _name(name),
        "parent": f"projects/{PROJECT_NUMBER}",
        "config": {"name": name, "title": _titles().get(name, name)},
        "state": state,
    }
