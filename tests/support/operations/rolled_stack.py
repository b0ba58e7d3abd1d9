"""A deployed service with several revisions at the wire, whose traffic moves as on Cloud Run, and its faults."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.context import Context
from bezel.operations.rollback.rollback import RollbackArguments, apply_rollback, plan_rollback
from bezel.operations.status.status import StackStatus, StatusArguments, status
from tests.support.operations.deployed import (
    SERVICE,
    Deployed,
    deployed_stack,
    live_service,
    service_inputs,
    service_resource,
    state_of,
)
from tests.support.rest.fake_google import Answer, Call

STACK = "dev"
LATEST, PINNED = (f"TRAFFIC_TARGET_ALLOCATION_TYPE_{kind}" for kind in ("LATEST", "REVISION"))
NEWEST = {"type": LATEST, "tag": "newest"}
DIRECT = [{"type": LATEST, "percent": 100}]
HEALTH = "pulumi-python:dynamic/smoke:HealthCheck"
SWITCH = "pulumi-python:dynamic/components:TrafficSwitch"
IMAGE = f"us-east4-docker.pkg.dev/acme/images/vllm@sha256:{'a' * 64}"
MONITORING = "/monitoring/v3/projects/acme/timeSeries"
START = {"seconds": [40, 90], "usd": [0.0116, 0.0262]}


def name_of(number: int) -> str:
    """Short name of a revision by its number."""
    return f"llm-{number:05}-abc"


def pinned_target(number: int, percent: int = 100, **more: Any) -> dict[str, Any]:
    """A traffic target that names a revision."""
    return {"type": PINNED, "revision": name_of(number), "percent": percent, **more}


def error(status: int, message: str = "the fault of this test") -> Answer:
    """An error as Google answers it."""
    return Answer(status, {"error": {"code": status, "message": message, "status": str(status)}})


@dataclass
class RolledStack:
    """The stack `dev` with a service of some revisions.

    Attributes:
        cloud: The project and what Google answers.
        faults: What the next PATCHes meet, one after the other: a status; `lost`, done without an answer; `changed`,
            somebody else changes the service before; `newer`, somebody else deploys before.
        bodies: The bodies of the PATCHes that were carried out.
        present: Paths of Google's other APIs that exist, each with its answer.
        instances: Instances of each revision by Cloud Monitoring; None where it has no sample.
    """

    cloud: Deployed
    faults: list[int | str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    present: dict[str, Any] = field(default_factory=dict)
    instances: dict[str, int] | None = None

    @property
    def service(self) -> dict[str, Any]:
        """The service as Cloud Run has it."""
        description: dict[str, Any] = self.cloud.live[SERVICE]
        return description

    def revise(self, count: int, *failed: int, gone: tuple[int, ...] = (), **more: Any) -> None:
        """Give the service so many revisions; those of `failed` never became ready, those of `gone` were deleted."""
        self.revisions = [
            {
                "name": f"{SERVICE}/revisions/{name_of(number)}",
                "createTime": f"2026-09-{number:02}T10:00:00Z",
                "conditions": [
                    {"type": "Ready", "state": f"CONDITION_{'FAILED' if number in failed else 'SUCCEEDED'}"}
                ],
                **service_inputs()["template"],
            }
            for number in range(1, count + 1)
            if number not in gone
        ]
        ready = max((number for number in range(1, count + 1) if number not in failed), default=0)
        self.cloud.live[SERVICE] = live_service(
            etag='"1"',
            traffic=DIRECT,
            latestCreatedRevision=f"{SERVICE}/revisions/{name_of(count)}",
            latestReadyRevision=f"{SERVICE}/revisions/{name_of(ready)}" if ready else "",
            **more,
        )

    def revision(self, number: int) -> dict[str, Any]:
        """A revision, to be changed."""
        (match,) = [each for each in self.revisions if each["name"].endswith(name_of(number))]
        return match

    def write_passed(self, *numbers: int, ended: str | None = None, others: tuple[dict[str, Any], ...] = ()) -> None:
        """Write the state after checks of these revisions passed, and after a gated rollout ended a rollback."""
        entries = [{"revision": name_of(number), "model": "gemma", "start": START} for number in numbers]
        outputs = {"revision": name_of(numbers[-1]) if numbers else "", "verdict": {"ok": True}, "passed": entries}
        resources = [service_resource(), self.entry(HEALTH, outputs), *others]
        if ended is not None:
            outputs = {"service": SERVICE, "revision": name_of(numbers[-1]), "ended": ended}
            resources.append(self.entry(SWITCH, outputs))
        self.cloud.keep(STACK, state_of(*resources, url="https://llm.example", model="gemma"))

    def entry(self, type_: str, outputs: dict[str, Any]) -> dict[str, Any]:
        """The state's entry of a resource."""
        urn = f"urn:pulumi:dev::bezel::{type_}::it"
        return {"urn": urn, "type": type_, "custom": True, "id": "it", "inputs": outputs, "outputs": outputs}

    def plan(self, to: int | None = None, **context: Any) -> Plan:
        """The plan of a rollback."""
        name = None if to is None else name_of(to)
        return plan_rollback(self.context(**context), RollbackArguments(stack=STACK, to=name, wait="0s"))

    def apply(self, plan: Plan, **context: Any) -> Outcome:
        """Carry a plan out."""
        return apply_rollback(self.context(**context), plan)

    def status(self) -> StackStatus:
        """The status of the stack."""
        (stack_status,) = status(self.context(), StatusArguments(stack=STACK)).stacks
        return stack_status

    def context(self, **changes: Any) -> Context:
        """A context of its own, as each call of a face has one."""
        return replace(self.cloud.context, **changes)

    def answer(self, call: Call) -> Answer | None:
        """Answer as Google does."""
        if call.path == f"/run/v2/{SERVICE}" and call.method == "PATCH":
            return self._patch(call)
        if call.path == f"/run/v2/{SERVICE}/revisions":
            return Answer(json={"revisions": self.revisions[::-1]})
        if call.path == MONITORING and self.instances is not None:
            return Answer(json={"timeSeries": [_series(name, count) for name, count in self.instances.items()]})
        response = self.present.get(call.path)
        return response if response is None or isinstance(response, Answer) else Answer(json=response)

    def _patch(self, call: Call) -> Answer:
        fault = self.faults.pop(0) if self.faults else ""
        if isinstance(fault, int):
            return error(fault)
        if fault == "changed":
            self.service["etag"] = '"another"'
        if fault == "newer":
            self.service |= {"etag": '"another"', "latestCreatedRevision": f"{SERVICE}/revisions/{name_of(9)}"}
        assert call.query == {"updateMask": "traffic,annotations"}
        if call.json["etag"] != self.service["etag"]:
            return error(409, "the etag given is not the current one")
        named = {target["revision"] for target in call.json["traffic"] if target.get("revision")}
        assert named <= {each["name"].rpartition("/")[2] for each in self.revisions}
        assert sum(target.get("percent", 0) for target in call.json["traffic"]) == 100
        self.bodies.append(call.json)
        body = {key: call.json[key] for key in ("traffic", "annotations")}
        self.cloud.live[SERVICE] = {**self.service, **body, "trafficStatuses": body["traffic"], "etag": '"moved"'}
        if fault == "lost":
            return Answer(reset=True)
        return Answer(json={"name": f"{SERVICE}/operations/1", "done": True})


def _series(revision: str, count: int) -> dict[str, Any]:
    at = "2026-09-21T14:12:20Z"
    return {
        "metric": {"labels": {"state": "idle"}},
        "resource": {"labels": {"revision_name": revision}},
        "points": [{"interval": {"endTime": at}, "value": {"int64Value": str(count)}}],
    }


@contextmanager
def rolled_stack(folder: Path) -> Iterator[RolledStack]:
    """A stack of three revisions that passed, of which the newest serves."""
    with deployed_stack(folder) as cloud:
        others = ("ARTIFACT_REGISTRY", "SECRET_MANAGER", "STORAGE", "IAM_BETA")
        variables = {f"GOOGLE_{api}_CUSTOM_ENDPOINT": f"{cloud.server.url}/{api}/" for api in others}
        cloud.context = replace(cloud.context, environ={**cloud.context.environ, **variables})
        made = RolledStack(cloud)
        cloud.server.routes.insert(0, made.answer)
        made.revise(3)
        made.write_passed(1, 2, 3)
        yield made
