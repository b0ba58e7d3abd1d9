"""Compute Engine back end: machines as leases, over REST v1, with TPUs or GPUs.

A flex-start machine that waits for capacity is PENDING, and Google deletes it when its wait is over; only its insert
operation has the reason. Google also deletes it when its run duration ends. Source: discovery document of compute v1,
which has `params.requestValidForDuration` (revision 20261106), and Compute's pages on flex-start VMs and instance
lifecycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.leases.backends.interface import NOT_FOUND, BackEnd, no_such_zone
from bezel.leases.clock import unix
from bezel.leases.names import LEASE
from bezel.leases.state.observation import NAMESPACE, Observation, State
from bezel.rest import ApiError, endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KIND = "flex_start_vm"
_ATTEMPTS = 5
_CHANGED = 412  # the fingerprint is that of earlier metadata
_STATES = {
    "PENDING": State.WAITING,
    "PROVISIONING": State.PROVISIONING,
    "STAGING": State.PROVISIONING,
    "RUNNING": State.ACTIVE,
    "REPAIRING": State.ACTIVE,
    "PENDING_STOP": State.ENDING,
    "STOPPING": State.ENDING,
    "SUSPENDING": State.ENDING,
    "DEPROVISIONING": State.DELETING,
    "SUSPENDED": State.ENDED,
    "STOPPED": State.ENDED,
    "TERMINATED": State.ENDED,
}


class ComputeBackEnd(BackEnd):
    """Leases of one project from the Compute API."""

    def request(self, zone: str, name: str, body: Mapping[str, Any], request_id: str) -> str:
        """POST instances; the operation runs until capacity is granted or the wait ends."""
        del name  # the body contains it
        url, params = f"{self._zone(zone)}/instances", {"requestId": request_id}
        return str(self._client.post(url, json=dict(body), params=params, idempotent=True).get("name") or "")

    def operation_result(self, zone: str, operation: str) -> tuple[bool, str]:
        """GET the operation."""
        answer = self._client.get(f"{self._zone(zone)}/operations/{operation}")
        errors = (answer.get("error") or {}).get("errors") or []
        return answer.get("status") == "DONE", "; ".join(map(_error_text, errors))

    def observe(self, zone: str, name: str) -> Observation:
        """GET the instance."""
        try:
            return self._read(zone, self._client.get(self._instance(zone, name)))
        except ApiError as error:
            if error.status == NOT_FOUND or no_such_zone(error):
                absent = State.REFUSED if no_such_zone(error) else State.ABSENT
                return Observation(zone, name, absent, reason=error.message, kind=KIND)
            raise

    def delete(self, zone: str, name: str) -> None:
        """DELETE the instance; its disk goes with it."""
        self._call("DELETE", self._instance(zone, name))

    def guest_attributes(self, zone: str, name: str) -> Sequence[Mapping[str, Any]]:
        """GET the guest attributes."""
        url, params = f"{self._instance(zone, name)}/getGuestAttributes", {"queryPath": f"{NAMESPACE}/"}
        answer = self._call("GET", url, params=params) or {}
        return (answer.get("queryValue") or {}).get("items") or []

    def attributes(self, zone: str, name: str) -> Mapping[str, str]:
        """GET the instance."""
        instance = self._call("GET", self._instance(zone, name)) or {}
        return _by_key((instance.get("metadata") or {}).get("items") or [])

    def set_attribute(self, zone: str, name: str, key: str, value: str) -> str:
        """POST setMetadata with the fingerprint of what was read; read again where another caller was faster."""
        for left in reversed(range(_ATTEMPTS)):
            metadata = self._client.get(self._instance(zone, name)).get("metadata") or {}
            items = _by_key(metadata.get("items") or [])
            if items.get(key) == value:  # a repeated request finds what the first one has set
                return ""
            both = [{"key": each, "value": text} for each, text in {**items, key: value}.items()]
            body = {"fingerprint": metadata.get("fingerprint", ""), "items": both}
            try:
                answer = self._client.post(f"{self._instance(zone, name)}/setMetadata", json=body, idempotent=True)
            except ApiError as error:
                if error.status != _CHANGED or not left:
                    raise
            else:
                return str(answer.get("name") or "")
        raise AssertionError  # the last attempt returns or raises

    def serial_output(self, zone: str, name: str) -> str:
        """GET the first serial port."""
        return str(self._client.get(f"{self._instance(zone, name)}/serialPort").get("contents") or "")

    def list(self, zone: str) -> list[Observation]:
        """GET the zone's instances that have the label of a lease."""
        params = {"filter": f"labels.{LEASE}:*"}
        instances = self._client.pages(f"{self._zone(zone)}/instances", "items", params=params)
        return [self._read(zone, instance) for instance in instances]

    def has_hardware(self, zone: str, kind: str) -> bool:
        """GET the machine type."""
        try:
            return self._call("GET", f"{self._zone(zone)}/machineTypes/{kind}") is not None
        except ApiError as error:
            if no_such_zone(error):
                return False
            raise

    def _zone(self, zone: str) -> str:
        return f"{endpoint('COMPUTE')}projects/{self._project}/zones/{zone}"

    def _instance(self, zone: str, name: str) -> str:
        return f"{self._zone(zone)}/instances/{name}"

    def _read(self, zone: str, instance: Mapping[str, Any]) -> Observation:
        word, created = str(instance.get("status") or "PENDING"), str(instance.get("creationTimestamp") or "")
        name = str(instance["name"])
        state = _STATES.get(word, State.WAITING)
        seconds = ((instance.get("scheduling") or {}).get("maxRunDuration") or {}).get("seconds")
        run = float(seconds) if seconds is not None else None
        started = unix(instance.get("lastStartTimestamp")) if state is State.ACTIVE else None
        status = (instance.get("resourceStatus") or {}).get("scheduling") or {}
        end = unix(status.get("terminationTimestamp"))
        if end is None and started is not None and run is not None:
            end = started + run
        interfaces = instance.get("networkInterfaces") or [{}]
        return Observation(
            zone,
            name,
            state,
            word,
            reason=str(instance.get("statusMessage") or ""),
            labels=instance.get("labels") or {},
            id=f"projects/{self._project}/zones/{zone}/instances/{name}@{instance.get('id', '')}@{created}",
            created_at=unix(created),
            active_at=started,
            ends_at=end if state is State.ACTIVE else None,
            node_state=word,
            address=str(interfaces[0].get("networkIP") or ""),
            hardware=str(instance.get("machineType") or "").rpartition("/")[2],
            run_seconds=run,
            kind=KIND,
            provisioning_model=str((instance.get("scheduling") or {}).get("provisioningModel") or ""),
        )


def _by_key(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {str(item["key"]): str(item.get("value") or "") for item in items if "key" in item}


def _error_text(error: Mapping[str, Any]) -> str:
    code, message = str(error.get("code") or ""), str(error.get("message") or "")
    return message if code in message else f"{code}: {message}".strip(": ")
