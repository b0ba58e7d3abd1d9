"""The TPU API's queued resources and nodes over a `FakeLeaseApi`, as far as leases ask for them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from tests.support.leases.fake_lease_api import Lease, error, seconds, stamp
from tests.support.rest.fake_google import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.leases.fake_lease_api import FakeLeaseApi
    from tests.support.rest.fake_google import Call

PATH = re.compile(r"/tpu/v2alpha1/projects/acme/locations/([^/]+)/(\w+)(?:/([^/:]+))?(?::(\w+))?")
WORDS = {
    "waiting": "WAITING_FOR_RESOURCES",
    "provisioning": "PROVISIONING",
    "active": "ACTIVE",
    "ending": "SUSPENDING",
    "ended": "SUSPENDED",
    "failed": "FAILED",
}


def tpu_route(world: FakeLeaseApi) -> Callable[[Call], Answer | None]:
    """What the API answers."""
    return _Tpu(world).route


class _Tpu:
    def __init__(self, world: FakeLeaseApi) -> None:
        self.world = world

    def route(self, call: Call) -> Answer | None:
        match = PATH.fullmatch(call.path)
        if match is None:
            return None
        zone, kind, name, verb = match.groups()
        if kind == "acceleratorTypes":
            return Answer(json={"acceleratorTypes": [{"type": one} for one in self.world.zone(zone).hardware]})
        if kind == "operations":
            return self._operation(name)
        if kind == "queuedResources" and call.method == "POST":
            return self._create(zone, call)
        if kind == "queuedResources" and not name:
            return Answer(json={"queuedResources": [self._resource(one) for one in self._all(zone)]})
        if kind == "nodes" and not name:
            return Answer(json={"nodes": self._nodes(zone)})
        if kind == "nodes":
            return self._node_call(zone, name, verb, call)
        lease = self._all(zone, name)
        if not lease:
            return error(404, f"Resource 'projects/acme/locations/{zone}/queuedResources/{name}' was not found")
        return self._delete(lease[0], call) if call.method == "DELETE" else Answer(json=self._resource(lease[0]))

    def _all(self, zone: str, name: str | None = None) -> list[Lease]:
        return [one for one in self.world.stored_leases(zone, name) if "tpu" in one.body]

    def _create(self, zone: str, call: Call) -> Answer:
        world, name, script = self.world, call.query["queuedResourceId"], self.world.zone(zone)
        if script.refusal:
            return error(*script.refusal)
        same = [one for one in world.leases if one.request_id == call.query["requestId"]]
        if same:
            return Answer(json={"name": same[0].operation})
        if self._all(zone, name) or (zone, name) in world.lone_nodes:
            return error(409, f"Resource {name} already exists", "ALREADY_EXISTS")
        number = len(world.leases) + 1
        late = script.late_seconds
        script.late_seconds = None
        body = call.json
        lease = Lease(
            zone,
            name,
            body,
            call.query["requestId"],
            world.now + (late or 0),
            number,
            seconds(body.get("queueingPolicy", {}).get("validUntilDuration")),
            seconds(body.get("runDuration", {}).get("maxRunDuration")),
            body["tpu"]["nodeSpec"][0]["node"].get("labels", {}),
            f"projects/acme/locations/{zone}/operations/op-{number}",
        )
        if script.operation_error:
            lease.deleted = -math.inf
        world.take(lease)
        return Answer(reset=True) if late else Answer(json={"name": lease.operation})

    def _operation(self, name: str) -> Answer:
        (lease,) = [one for one in self.world.leases if one.operation.endswith(f"/{name}")]
        script = self.world.zone(lease.zone)
        if script.operation_error:
            problem = {"code": 8, "message": script.operation_error}
            return Answer(json={"name": lease.operation, "done": True, "error": problem})
        return Answer(json={"name": lease.operation, "done": self.world.now >= lease.created + script.store_seconds})

    def _resource(self, one: Lease) -> dict[str, Any]:
        phase, _ = self.world.phase_of(one)
        state: dict[str, Any] = {"state": "DELETING" if one.deleted is not None else WORDS[phase]}
        if phase == "failed" and one.deleted is None:
            message = self.world.zone(one.zone).queue_error or "The valid-until time of the request has passed"
            state["failedData"] = {"error": {"code": 8, "message": message}}
        return {
            **one.body,
            "name": f"projects/acme/locations/{one.zone}/queuedResources/{one.name}",
            "createTime": stamp(one.created),
            "state": state,
        }

    def _delete(self, one: Lease, call: Call) -> Answer:
        phase, _ = self.world.phase_of(one)
        if phase == "provisioning" and not self.world.zone(one.zone).deletable_early:
            return error(400, "a queued resource cannot be deleted while it is PROVISIONING", "FAILED_PRECONDITION")
        if phase in {"active", "ending"} and call.query.get("force") != "true":
            return error(400, "it has nodes", "FAILED_PRECONDITION")
        if one.deleted is None:
            one.deleted = self.world.now
        return Answer(json={"name": f"projects/acme/locations/{one.zone}/operations/delete-{one.number}"})

    def _nodes(self, zone: str) -> list[dict[str, Any]]:
        lone = [node for (where, _), node in self.world.lone_nodes.items() if where == zone]
        return [node for one in self._all(zone) if (node := self._node(one))] + lone

    def _node(self, one: Lease) -> dict[str, Any] | None:
        phase, _ = self.world.phase_of(one)
        if phase not in {"active", "ending"} or one.deleted is not None:
            return None
        return {
            **one.body["tpu"]["nodeSpec"][0]["node"],
            "name": f"projects/acme/locations/{one.zone}/nodes/{one.name}",
            "createTime": stamp(self.world.active_at(one)),
            "state": "READY" if phase == "active" else "TERMINATED",
            "health": "HEALTHY",
            "networkEndpoints": [{"ipAddress": f"10.64.0.{one.number}", "port": 8470}],
        }

    def _node_call(self, zone: str, name: str, verb: str | None, call: Call) -> Answer:
        if (zone, name) in self.world.lone_nodes:
            if call.method == "DELETE":
                del self.world.lone_nodes[zone, name]
                return Answer(json={"name": "projects/acme/operations/node"})
            return Answer(json=self.world.lone_nodes[zone, name])
        nodes = [(one, node) for one in self._all(zone, name) if (node := self._node(one))]
        if not nodes:
            return error(404, f"node {name} was not found", "NOT_FOUND")
        if verb == "getGuestAttributes":
            items = self.world.guest_attributes(nodes[0][0])
            return Answer(json={"guestAttributes": [{"queryPath": "bezel/", "queryValue": {"items": items}}]})
        one, node = nodes[0]
        if call.method == "PATCH":
            assert call.query["updateMask"] == "metadata"
            one.set_attributes(self.world.now, call.json["metadata"])
            return Answer(json={"name": one.operation})
        return Answer(json={**node, "metadata": one.attributes or node["metadata"]})
