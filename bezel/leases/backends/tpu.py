"""TPU back end: queued resources over REST v2alpha1, the only version with provisioning models and run durations.

`GOOGLE_TPU_V2ALPHA1_CUSTOM_ENDPOINT` overrides the address (a name of Bezel's: the Google provider's own
`GOOGLE_TPU_V2_CUSTOM_ENDPOINT` belongs to whichever version that provider uses). Source: discovery document of tpu
v2alpha1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bezel.leases.backends.interface import NOT_FOUND, BackEnd, no_such_zone
from bezel.leases.clock import unix
from bezel.leases.state.ending import STOPPED_NODES
from bezel.leases.state.observation import NAMESPACE, Observation, State
from bezel.rest import ApiError, endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KIND = "queued_resource"
_STATES = {
    "CREATING": State.WAITING,
    "ACCEPTED": State.WAITING,
    "WAITING_FOR_RESOURCES": State.WAITING,
    "PROVISIONING": State.PROVISIONING,
    "ACTIVE": State.ACTIVE,
    "SUSPENDING": State.ENDING,
    "SUSPENDED": State.ENDED,
    "FAILED": State.FAILED,
    "DELETING": State.DELETING,
}
# Final states of a node; its queued resource follows a while later.
_OVER = frozenset({"PREEMPTED", "TERMINATED"})


class TpuBackEnd(BackEnd):
    """Leases of one project from the TPU API."""

    def request(self, zone: str, name: str, body: Mapping[str, Any], request_id: str) -> str:
        """POST queuedResources; its operation ends when the request is stored, not when capacity is granted."""
        params = {"queuedResourceId": name, "requestId": request_id}
        url = f"{self._parent(zone)}/queuedResources"
        return str(self._client.post(url, json=dict(body), params=params, idempotent=True).get("name") or "")

    def operation_result(self, zone: str, operation: str) -> tuple[bool, str]:
        """GET the operation."""
        del zone  # the operation's name contains it
        answer = self._client.get(f"{endpoint('TPU_V2ALPHA1')}{operation}")
        error = answer.get("error") or {}
        return bool(answer.get("done")), f"{error.get('message') or error}" if error else ""

    def observe(self, zone: str, name: str) -> Observation:
        """GET the queued resource and its node; a node that outlived its queued resource is observed too."""
        resource: dict[str, Any] | None = None
        try:
            resource = self._client.get(f"{self._parent(zone)}/queuedResources/{name}")
        except ApiError as error:
            if no_such_zone(error):  # may be a 404 as well
                return Observation(zone, name, State.REFUSED, reason=error.message, kind=KIND)
            if error.status != NOT_FOUND:
                raise
        observation = self._read(zone, resource) if resource else Observation(zone, name, State.ABSENT, kind=KIND)
        if observation.state not in {State.ABSENT, State.ACTIVE}:
            return observation
        node = self._call("GET", f"{self._parent(zone)}/nodes/{name}")
        if node is None:
            return observation
        return _on_node(observation, node) if resource else _lone_node(zone, node)

    def delete(self, zone: str, name: str) -> None:
        """DELETE by force, nodes included; a node that outlived its queued resource is deleted separately."""
        url = f"{self._parent(zone)}/queuedResources/{name}"
        if self._call("DELETE", url, params={"force": "true"}) is None:
            self._call("DELETE", f"{self._parent(zone)}/nodes/{name}")

    def guest_attributes(self, zone: str, name: str) -> Sequence[Mapping[str, Any]]:
        """POST getGuestAttributes of the node; a single-host node has one worker."""
        url, body = f"{self._parent(zone)}/nodes/{name}:getGuestAttributes", {"queryPath": f"{NAMESPACE}/"}
        answer = self._call("POST", url, json=body, idempotent=True) or {}
        workers = answer.get("guestAttributes") or []
        return [entry for worker in workers for entry in (worker.get("queryValue") or {}).get("items") or []]

    def attributes(self, zone: str, name: str) -> Mapping[str, str]:
        """GET the node."""
        return (self._call("GET", f"{self._parent(zone)}/nodes/{name}") or {}).get("metadata") or {}

    def set_attribute(self, zone: str, name: str, key: str, value: str) -> str:
        """PATCH the node's metadata: all of it, as last read, since the API changes it as a whole."""
        body = {"metadata": {**self.attributes(zone, name), key: value}}
        url, params = f"{self._parent(zone)}/nodes/{name}", {"updateMask": "metadata"}
        return str(self._client.request("PATCH", url, json=body, params=params, idempotent=True).get("name") or "")

    def serial_output(self, zone: str, name: str) -> str:
        """The API has no console output."""
        del zone, name
        return ""

    def list(self, zone: str) -> list[Observation]:
        """GET the zone's queued resources, and the nodes that belong to none."""
        resources = list(self._client.pages(f"{self._parent(zone)}/queuedResources", "queuedResources"))
        nodes = {_short(node["name"]): node for node in self._client.pages(f"{self._parent(zone)}/nodes", "nodes")}
        requests = {_short(resource["name"]): self._read(zone, resource) for resource in resources}
        leases = [_on_node(lease, nodes[name]) if name in nodes else lease for name, lease in requests.items()]
        return leases + [_lone_node(zone, nodes[name]) for name in sorted(nodes.keys() - requests.keys())]

    def has_hardware(self, zone: str, kind: str) -> bool:
        """GET the zone's accelerator types."""
        try:
            types = self._client.pages(f"{self._parent(zone)}/acceleratorTypes", "acceleratorTypes")
            return any(accelerator.get("type") == kind for accelerator in types)
        except ApiError as error:
            if error.status == NOT_FOUND or no_such_zone(error):
                return False
            raise

    def _parent(self, zone: str) -> str:
        return f"{endpoint('TPU_V2ALPHA1')}projects/{self._project}/locations/{zone}"

    def _read(self, zone: str, resource: Mapping[str, Any]) -> Observation:
        state = resource.get("state") or {}
        word = str(state.get("state") or "CREATING")
        node = ((resource.get("tpu") or {}).get("nodeSpec") or [{}])[0].get("node") or {}
        created = str(resource.get("createTime") or "")
        error = (state.get("failedData") or {}).get("error") or {}
        return Observation(
            zone,
            _short(resource["name"]),
            _STATES.get(word, State.WAITING),
            word,
            reason=str(error.get("message") or ""),
            labels=node.get("labels") or {},
            id=f"{resource['name']}@{created}",
            created_at=unix(created),
            hardware=_hardware(node),
            run_seconds=_seconds((resource.get("runDuration") or {}).get("maxRunDuration")),
            kind=KIND,
            provisioning_model=str(resource.get("provisioningModel") or ""),
        )


def _on_node(request: Observation, node: Mapping[str, Any]) -> Observation:
    """A request's observation, completed by its node."""
    state = str(node.get("state") or "")
    active_at = unix(node.get("createTime"))
    end = unix((node.get("schedulingConfig") or {}).get("terminationTimestamp"))
    if request.run_seconds is not None:
        # A node is created a while before it is ready; its run duration counts from when it is ready.
        active_at = end - request.run_seconds if end is not None else active_at
        end = active_at + request.run_seconds if end is None and active_at is not None else end
    endpoints = node.get("networkEndpoints") or [{}]
    return replace(
        request,
        state=State.ENDED if request.state is State.ACTIVE and state in _OVER else request.state,
        active_at=active_at if request.state is State.ACTIVE else None,
        # What has stopped has no time left, whatever its schedule said.
        ends_at=end if request.state is State.ACTIVE and state not in STOPPED_NODES else None,
        node_state=state,
        health=str(node.get("health") or ""),
        address=str(endpoints[0].get("ipAddress") or ""),
    )


def _lone_node(zone: str, node: Mapping[str, Any]) -> Observation:
    """A node without a request: it is no longer leased, and still runs."""
    state = str(node.get("state") or "")
    return Observation(
        zone,
        _short(node["name"]),
        State.DELETING if state == "DELETING" else State.ENDED,
        f"node {state} without a request",
        labels=node.get("labels") or {},
        id=f"{node['name']}@{node.get('createTime', '')}",
        created_at=unix(node.get("createTime")),
        node_state=state,
        hardware=_hardware(node),
        kind="node",
    )


def _hardware(node: Mapping[str, Any]) -> str:
    config = node.get("acceleratorConfig") or {}
    return str(node.get("acceleratorType") or f"{config.get('type', '')} {config.get('topology', '')}".strip())


def _seconds(duration: object) -> float | None:
    """Seconds of a google-duration, e.g. "14400s"."""
    return float(duration[:-1]) if isinstance(duration, str) and duration.endswith("s") else None


def _short(name: object) -> str:
    return str(name).rpartition("/")[2]
