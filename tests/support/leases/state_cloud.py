"""Every state of a lease by both APIs, and a cloud with one lease in any of them."""

from __future__ import annotations

from typing import Any

from bezel.leases.clock import rfc3339
from bezel.leases.names import labels
from tests.support.leases.harness import ACCOUNT
from tests.support.rest.fake_google import Answer, Call, Server

ZONE, NAME = "us-east5-a", "bezel-v6e4"
LABELS = labels(NAME, "v6e4")
RUN = 14400
RESOURCE = f"projects/acme/locations/{ZONE}"
# Every state of the discovery documents (tpu v2alpha1, compute v1 of November 2026) -> whether it may serve.
REQUESTS = {
    "STATE_UNSPECIFIED": True, "CREATING": True, "ACCEPTED": True, "WAITING_FOR_RESOURCES": True, "PROVISIONING": True,
    "ACTIVE": True, "SUSPENDING": False, "SUSPENDED": False, "FAILED": False, "DELETING": False, "(none)": False,
}  # fmt: skip
NODES = {
    "STATE_UNSPECIFIED": True, "CREATING": True, "READY": True, "RESTARTING": True, "REIMAGING": True,
    "REPAIRING": True, "STARTING": True, "UNHIDING": True, "UNKNOWN": True, "STOPPING": False, "STOPPED": False,
    "DELETING": False, "PREEMPTED": False, "TERMINATED": False, "HIDING": False, "HIDDEN": False,
}  # fmt: skip
INSTANCES = {
    "PENDING": True, "PROVISIONING": True, "STAGING": True, "RUNNING": True, "REPAIRING": True, "PENDING_STOP": False,
    "STOPPING": False, "STOPPED": False, "SUSPENDING": False, "SUSPENDED": False, "TERMINATED": False,
    "DEPROVISIONING": False, "(none)": False,
}  # fmt: skip


def lease(back_end: str, name: str = NAME) -> dict[str, Any]:
    zones = [{"zone": ZONE, "patience_seconds": 300.0}]
    props = {"project": "acme", "name": name, "stack": "v6e4", "back_end": back_end}
    return {**props, "zones": zones, "former_zones": [ZONE]}


class Cloud:
    """Both control planes with one lease in a state, and a gateway that answers 503.

    Attributes:
        started: When its machine started, unix seconds; None is not reported.
        model: Its provisioning model.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.request, self.node, self.instance = "(none)", "READY", "(none)"
        self.started: float | None = None
        self.model = "FLEX_START"
        self.status = 200
        self.asked = 0
        server.routes[:] = [self.answer]

    def answer(self, call: Call) -> Answer | None:
        if call.path == "/health":
            return Answer(503, json={"error": "no machine is available"})
        self.asked += 1
        if self.status != 200:
            return Answer(self.status, json={"error": {"code": self.status, "message": "denied"}})
        if "/queuedResources" in call.path and self.request != "(none)":
            node = {"labels": LABELS, "serviceAccount": {"email": ACCOUNT}}
            spec = [{"nodeId": NAME, "parent": RESOURCE, "node": node}]
            state = {"state": self.request, "failedData": {"error": {"message": "stocked out"}}}
            name = f"{RESOURCE}/queuedResources/{NAME}"
            terms = {"runDuration": {"maxRunDuration": f"{RUN}s"}, "provisioningModel": self.model}
            return Answer(json={"name": name, "state": state, "tpu": {"nodeSpec": spec}, **terms})
        if "/nodes" in call.path and self.request == "ACTIVE" and "Attributes" not in call.path:
            node = {"name": f"{RESOURCE}/nodes/{NAME}", "state": self.node, "labels": LABELS}
            return Answer(json=node | ({} if self.started is None else {"createTime": rfc3339(self.started)}))
        if "/instances/" in call.path and self.instance != "(none)":
            zone = f"https://www.googleapis.com/compute/v1/projects/acme/zones/{ZONE}"
            machine = {"name": NAME, "id": "1", "status": self.instance, "labels": LABELS, "zone": zone}
            started = {} if self.started is None else {"lastStartTimestamp": rfc3339(self.started)}
            terms = {"maxRunDuration": {"seconds": str(RUN)}, "provisioningModel": self.model}
            return Answer(json={**machine, **started, "scheduling": terms})
        return Answer(404, json={"error": {"code": 404, "message": "not found", "status": "NOT_FOUND"}})
