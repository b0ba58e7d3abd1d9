"""A job's request to an API of Google passes only if it is understood whole: 70 that are not, and 20 that are."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import googleapiclient
import pytest

from bezel.planner.base.money import Priced, Unpriced
from bezel.resource_cost.inputs import InputError, Inputs
from bezel.resource_cost.requests.scheduled import Unread, request_of_job
from bezel.resource_cost.stack_cost import StateResource, stack_cost
from tests.support.policies.harness import (
    LABELS,
    LIMITS,
    SERVICE,
    UNKNOWN,
    example,
    queue,
    request,
    service,
    stack_violations,
    violations,
)
from tests.support.policies.jobs import IDENTITY, JOB, NO_TOKEN, all_violations, encode, job

COMPUTE = "https://compute.googleapis.com/compute/v1/projects/p"
ZONE, INSTANCES = f"{COMPUTE}/zones/us-east5-b", f"{COMPUTE}/zones/us-east5-b/instances"
PLACE = "projects/p/locations/us-east4"
RUN = f"https://run.googleapis.com/v2/{PLACE}/services/chat"
MINIMUM = f"{RUN}?updateMask=scaling.minInstanceCount"
QUEUE = "https://tpu.googleapis.com/v2alpha1/projects/p/locations/us-east5-b/queuedResources?queuedResourceId=l"
MACHINE: dict[str, Any] = request("flex_start_vm")["body"]
H100 = [{"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": 8}]


def api(name: str, path: str) -> str:
    return f"https://{name}.googleapis.com/{path}"


def at_least(count: object) -> dict[str, Any]:
    return {"scaling": {"minInstanceCount": count}}


MACHINES = {
    "a3": job(INSTANCES, body={"name": "x", "machineType": "zones/us-east5-b/machineTypes/a3-highgpu-8g"}),
    "g2 with four L4": job(INSTANCES, body={"machineType": "g2-standard-48"}),
    "T4 on n1": job(INSTANCES, body={"machineType": "n1-standard-4", "guestAccelerators": H100}),
    "no accelerator": job(INSTANCES, body={"machineType": "m3-megamem-128"}),
    "H100 beside a TPU": job(INSTANCES, body={**MACHINE, "guestAccelerators": H100}),
    "H100 in snake case": job(INSTANCES, body={**MACHINE, "guest_accelerators": H100}),
    "a machine image": job(INSTANCES, body={**MACHINE, "sourceMachineImage": "global/machineImages/a3"}),
    "a template": job(f"{INSTANCES}?sourceInstanceTemplate=global/instanceTemplates/a3", body=MACHINE),
    "another end": job(INSTANCES, body={**MACHINE, "scheduling": {"terminationTime": "2099-01-01T00:00:00Z"}}),
    "another shape": job(INSTANCES, body={**MACHINE, "labels": LABELS, "disks": {"0": {}}}),
    "two machine types": job(INSTANCES, body={**MACHINE, "machine_type": "a3-highgpu-8g"}),
    "no machine type": job(INSTANCES, body={"name": "x"}),
    "bulkInsert": job(f"{INSTANCES}/bulkInsert", body={"count": "8", "instanceProperties": {}}),
    "bulkInsert as a verb": job(f"{INSTANCES}:bulkInsert", body={"count": "8"}),
    "a group's resize": job(f"{ZONE}/instanceGroupManagers/g/resize?size=8"),
    "a resize request": job(f"{ZONE}/instanceGroupManagers/g/resizeRequests", body={"resizeBy": 4}),
    "a group": job(f"{ZONE}/instanceGroupManagers", body={"targetSize": 8}),
    "an autoscaler": job(f"{ZONE}/autoscalers?autoscaler=a", "PATCH", {"autoscalingPolicy": {"minNumReplicas": 9}}),
    "another machine type": job(f"{INSTANCES}/i/setMachineType", body={"machineType": "zones/z/machineTypes/a3"}),
    "more accelerators": job(f"{INSTANCES}/i/setMachineResources", body={"guestAccelerators": H100}),
    "a start": job(f"{INSTANCES}/i/start"),
    "a reservation": job(f"{ZONE}/reservations", body={"specificReservation": {}}),
    "a commitment": job(f"{COMPUTE}/regions/us-east4/commitments", body={"plan": "TWELVE_MONTH"}),
    "a reserved TPU": job(QUEUE, body={**queue(), "guaranteed": {"reserved": True}}),
    "a TPU's own schedule": job(QUEUE, body=queue({"tpu.nodeSpec.0.node.schedulingConfig": {"reserved": True}})),
    "three nodes": job(QUEUE, body={**queue(), "tpu": {"nodeSpec": queue()["tpu"]["nodeSpec"] * 3}}),
    "16 nodes of v2alpha1": job(QUEUE, body=queue({"tpu.nodeSpec.0.multiNodeParams": {"nodeCount": 16}})),
    "a large slice": job(QUEUE, body=queue({"tpu.nodeSpec.0.node.acceleratorType": "v6e-256"})),
}
OTHERS = {
    "Vertex AI job": job(api("us-central1-aiplatform", "v1/projects/p/locations/us-central1/customJobs"), body={}),
    "Vertex AI deploy": job(api("us-central1-aiplatform", f"v1/{PLACE}/endpoints/e:deployModel"), body={}),
    "a GPU service": job(f"{RUN.rpartition('/')[0]}?serviceId=s", body={"template": {"containers": []}}),
    "a job of Cloud Run": job(api("run", f"v2/{PLACE}/jobs/j:run")),
    "Knative": job(api("us-east4-run", "apis/serving.knative.dev/v1/namespaces/p/services/s"), "PUT", {}),
    "a minimum": job(MINIMUM, "PATCH", at_least(40)),
    "a minimum as text": job(MINIMUM, "PATCH", {"scaling": {"min_instance_count": "40"}}),
    "a minimum and more": job(MINIMUM, "PATCH", {"scaling": {"minInstanceCount": 0, "maxInstanceCount": 99}}),
    "a minimum without a mask": job(RUN, "PATCH", at_least(0)),
    "a whole service": job(f"{RUN}?updateMask=*", "PATCH", at_least(0)),
    "a maximum": job(f"{RUN}?updateMask=scaling.maxInstanceCount", "PATCH", {"scaling": {"maxInstanceCount": 99}}),
    "GKE": job(api("container", f"v1/{PLACE}/clusters/c/nodePools/n:setSize"), body={"nodeCount": 9}),
    "Batch": job(api("batch", f"v1/{PLACE}/jobs"), body={"taskGroups": []}),
    "Dataproc": job(api("dataproc", "v1/projects/p/regions/us-east4/clusters"), body={}),
    "Dataflow": job(api("dataflow", f"v1b3/{PLACE}/flexTemplates:launch"), body={}),
    "Workbench": job(api("notebooks", f"v2/{PLACE}/instances?instanceId=i"), body={}),
    "Cloud Build": job(api("cloudbuild", "v1/projects/p/triggers/t:run"), body={"branchName": "main"}),
    "Workflows": job(api("workflowexecutions", f"v1/{PLACE}/workflows/w/executions"), body={}),
    "Infrastructure Manager": job(api("config", f"v1/{PLACE}/deployments?deploymentId=d"), body={}),
    "a job by a job": job(api("cloudscheduler", f"v1/{PLACE}/jobs"), body={}),
    "a message": job(api("pubsub", "v1/projects/p/topics/t:publish"), body={"messages": []}),
    "a quota": job(api("cloudquotas", "v1/projects/p/locations/global/quotaPreferences"), body={}),
}
OPENING = {
    "a service's policy": job(f"{RUN}:setIamPolicy", body={"policy": {"bindings": [{"members": ["allUsers"]}]}}),
    "a project's policy": job(api("cloudresourcemanager", "v1/projects/p:setIamPolicy"), body={"policy": {}}),
    "a bucket's policy": job(api("storage", "storage/v1/b/b/iam"), "PUT", {"bindings": []}),
    "a bucket's list": job(api("storage", "storage/v1/b/b/acl"), body={"entity": "allUsers", "role": "READER"}),
    "a firewall": job(f"{COMPUTE}/global/firewalls", body={"sourceRanges": ["0.0.0.0/0"]}),
    "no firewall": job(f"{COMPUTE}/global/firewalls/deny-all", "DELETE"),
    "an address": job(f"{INSTANCES}/i/addAccessConfig?networkInterface=nic0", body={"type": "ONE_TO_ONE_NAT"}),
    "a key": job(api("iam", "v1/projects/p/serviceAccounts/a/keys"), body={}),
    "a token": job(api("iamcredentials", "v1/projects/-/serviceAccounts/a:generateAccessToken"), body={}),
    "no deny policy": job(api("iam", "v2/policies/x/denypolicies/d"), "DELETE"),
    "no limit": job(api("billingbudgets", "v1/billingAccounts/a/budgets/b"), "DELETE"),
    "a restore by GET": job(api("aiplatform", "v1/datasets/d/datasetVersions/v:restore"), "GET"),
}
SPELLINGS = {
    "http": "http://compute.googleapis.com/compute/v1/projects/p/zones/us-east5-b/instances",
    "letters": "HTTPS://Compute.GoogleAPIs.COM/compute/v1/projects/p/zones/us-east5-b/instances/bulkInsert",
    "a port": "https://compute.googleapis.com:443/compute/v1/projects/p/zones/us-east5-b/instances",
    "a user": "https://example.com@compute.googleapis.com/compute/v1/projects/p/zones/us-east5-b/instances",
    "a false user": "https://compute.googleapis.com@example.com/compute/v1/projects/p/zones/z/instances",
    "a root": "https://compute.googleapis.com./compute/v1/projects/p/zones/us-east5-b/instances",
    "an encoded host": "https://compute%2Egoogleapis%2ecom/compute/v1/projects/p/zones/us-east5-b/instances",
    "encoded twice": "https://compute%252Egoogleapis.com/compute/v1/projects/p/zones/us-east5-b/instances",
    "an encoded path": f"{ZONE}/%69nstances",
    "an encoded verb": f"{RUN}%3AsetIamPolicy",
    "backslashes": "https:\\\\compute.googleapis.com\\compute\\v1\\projects\\p\\zones\\z\\instances",
    "another full stop": "https://compute\u3002googleapis\u3002com/compute/v1/projects/p/zones/z/instances",
    "wide letters": "https://\uff43ompute.googleapis.com/compute/v1/projects/p/zones/z/instances",
    "a line feed": "https://compute.google\napis.com/compute/v1/projects/p/zones/z/instances",
    "more slashes": "https:////compute.googleapis.com/compute/v1/projects/p/zones/z/instances",
    "dots": f"{COMPUTE}/zones/us-east5-b/disks/../instances",
    "no scheme": "compute.googleapis.com/compute/v1/projects/p/zones/us-east5-b/instances",
    "mtls": "https://compute.mtls.googleapis.com/compute/v1/projects/p/zones/us-east5-b/instances",
    "regional": "https://compute.us-east5.rep.googleapis.com/compute/v1/projects/p/zones/us-east5-b/instances",
    "private": "https://compute-mine.p.googleapis.com/compute/v1/projects/p/zones/us-east5-b/instances",
    "restricted": "https://restricted.googleapis.com/compute/v1/projects/p/zones/us-east5-b/instances",
    "beta": "https://compute.googleapis.com/compute/beta/projects/p/zones/us-east5-b/instances",
    "a query twice": f"{INSTANCES}?requestId=a&requestId=b",
    "a batch": "https://compute.googleapis.com/batch/compute/v1",
}
HEADERS = [
    {"X-HTTP-Method-Override": "PATCH"},
    {"Content-Encoding": "gzip"},
    {"Content-Type": "application/x-www-form-urlencoded"},
    {"content-type": "multipart/mixed"},
    {"X-Goog-Encode-Response-If-Executable": "base64"},
]
NOT_UNDERSTOOD = {
    **MACHINES,
    **OTHERS,
    **OPENING,
    **{f"written with {name}": job(uri, body=MACHINE) for name, uri in SPELLINGS.items()},
    **{f"with {headers}": job(INSTANCES, body=MACHINE, headers=headers) for headers in HEADERS},
    "a read that is a write": job(INSTANCES, "GET", headers={"X-HTTP-Method-Override": "POST"}),
    "an unknown method": job(INSTANCES, "FROBNICATE", MACHINE),
}
BODIES = {
    "no body": None,
    "no base64": "{}",
    "no object": encode([MACHINE]),
    "a name twice": base64.b64encode(b'{"machineType": "ct6e-standard-4t", "machineType": "a3-highgpu-8g"}').decode(),
    "no text": base64.b64encode(b"\x1f\x8b\x08\x00").decode(),
    "another encoding": base64.b64encode(json.dumps(MACHINE).encode("utf-16")).decode(),
    "no number": base64.b64encode(b'{"count": NaN}').decode(),
    "too deep": base64.b64encode(b"[" * 300_000).decode(),
    "too long": base64.b64encode(b" " * 900_000).decode(),
}
READS = {
    "a list": job(INSTANCES, "GET"),
    "a service": job(RUN, "get"),
    "a policy": job(f"{RUN}:getIamPolicy", "GET"),
    "only the head": job(f"{INSTANCES}/i", "HEAD"),
    "a machine's end": job(f"{INSTANCES}/bezel", "DELETE"),
    "a lease's end": job(QUEUE.replace("?queuedResourceId=l", "/l?force=true"), "DELETE"),
    "a service's end": job(RUN, "DELETE"),
    "a node pool's end": job(api("container", f"v1/{PLACE}/clusters/c/nodePools/n"), "DELETE"),
    "a stop": job(f"{INSTANCES}/i/stop"),
    "a suspension": job(f"{INSTANCES}/i/suspend?requestId=r"),
    "a TPU's stop": job(api("tpu", f"v2/{PLACE}/nodes/n:stop")),
    "no minimum": job(MINIMUM, "PATCH", at_least(0)),
}
ELSEWHERE = {
    "another server": job("https://example.com/hook", body={"gpu": "nvidia-l4", "machineType": "a3"}, **NO_TOKEN),
    "the own service": job("https://chat-123456789012.us-east4.run.app/v1/models", "GET", **IDENTITY),
    "a wake-up": job("https://chat-abcdefghij-uk.a.run.app/wake", body={"accelerator": "nvidia-l4"}, **IDENTITY),
    "a host that looks alike": job("https://googleapis.com.example.org/x", **NO_TOKEN),
    "a path that looks alike": job("https://example.com/compute.googleapis.com/compute/v1", **NO_TOKEN),
    "a query that looks alike": job("https://example.com/?next=https://compute.googleapis.com/", **NO_TOKEN),
    "a topic": {"schedule": "* * * * *", "pubsubTarget": {"topicName": "projects/p/topics/gpu"}},
    "an application": {"schedule": "* * * * *", "appEngineHttpTarget": {"relativeUri": "/wake"}},
    "words": {"description": "wakes the gpu a3-highgpu-8g", "httpTarget": {"uri": "https://example.com/"}},
}


@pytest.mark.parametrize("case", NOT_UNDERSTOOD)
def test_a_request_that_is_not_understood_whole_is_refused(case: str) -> None:
    problems = all_violations(JOB, NOT_UNDERSTOOD[case])
    assert problems
    assert all("Repair:" in message for messages in problems.values() for message in messages)


@pytest.mark.parametrize("case", [*OTHERS, *OPENING])
@pytest.mark.parametrize("pack", ["hourly-ceiling", "known-requests"])
def test_each_pack_alone_refuses_what_nobody_understands(pack: str, case: str) -> None:
    if "minimum" in case and "mask" not in case and "more" not in case:
        pack = "always-on"
    assert violations(pack, JOB, NOT_UNDERSTOOD[case])


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_cannot_be_read_is_refused(body: str) -> None:
    inputs = job(INSTANCES)
    inputs["httpTarget"]["body"] = BODIES[body]
    (message,) = violations("hourly-ceiling", JOB, inputs)
    assert "httpTarget.body = (text)" in message


@pytest.mark.parametrize(
    "inputs",
    [
        job(UNKNOWN, body=MACHINE),
        job(UNKNOWN, **IDENTITY),
        job(INSTANCES, UNKNOWN, MACHINE),
        job(INSTANCES, body=UNKNOWN),
        job(INSTANCES, body=MACHINE, headers=UNKNOWN),
        job(INSTANCES, "GET", headers={"Accept": UNKNOWN}),
        {"schedule": "* * * * *", "httpTarget": UNKNOWN},
    ],
)
def test_a_request_that_a_preview_cannot_know_is_refused(inputs: dict[str, Any]) -> None:
    for policy in ("hourly-ceiling", "known-requests"):
        (message,) = violations(policy, JOB, inputs)
        assert "(not known before the deploy)" in message


@pytest.mark.parametrize("case", {**READS, **ELSEWHERE})
def test_a_request_that_buys_and_opens_nothing_passes(case: str) -> None:
    assert all_violations(JOB, {**READS, **ELSEWHERE}[case]) == {}


@pytest.mark.parametrize("inputs", [job(QUEUE, body=queue()), job(INSTANCES, body={**MACHINE, "labels": LABELS})])
def test_what_the_hours_of_a_lease_send_is_priced_and_limited(inputs: dict[str, Any]) -> None:
    assert all_violations(JOB, inputs) == {}
    assert violations("hourly-ceiling", JOB, inputs, {"limits": {"dev": 5}})


def test_a_token_for_googles_apis_goes_to_no_other_host() -> None:
    (message,) = violations("known-requests", JOB, job("https://relay.example.com/compute"))
    assert "https://relay.example.com/compute" in message


def test_the_owner_can_exempt_jobs_from_each_policy() -> None:
    inputs = OTHERS["Vertex AI job"]
    for policy in ("hourly-ceiling", "monthly-ceiling", "allowed-accelerators", "known-requests"):
        (message,) = violations(policy, JOB, inputs)
        assert f'"exempt": ["{JOB}"]' in message
        assert violations(policy, JOB, inputs, {**LIMITS.get(policy, {}), "exempt": [JOB]}) == []


def test_a_scheduled_minimum_is_limited_as_a_declared_one() -> None:
    assert violations("always-on", JOB, job(MINIMUM, "PATCH", at_least(1)))
    prod = example("hardware_cost", "prod")["always-on"]
    assert violations("always-on", JOB, job(MINIMUM, "PATCH", at_least(2)), prod) == []
    (message,) = violations("always-on", JOB, job(MINIMUM, "PATCH", at_least(3)), prod)
    assert "bezel:scaling.schedule` to 2" in message


def chat(**changes: Any) -> dict[str, Any]:
    return service({"name": "chat", "project": "p", **changes})


DECLARED = {"annotations": {"bezel-scheduled-minimum": "1"}}


@pytest.mark.parametrize(
    ("minimum", "inputs", "idle", "hourly"),
    [
        (1, chat(**DECLARED), "1.05", "1.05"),  # the declaration says it
        (1, chat(), "1.05", "1.05"),  # it does not: the job's minimum counts
        (3, chat(**DECLARED), "3.14", "3.14"),  # above the maximum, too
        (0, chat(), "0.00", "1.05"),
    ],
)
def test_a_scheduled_minimum_costs_what_the_declaration_does_not_say(minimum, inputs, idle, hourly) -> None:
    resources = [
        StateResource("job", JOB, job(MINIMUM, "PATCH", at_least(minimum))),
        StateResource("chat", SERVICE, inputs),
    ]
    cost = stack_cost(resources)
    assert isinstance(cost.idle_hourly, Priced)
    assert isinstance(cost.hourly, Priced)
    assert (f"{cost.idle_hourly.usd:.2f}", f"{cost.hourly.usd:.2f}") == (idle, hourly)


@pytest.mark.parametrize("changes", [{"name": "other"}, {"location": "us-central1"}, {"project": "q"}])
def test_a_minimum_of_a_service_elsewhere_has_no_price(changes: dict[str, str]) -> None:
    one = (JOB, job(MINIMUM, "PATCH", at_least(1)))
    assert isinstance(stack_cost([StateResource("job", *one)]).idle_hourly, Unpriced)
    (message,) = stack_violations("stack-hourly-ceiling", [one, (SERVICE, chat(**changes))])
    assert "the service chat in us-east4, which the program does not declare" in message
    assert stack_violations("stack-hourly-ceiling", [one, (SERVICE, chat())]) == []


UNDERSTOOD = re.compile(
    r"compute\.instances\.(?:insert|delete|stop|suspend)"
    r"|compute\.(?:disks|instanceGroupManagers|regionDisks|regionInstanceGroupManagers)\.delete"
    r"|tpu\.projects\.locations\.(?:nodes\.(?:create|delete|stop)|queuedResources\.(?:create|delete))"
    r"|run\.projects\.locations\.(?:services\.(?:patch|delete|revisions\.delete)|(?:jobs|workerPools)\.delete"
    r"|jobs\.executions\.(?:delete|cancel))"
    r"|container\.projects\.(?:locations|zones)\.clusters\.(?:nodePools\.)?delete"
    r"|aiplatform\.projects\.locations\.(?:endpoints|customJobs|trainingPipelines|batchPredictionJobs)\.delete"
    r"|batch\.projects\.locations\.jobs\.delete"
)


def methods(resource: dict[str, Any]) -> list[dict[str, Any]]:
    below = [one for inner in resource.get("resources", {}).values() for one in methods(inner)]
    return [*resource.get("methods", {}).values(), *below]


def is_understood(uri: str, method: str) -> bool:
    try:
        return not isinstance(request_of_job(Inputs(job(uri, method))), Unread)
    except InputError:
        return True  # its body is asked for


@pytest.mark.slow
def test_no_other_writing_method_of_all_apis_of_google_is_understood() -> None:
    folder = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    writing: set[str] = set()
    count = 0
    for file in folder.glob("*.json"):
        document = json.loads(file.read_text(encoding="utf-8"))
        for one in methods(document) if "rootUrl" in document else ():
            if one["httpMethod"] != "GET":
                path = re.sub(r"\{[^}]*\}", "x", one.get("flatPath") or one["path"])
                count += 1
                if is_understood(document["rootUrl"] + document["servicePath"] + path, one["httpMethod"]):
                    writing.add(one["id"])
    assert [name for name in sorted(writing) if not UNDERSTOOD.fullmatch(name)] == []
    assert len(writing) >= 28
    assert count > 15_000
