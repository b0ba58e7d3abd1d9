"""Compute's instances over a `FakeLeaseApi`, as far as leases ask for them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from tests.support.leases.fake_lease_api import Lease, error, stamp
from tests.support.rest.fake_google import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.leases.fake_lease_api import FakeLeaseApi
    from tests.support.rest.fake_google import Call

PATH = re.compile(r"/compute/v1/projects/acme/zones/([^/]+)/(\w+)(?:/([^/]+))?(?:/(\w+))?")
WORDS = {"waiting": "PENDING", "provisioning": "PROVISIONING", "active": "RUNNING", "ending": "STOPPING"}


def compute_route(world: FakeLeaseApi) -> Callable[[Call], Answer | None]:
    """What the API answers."""
    return _Compute(world).route


class _Compute:
    def __init__(self, world: FakeLeaseApi) -> None:
        self.world = world

    def route(self, call: Call) -> Answer | None:
        match = PATH.fullmatch(call.path)
        if match is None:
            return None
        zone, kind, name, verb = match.groups()
        if kind == "machineTypes":
            return Answer(json={"name": name}) if name in self.world.zone(zone).hardware else error(404, "not found")
        if kind == "operations":
            return self._operation(name)
        if call.method == "POST" and not name:
            return self._create(zone, call)
        if not name:
            return Answer(json={"items": [self._instance(one) for one in self._all(zone)]})
        lease = self._all(zone, name)
        if not lease:
            return error(404, f"The resource 'projects/acme/zones/{zone}/instances/{name}' was not found")
        return self._one(lease[0], verb, call)

    def _one(self, one: Lease, verb: str | None, call: Call) -> Answer:
        if call.method == "DELETE":
            return self._delete(one)
        if verb == "getGuestAttributes":
            items = self.world.guest_attributes(one)
            return Answer(json={"queryValue": {"items": items}}) if items else error(404, "no guest attributes")
        if verb == "setMetadata":
            if call.json["fingerprint"] != self._instance(one)["metadata"]["fingerprint"]:
                return error(412, "Supplied fingerprint does not match current metadata fingerprint.")
            items = {item["key"]: item["value"] for item in call.json["items"]}
            one.set_attributes(self.world.now, items)
            return Answer(json={"name": one.operation, "status": "RUNNING"})
        if verb == "serialPort":
            return Answer(json={"contents": "bezel: starting\n"})
        return Answer(json=self._instance(one))

    def _all(self, zone: str, name: str | None = None) -> list[Lease]:
        """Google deletes what failed and what ended: only its operation tells."""
        stored = [one for one in self.world.stored_leases(zone, name) if "tpu" not in one.body]
        return [one for one in stored if self.world.phase_of(one)[0] not in {"failed", "ended"}]

    def _create(self, zone: str, call: Call) -> Answer:
        world, body, script = self.world, call.json, self.world.zone(zone)
        if script.refusal:
            return error(*script.refusal)
        same = [one for one in world.leases if one.request_id == call.query["requestId"]]
        if same:
            return Answer(json={"name": same[0].operation, "status": "RUNNING"})
        if self._all(zone, body["name"]):
            return error(409, f"The resource {body['name']} already exists", "alreadyExists")
        number = len(world.leases) + 1
        late = script.late_seconds
        script.late_seconds = None
        wait = body.get("params", {}).get("requestValidForDuration", {}).get("seconds", "0")
        run = body["scheduling"].get("maxRunDuration", {}).get("seconds", "inf")
        created = world.now + (late or 0)
        lease = Lease(
            zone, body["name"], body, call.query["requestId"], created, number, float(wait), float(run),
            body.get("labels", {}), f"operation-{number}",
        )  # fmt: skip
        if script.operation_error:
            lease.deleted = -math.inf
        world.take(lease)
        return Answer(reset=True) if late else Answer(json={"name": lease.operation, "status": "RUNNING"})

    def _operation(self, name: str) -> Answer:
        (lease,) = [one for one in self.world.leases if one.operation == name]
        script, (phase, _) = self.world.zone(lease.zone), self.world.phase_of(lease)
        stored = self.world.now >= lease.created + script.store_seconds
        if script.operation_error or (stored and phase == "failed"):
            message = script.operation_error or script.queue_error or "the wait time of the request has passed"
            problem = {"errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "message": message}]}
            return Answer(json={"name": name, "status": "DONE", "error": problem})
        done = stored and phase not in {"waiting", "provisioning"}
        return Answer(json={"name": name, "status": "DONE" if done else "RUNNING"})

    def _instance(self, one: Lease) -> dict[str, Any]:
        phase, since = self.world.phase_of(one)
        started = {"lastStartTimestamp": stamp(since)} if phase == "active" else {}
        interfaces = [{**nic, "networkIP": f"10.64.0.{one.number}"} for nic in one.body["networkInterfaces"]]
        metadata = dict(one.body["metadata"])
        if one.attributes:
            metadata["items"] = [{"key": key, "value": value} for key, value in one.attributes.items()]
        metadata["fingerprint"] = f"f{len(one.requests)}-{len(metadata['items'])}"
        return {
            **{key: value for key, value in one.body.items() if key != "params"},
            "metadata": metadata,
            **started,
            "id": str(one.number),
            "creationTimestamp": stamp(one.created),
            "status": "STOPPING" if one.deleted is not None else WORDS[phase],
            "networkInterfaces": interfaces if phase == "active" else one.body["networkInterfaces"],
        }

    def _delete(self, one: Lease) -> Answer:
        phase, _ = self.world.phase_of(one)
        if phase == "provisioning" and not self.world.zone(one.zone).deletable_early:
            return error(400, "the resource is not ready: an insert is under way", "resourceNotReady")
        if one.deleted is None:
            one.deleted = self.world.now
        return Answer(json={"name": f"delete-{one.number}", "status": "RUNNING"})
