"""localcloud's own API below /localcloud/: faults, breakpoints, inventory, load balancers, reset.

A breakpoint stops one API call at its boundary, to rehearse a kill there. `PUT /localcloud/hold {"method": "POST",
"path": "/run/v2/*/services", "nth": 1, "when": "before" | "after"}` sets it. `GET ...?seconds=30` waits until a call
has stopped at it. `DELETE` lets the call continue; `DELETE ...?drop=1` drops it, as if its caller had died first.

`POST /localcloud/reset` deletes everything of the project, cuts off other requests, and returns the number of the
generation that follows; `GET` returns the number of the one that is ready. Address, key file and tokens stay valid.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from starlette.background import BackgroundTask
from starlette.responses import JSONResponse

from bezel_localcloud.access.permissions import PROJECT_NAME, ROLE
from bezel_localcloud.access.principals import POOL
from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import BUILT_IN_ACCOUNTS, BUILT_IN_BINDINGS, DEPLOYER, ENABLED_FROM_THE_START
from bezel_localcloud.faults.kinds import FaultError, Value, kind_of, parse_parameters, table
from bezel_localcloud.http.request_log import Hold
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.balancer.nearness import AREAS, is_place
from bezel_localcloud.services.certificate_manager import kinds as certificate_manager
from bezel_localcloud.services.compute.auto_mode import is_built_in
from bezel_localcloud.services.dns.api import ZONE
from bezel_localcloud.services.iam.pools_api import PROVIDER
from bezel_localcloud.services.load_balancing import kinds as load_balancing

if TYPE_CHECKING:
    import httpx

_HOLD, _FAULTS, _RESET = "/localcloud/hold", "/localcloud/faults", "/localcloud/reset"
_TRAFFIC = "/localcloud/balancers"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
# Kinds of the rows that users created; their lists in the inventory are named in the plural.
_CREATED = (
    *("service", "revision", "job", "execution", "task", "bucket", "object", "secret", "secretVersion", "repository"),
    *("network", "subnetwork", "firewall", "router", "queuedResource", "node", "instance"),
    *("notificationChannel", "budget", "alertPolicy", "dashboard", "uptimeCheckConfig", "schedulerJob", "logMetric"),
)
# Of load balancers and their names: kind of the rows -> label.
_BALANCERS = {
    **{kind.permissions: kind.permissions for kind in load_balancing.KINDS},
    **{kind.row_kind: kind.collection for kind in certificate_manager.KINDS},
    ZONE: "managedZones",
}
api = Api("", "localcloud")
_read = partial(api.route, needs="resourcemanager.projects.get", on=PROJECT_NAME)
_change = partial(api.route, needs="resourcemanager.projects.update", on=PROJECT_NAME)


@_read("GET", "/localcloud/resources")
def resources(call: Call) -> Json:
    """Names of all created resources by kind, to check a clean teardown; kinds without resources are left out.

    `enabledApis`, `accounts`, `projectRoles` and the kinds of networks hold only what a new project does not have;
    `identityPools` (with their providers) and `roles` those that are not deleted.
    """
    store = call.cloud.store
    created = {
        f"{kind}s".replace("ys", "ies"): [name for name, _ in store.rows(kind) if not is_built_in(name)]
        for kind in _CREATED
    }
    for kind, label in _BALANCERS.items():
        created[label] = [name for name, _ in store.rows(kind)]
    pools = [*store.rows(POOL), *store.rows(PROVIDER)]
    created["identityPools"] = [name for name, row in pools if row["state"] == "ACTIVE"]
    created["roles"] = [name for name, row in store.rows(ROLE) if not row.get("deleted")]
    created["accounts"] = [name for name, _ in store.rows("account") if name not in BUILT_IN_ACCOUNTS]
    enabled = [name for name, body in store.rows("api") if body["state"] == "ENABLED"]
    created["enabledApis"] = [name for name in enabled if name not in ENABLED_FROM_THE_START]
    bindings = (store.policy(PROJECT_NAME) or {}).get("bindings", [])
    grants = {(binding["role"], member) for binding in bindings for member in binding["members"]}
    created["projectRoles"] = [f"{role} {member}" for role, member in sorted(grants - BUILT_IN_BINDINGS)]
    return {kind: names for kind, names in created.items() if names}


@_read("PUT", _HOLD)
async def place(call: Call) -> Json:
    """Set a breakpoint in place of the previous one."""
    body = await call.json()
    method, path, nth, when = body.get("method"), body.get("path"), body.get("nth", 1), body.get("when")
    if not isinstance(method, str) or not isinstance(path, str) or not isinstance(nth, int) or nth < 1:
        raise invalid("A hold needs `method`, `path` and an `nth` of 1 or more.")
    if when not in {"before", "after"}:
        raise invalid(f"`when` is {when!r}: use before or after.")
    call.cloud.holds.place(Hold(method, path, nth, when))
    return {}


@_read("GET", _HOLD)
async def wait_at_breakpoint(call: Call) -> Json:
    """Whether a call has stopped at the breakpoint, after waiting for it for `seconds` at most."""
    hold = call.cloud.holds.hold
    if hold is None:
        raise invalid("There is no hold: place one first.")
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(hold.reached.wait(), call.number("seconds"))
    return {"reached": hold.reached.is_set()}


@_read("DELETE", _HOLD)
def release(call: Call) -> Json:
    """Let the call continue, or drop it."""
    call.cloud.holds.place(None, drop=bool(call.number("drop")))
    return {}


@_read("GET", _FAULTS)
def show(call: Call) -> Json:
    """The active faults (`faults`) and the kinds that can be added (`kinds`)."""
    return {"faults": [fault.as_json() for fault in call.cloud.faults.all()], "kinds": table()}


@_change("POST", _FAULTS)
async def add(call: Call) -> Json:
    """Add {"kind": ..., "parameters": {...}}; a fault that takes effect at once and is over returns `struck`."""
    body = await call.json()
    kind, parameters = str(body.get("kind", "")), body.get("parameters") or {}
    try:
        if kind_of(kind).place != "at once":
            return call.cloud.faults.add(kind, parameters).as_json()
        values = parse_parameters(kind, parameters)
    except FaultError as error:
        raise invalid(str(error)) from None
    struck = await _change_at_once(call, kind, values)
    if not struck:
        target = "machine is leased" if kind.startswith("lease-") else "service is deployed"
        raise ApiError("FAILED_PRECONDITION", f"No {target}, so {kind} has no effect: deploy a stack first.")
    return {"kind": kind, "parameters": dict(values), "struck": struck}


@_change("DELETE", _FAULTS)
def clear_all(call: Call) -> Json:
    """Clear all faults."""
    return {"cleared": call.cloud.faults.clear()}


@_change("DELETE", _FAULTS + "/{kind:id}")
def clear(call: Call) -> Json:
    """Clear the fault of one kind."""
    try:
        return {"cleared": call.cloud.faults.clear(kind_of(call.param("kind")).name)}
    except FaultError as error:
        raise ApiError("NOT_FOUND", str(error)) from None


@_read("GET", _TRAFFIC)
def balancers(call: Call) -> Json:
    """Where load balancers listen, the place of their clients, and the share of traffic that each region may get."""
    return call.cloud.balancers.description()


@_change("PUT", _TRAFFIC)
async def move_clients(call: Call) -> Json:
    """Take the clients of load balancers to be in {"place": ...}, a region or a part of the world."""
    place = str((await call.json()).get("place", ""))
    if not is_place(place):
        raise invalid(f"place is {place!r}: use a region, or one of {', '.join(AREAS)}.")
    call.cloud.balancers.move_clients(place)
    return call.cloud.balancers.description()


@_change("POST", _RESET)
def reset(call: Call) -> JSONResponse:
    """Delete everything of the project once this response is sent."""
    generation = call.cloud.generation
    return JSONResponse({"generation": generation.number + 1}, background=BackgroundTask(generation.reset.set))


@_read("GET", _RESET)
def ready_generation(call: Call) -> Json:
    """The number of the generation that is ready."""
    return {"generation": call.cloud.generation.ready_number}


async def _change_at_once(call: Call, kind: str, values: Mapping[str, Value]) -> list[str]:
    """Change or delete every service through the public API, or end every machine; return their names.

    Raises:
        ApiError: The API refused it of a service, in its words and with its status.
    """
    if kind.startswith("lease-"):
        return call.cloud.machines.end_all(lost=kind == "lease-preempted")
    token, _ = call.cloud.tokens.access_token(DEPLOYER, _SCOPE)
    import httpx  # late: only faults that take effect at once need it, and it takes 0.05 s of the daemon's start

    # Calls the application directly, past the layers that inject faults and log the wire.
    transport, headers = httpx.ASGITransport(call.request.app), {"Authorization": f"Bearer {token}"}
    names, struck = [name for name, _ in call.cloud.store.rows("service")], list[str]()
    async with httpx.AsyncClient(transport=transport, base_url="http://localcloud", headers=headers) as client:
        for name in names:
            try:
                if kind == "service-deleted":
                    (await client.delete(f"/run/v2/{name}")).raise_for_status()
                else:
                    service = (await client.get(f"/run/v2/{name}")).raise_for_status().json()
                    scaling = service["template"].get("scaling", {}) | {"maxInstanceCount": values["max_instances"]}
                    service["template"]["scaling"] = scaling
                    (await client.patch(f"/run/v2/{name}", json=service)).raise_for_status()
            except httpx.HTTPStatusError as error:
                raise _refusal(error.response, kind, values, name, struck) from None
            struck.append(name)
    return struck


def _refusal(
    response: "httpx.Response", kind: str, values: Mapping[str, Value], name: str, struck: Sequence[str]
) -> ApiError:
    """Why a fault could not take effect on a service: value, Cloud Run's words, what was done before, repair."""
    error = response.json()["error"]
    fault = " ".join((kind, *(f"{key}={value}" for key, value in values.items())))
    done = f"nothing but {', '.join(struck)} was changed" if struck else "nothing was changed"
    repair = f"Give a {' and '.join(values)} that it accepts." if values else "Mend that, then add the fault again."
    text = f"{fault}: Cloud Run refuses it of {name}, so {done}: {error['message'].rstrip('.')}. {repair}"
    return ApiError(error["status"], text, status=response.status_code)
