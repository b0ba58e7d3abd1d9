"""A deployed stack at the wire: its state in a folder, Cloud Run's answers on a socket, an operation's context."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bezel.engine.state.folder import STACK
from bezel.leases.clock import PlatformClock
from bezel.operations.context import Context
from bezel_localcloud.services.logging.filters import parse_filter
from tests.support.rest.fake_google import ACCESS_TOKEN, Answer, Call, Server, serving

NOW = 1_790_000_000.0  # 2026-09-21T14:13:20Z
SERVICE = "projects/acme/locations/us-east4/services/llm"
REVISION = f"{SERVICE}/revisions/llm-00002-abc"


def service_inputs(accelerator: str = "nvidia-l4") -> dict[str, Any]:
    """A GPU service's declaration, as far as its price needs it."""
    limits = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    return {
        "location": "us-east4",
        "name": "llm",
        "template": {
            "containers": [{"resources": {"limits": limits, "cpuIdle": False}}],
            "nodeSelector": {"accelerator": accelerator},
            "gpuZonalRedundancyDisabled": True,
            "scaling": {"maxInstanceCount": 1},
        },
    }


def live_service(**changes: Any) -> dict[str, Any]:
    """The service as Cloud Run answers it."""
    return {
        "name": SERVICE,
        "createTime": "2026-09-21T13:13:20.000000Z",
        "labels": {"expires-at": "2026-12-31"},
        "latestReadyRevision": REVISION,
        "latestCreatedRevision": REVISION,
        "template": {"scaling": {"maxInstanceCount": 1}},
        "terminalCondition": {"type": "Ready", "state": "CONDITION_SUCCEEDED"},
        "trafficStatuses": [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}],
        "uri": "https://llm.example",
        **changes,
    }


def state_of(*resources: dict[str, Any], **outputs: Any) -> dict[str, Any]:
    """A state file with these resources, and the outputs of its stack."""
    root = {"urn": "urn:pulumi:dev::bezel::pulumi:pulumi:Stack::bezel-dev", "type": STACK, "outputs": outputs}
    latest = {"manifest": {"time": "2026-09-21T12:34:00Z"}, "resources": [root, *resources]}
    return {"version": 3, "checkpoint": {"stack": "organization/bezel/dev", "latest": latest}}


def service_resource(**inputs: Any) -> dict[str, Any]:
    """The state's entry of the service."""
    type_ = "gcp:cloudrunv2/service:Service"
    urn = f"urn:pulumi:dev::bezel::{type_}::service"
    return {"urn": urn, "type": type_, "custom": True, "id": SERVICE, "inputs": {**service_inputs(), **inputs}}


def further_resource(region: str, uri: str = "", **inputs: Any) -> dict[str, Any]:
    """The state's entry of the same service in a further region."""
    entry = service_resource(**inputs)
    return {
        **entry,
        "urn": f"{entry['urn']}-{region}",
        "id": SERVICE.replace("us-east4", region),
        "inputs": {**entry["inputs"], "location": region},
        "outputs": {"uri": uri or f"https://llm-{region}.example"},
    }


DOOR = SERVICE.replace("/llm", "/llm-door")


def door_resource() -> dict[str, Any]:
    """The state's entry of the service of a door for callers by key."""
    entry = service_resource()
    urn = "urn:pulumi:dev::bezel::bezel:services:VllmService$bezel:door:KeyDoor$gcp:cloudrunv2/service:Service::door"
    inputs = {"location": "us-east4", "name": "llm-door", "invokerIamDisabled": True}
    return {**entry, "urn": urn, "id": DOOR, "inputs": inputs, "outputs": {"uri": "https://llm-door.example"}}


def address_output(domain: str = "llm.acme.example") -> dict[str, Any]:
    """The output `address` of a stack that has one."""
    proof = {"name": f"_acme-challenge.{domain}.", "type": "CNAME", "data": "proof.authorize.example."}
    return {
        "domain": domain,
        "ip": "203.0.113.7",
        "records": [{"name": f"{domain}.", "type": "A", "data": "203.0.113.7"}, proof],
        "certificate": "projects/acme/locations/global/certificates/address-1a2b3c4",
    }


def logged_request(
    status: int,
    ago: float = 30.0,
    *,
    path: str = "/v1/chat/completions",
    revision: str = "llm-00002-abc",
    message: str = "",
    region: str = "us-east4",
) -> dict[str, Any]:
    """An entry of the request log: a request that ended `ago` seconds before the tests' present."""
    labels = {"service_name": "llm", "location": region, "revision_name": revision}
    return {
        "insertId": f"{status}{ago}{path}{revision}{region}",
        "logName": "projects/acme/logs/run.googleapis.com%2Frequests",
        "resource": {"type": "cloud_run_revision", "labels": labels},
        "timestamp": datetime.fromtimestamp(NOW - ago, UTC).isoformat().replace("+00:00", "Z"),
        "httpRequest": {"requestMethod": "POST", "requestUrl": f"https://llm.example{path}", "status": status},
        **({"textPayload": message} if message else {}),
    }


def logged_line(
    text: str, ago: float, instance: str, *, revision: str = "llm-00002-abc", log: str = "varlog%2Fsystem"
) -> dict[str, Any]:
    """An entry of the platform's log, or of another one, about an instance."""
    entry = logged_request(200, ago, revision=revision)
    del entry["httpRequest"]
    return {
        **entry,
        "insertId": f"{ago}{text}{instance}",
        "logName": f"projects/acme/logs/run.googleapis.com%2F{log}",
        "labels": {"instanceId": instance},
        "textPayload": text,
    }


@dataclass
class Deployed:
    """A project with stacks in a folder's backend, and a cloud that answers as `live` says.

    Attributes:
        live: Path of a resource below /run/v2/ -> what Cloud Run answers; 404 for any other.
        requests: The request log, newest first, or a refusal of it.
    """

    folder: Path
    server: Server
    context: Context
    live: dict[str, Any] = field(default_factory=dict)
    requests: list[dict[str, Any]] | Answer = field(default_factory=lambda: [logged_request(200)])

    def keep(self, stack: str, state: dict[str, Any]) -> Path:
        """Write a stack's state; return its file."""
        file = self.folder / "state/.pulumi/stacks/bezel" / f"{stack}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(state))
        return file

    def answer(self, call: Call) -> Answer | None:
        """Answer a request as Cloud Run and Cloud Logging do."""
        if call.path == "/logging/v2/entries:list":
            if isinstance(self.requests, Answer):
                return self.requests
            holds = parse_filter(call.json["filter"]).holds
            entries = [entry for entry in self.requests if holds(entry)]
            # The newest first, in the order of the list where times are the same.
            entries.sort(key=lambda entry: entry["timestamp"], reverse=True)
            return Answer(json={"entries": entries[: call.json["pageSize"]]})
        entries = self.live.get(call.path.removeprefix("/run/v2/"))
        return None if entries is None else entries if isinstance(entries, Answer) else Answer(json=entries)


@contextmanager
def deployed_stack(folder: Path, **environ: str) -> Iterator[Deployed]:
    """A project without stacks; its cloud knows nothing yet."""
    (folder / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    with serving() as server:
        environment = {
            "PULUMI_BACKEND_URL": f"file://{folder}/state",
            "GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT": f"{server.url}/run/v2/",
            "GOOGLE_CERTIFICATE_MANAGER_CUSTOM_ENDPOINT": f"{server.url}/certificatemanager/v1/",
            "GOOGLE_LOGGING_CUSTOM_ENDPOINT": f"{server.url}/logging/v2/",
            "GOOGLE_MONITORING_CUSTOM_ENDPOINT": f"{server.url}/monitoring/",
            "GOOGLE_OAUTH_ACCESS_TOKEN": ACCESS_TOKEN,
            **environ,
        }
        with Context(folder, environment, clock=PlatformClock(now=lambda: NOW), show=lambda _line: None) as context:
            stack = Deployed(folder, server, context)
            server.set_clock(lambda: NOW)
            server.routes.append(stack.answer)
            yield stack
