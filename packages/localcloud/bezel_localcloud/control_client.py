"""Requests of localcloud's own API below /localcloud/, as any client may send them: faults, balancers, the reset.

Leaves out what they do (`bezel_localcloud.control_api`).
"""

import time
from typing import TYPE_CHECKING, Any

from bezel_base.errors import UserError
from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint

if TYPE_CHECKING:
    import httpx

_FAULTS, _RESET, _BALANCERS = "/localcloud/faults", "/localcloud/reset", "/localcloud/balancers"
_SECONDS = 30.0
_RESET_SECONDS = 60.0
_PAUSE_SECONDS = 0.01


class ControlRequestError(UserError):
    """A request that localcloud refused, or did not respond to."""


class CutOffError(ControlRequestError):
    """A request whose connection ended without a response."""


def active_faults(endpoint: Endpoint) -> list[dict[str, Any]]:
    """The active faults: `kind`, `parameters`, and `met`, how often it matched, where it counts.

    Raises:
        ControlRequestError: localcloud does not respond.
    """
    return list(_request(endpoint, "GET", _FAULTS)["faults"])


def add_fault(endpoint: Endpoint, kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Add a fault in place of an active one of its kind; one that acts at once returns whom it `struck`.

    Raises:
        ControlRequestError: There is no such kind, a parameter is wrong, or localcloud does not respond.
    """
    return _request(endpoint, "POST", _FAULTS, json={"kind": kind, "parameters": parameters})


def clear_faults(endpoint: Endpoint, kind: str = "") -> list[str]:
    """Clear one kind of fault, or all with ""; return the kinds that were active.

    Raises:
        ControlRequestError: That fault is not active, or localcloud does not respond.
    """
    return list(_request(endpoint, "DELETE", f"{_FAULTS}/{kind}" if kind else _FAULTS)["cleared"])


def balancers(endpoint: Endpoint) -> dict[str, Any]:
    """Where load balancers listen, the place of their clients, and the share of traffic that each region may get.

    Raises:
        ControlRequestError: localcloud does not respond.
    """
    return _request(endpoint, "GET", _BALANCERS)


def move_clients(endpoint: Endpoint, place: str) -> dict[str, Any]:
    """Take the clients of load balancers to be in a region or a part of the world; return what `balancers` shows then.

    Raises:
        ControlRequestError: There is no such place, or localcloud does not respond.
    """
    return _request(endpoint, "PUT", _BALANCERS, json={"place": place})


def reset(endpoint: Endpoint) -> None:
    """Delete everything of the project and return once localcloud serves a new one, at the same address.

    Raises:
        ControlRequestError: localcloud refuses it, or does not respond within a minute.
    """
    import httpx

    deadline = time.monotonic() + _RESET_SECONDS
    wanted = _begin_reset(endpoint, deadline)
    while True:
        # Between two generations a connection waits to be accepted; one that the old generation took is cut off.
        try:
            if _send(endpoint, "GET", _RESET).raise_for_status().json()["generation"] >= wanted:
                return
        except httpx.HTTPError as error:
            if time.monotonic() > deadline:
                raise _no_response_error(endpoint, error) from None
        if time.monotonic() > deadline:
            raise ControlRequestError(f"localcloud at {endpoint.base} was not reset within {_RESET_SECONDS:g} s.")
        time.sleep(_PAUSE_SECONDS)


def _begin_reset(endpoint: Endpoint, deadline: float) -> int:
    """Ask for a reset; return the generation that follows it. Another reset may cut the connection off: ask again."""
    while True:
        try:
            return int(_request(endpoint, "POST", _RESET)["generation"])
        except CutOffError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)


def _request(endpoint: Endpoint, method: str, path: str, *, json: object = None) -> dict[str, Any]:
    import httpx

    try:
        response = _send(endpoint, method, path, json)
        body: dict[str, Any] = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise _no_response_error(endpoint, error) from None
    if response.is_error:
        what = "fault" if path.startswith(_FAULTS) else path.rsplit("/", 1)[-1]
        raise ControlRequestError(f"{what}: {body.get('error', {}).get('message', response.status_code)}")
    return body


def _send(endpoint: Endpoint, method: str, path: str, json: object = None) -> "httpx.Response":
    import httpx

    headers = {"Authorization": f"Bearer {control.own_token(endpoint)}"}
    with httpx.Client(base_url=endpoint.base, timeout=_SECONDS, trust_env=False, verify=NO_TLS) as client:
        return client.request(method, path, headers=headers, json=json)


def _no_response_error(endpoint: Endpoint, error: Exception) -> ControlRequestError:
    import httpx

    kind = CutOffError if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError) else ControlRequestError
    return kind(f"localcloud at {endpoint.base} does not respond: {type(error).__name__}.")
