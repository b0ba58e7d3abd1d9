"""Changes made by hand to a deployed stack: drift, status and doctor name each, and none of a stack left alone."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bezel.engine.events.values import Events
from bezel.engine.outcomes import Exit
from bezel.engine.run.engine import EngineRun
from bezel.engine.run.process import End
from bezel.engine.run.stack import StackEngine
from bezel.operations.doctor.access_checks import access_jobs
from bezel.operations.doctor.check import run_all
from bezel.operations.outside import outside_of
from bezel.operations.status.status import StackStatus, Status, StatusArguments, status
from bezel.outside_changes.change import Findings
from bezel.outside_changes.declared import declared_in, entries_in
from bezel.upkeep.drift import StackDrift, drift_of
from bezel.upkeep.drift_report import DriftReport
from localcloud_support.in_process import COMPUTE, PARENT
from tests.support.operations.owned_stack import (
    CONTAINER,
    JOBS,
    LIMITS,
    NETWORK,
    NODE,
    REGION,
    RUN,
    RUNNER,
    SCALER,
    SERVICE,
    SUBNETWORK,
    VM,
    OwnedStack,
    owned_stack,
    resource,
)

MALLORY = "user:mallory@example.com"
SECRET = f"/secretmanager/v1/{PARENT}/secrets/hf"
ACCOUNT = f"/iam/v1/{PARENT}/serviceAccounts/{RUNNER}"
Change = Callable[[OwnedStack], None]


def patch(mask: str, **values: Any) -> Change:
    return lambda stack: stack.project.ok("PATCH", f"{RUN}/{SERVICE}", values, updateMask=mask)


def bind(path: str, role: str, member: str = MALLORY, *, get: str = "GET", sign: str = ":") -> Change:
    return lambda stack: stack.grant(
        (get, f"{path}{sign}getIamPolicy"), ("POST", f"{path}{sign}setIamPolicy"), role, member
    )


def bind_bucket(bucket: str, role: str, member: str = MALLORY) -> Change:
    path = f"/storage/v1/b/{bucket}/iam"
    return lambda stack: stack.grant(("GET", path), ("PUT", path), role, member, wrap=False)


def tag(stack: OwnedStack) -> None:
    *_, revision = stack.project.ok("GET", f"{RUN}/{SERVICE}/revisions")["revisions"]
    newest = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}
    short = revision["name"].rpartition("/")[2]
    old = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", "revision": short, "tag": "old"}
    stack.project.ok("PATCH", f"{RUN}/{SERVICE}", {"traffic": [newest, old]}, updateMask="traffic")


def setting(stack: OwnedStack, verb: str, field: str, **values: Any) -> None:
    instance = stack.project.ok("GET", VM)
    stack.project.ok("POST", f"{VM}/{verb}", {"fingerprint": instance[field]["fingerprint"], **values})


def job(name: str, uri: str, account: str) -> Change:
    target = {"uri": uri, "httpMethod": "PATCH", "oauthToken": {"serviceAccountEmail": account}}
    body = {"name": f"{REGION}/jobs/{name}", "schedule": "0 0 * * *", "timeZone": "UTC", "httpTarget": target}
    return lambda stack: stack.project.ok("POST", JOBS, body)


def bucket(**values: Any) -> Change:
    return lambda stack: stack.project.ok("PATCH", "/storage/v1/b/own-models", values)


RULE = {"name": "ssh", "network": NETWORK, "sourceRanges": ["0.0.0.0/0"], "allowed": [{"IPProtocol": "tcp"}]}
ALL = {"name": "out", "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"}
ROUTER = {"name": "out", "network": NETWORK, "nats": [ALL]}
WIDE = {"sourceRanges": ["0.0.0.0/0"]}
OPEN = {"publicAccessPrevention": "inherited", "uniformBucketLevelAccess": {"enabled": True}}
LARGER = {**CONTAINER, "resources": {"limits": LIMITS | {"cpu": "8"}}}
# What is done by hand, and the finding: kind, resource, setting, and a part of the cloud's value.
CHANGES: list[tuple[Change, tuple[str, str, str, str]]] = [
    (patch("scaling.minInstanceCount", scaling={"minInstanceCount": 3}),
     ("cost", "service llm", "scaling.minInstanceCount", "3")),
    (patch("scaling.maxInstanceCount", scaling={"maxInstanceCount": 40}),
     ("cost", "service llm", "scaling.maxInstanceCount", "40")),
    (patch("scaling", scaling={"scalingMode": "MANUAL", "manualInstanceCount": 2}),
     ("cost", "service llm", "scaling.manualInstanceCount", "2")),
    (patch("scaling", scaling={"scalingMode": "MANUAL", "manualInstanceCount": 2}),
     ("cost", "service llm", "scaling.scalingMode", "MANUAL")),
    (patch("template.scaling.minInstanceCount", template={"scaling": {"minInstanceCount": 1}}),
     ("cost", "service llm", "template.scaling.minInstanceCount", "1")),
    (patch("template.scaling.maxInstanceCount", template={"scaling": {"maxInstanceCount": 2}}),
     ("cost", "service llm", "template.scaling.maxInstanceCount", "2")),
    (patch("template.timeout", template={"timeout": "3000s"}),
     ("cost", "service llm", "template.timeout", "3000s")),
    (patch("template.containers", template={"containers": [LARGER]}),
     ("cost", "service llm", "template.containers[0].resources.limits.cpu", "8")),
    (patch("template.serviceAccount", template={"serviceAccount": SCALER}),
     ("access", "service llm", "template.serviceAccount", SCALER)),
    (patch("ingress", ingress="INGRESS_TRAFFIC_INTERNAL_ONLY"),
     ("access", "service llm", "ingress", "INGRESS_TRAFFIC_INTERNAL_ONLY")),
    (patch("invokerIamDisabled", invokerIamDisabled=True), ("access", "service llm", "invokerIamDisabled", "true")),
    (patch("iapEnabled", iapEnabled=True), ("access", "service llm", "iapEnabled", "true")),
    (patch("sshEnabled", sshEnabled=True), ("access", "service llm", "sshEnabled", "true")),
    (patch("defaultUriDisabled", defaultUriDisabled=True), ("access", "service llm", "defaultUriDisabled", "true")),
    (patch("customAudiences", customAudiences=["https://other.example"]),
     ("access", "service llm", "customAudiences", "https://other.example")),
    (tag, ("cost", "service llm", "traffic, tag old", "with the tag old")),
    (bind(f"{RUN}/{SERVICE}", "roles/run.invoker", "allUsers"),
     ("access", "service llm", "roles/run.invoker", "allUsers")),
    (bind(f"{RUN}/{SERVICE}", "roles/run.invoker", "allAuthenticatedUsers"),
     ("access", "service llm", "roles/run.invoker", "allAuthenticatedUsers")),
    (bind(f"{RUN}/{SERVICE}", "roles/run.admin"), ("access", "service llm", "roles/run.admin", MALLORY)),
    (bind(f"{RUN}/{SERVICE}", "roles/run.invoker", f"serviceAccount:{SCALER}"),
     ("access", "service llm", "roles/run.invoker", SCALER)),
    (bind(ACCOUNT, "roles/iam.serviceAccountTokenCreator", get="POST"),
     ("access", f"service account {RUNNER}", "roles/iam.serviceAccountTokenCreator", MALLORY)),
    (lambda stack: stack.project.ok("POST", f"{ACCOUNT}/keys", {}),
     ("access", f"service account {RUNNER}", "keys", "")),
    (bind(f"/crm/v1/{PARENT}", "roles/editor", f"serviceAccount:{RUNNER}", get="POST"),
     ("access", "project bezel-local", "roles/editor", RUNNER)),
    (bind_bucket("own-models", "roles/storage.objectViewer"),
     ("access", "bucket own-models", "roles/storage.objectViewer", MALLORY)),
    (bind_bucket("shared-models", "roles/storage.objectViewer", "allUsers"),
     ("access", "bucket shared-models", "roles/storage.objectViewer", "allUsers")),
    (bucket(iamConfiguration=OPEN),
     ("access", "bucket own-models", "iamConfiguration.publicAccessPrevention", "inherited")),
    (bucket(iamConfiguration={"uniformBucketLevelAccess": {"enabled": False}}),
     ("access", "bucket own-models", "iamConfiguration.uniformBucketLevelAccess.enabled", "false")),
    (bucket(defaultEventBasedHold=True), ("cost", "bucket own-models", "defaultEventBasedHold", "true")),
    (bucket(retentionPolicy={"retentionPeriod": "60"}),
     ("cost", "bucket own-models", "retentionPolicy.retentionPeriod", "60")),
    (bucket(versioning={"enabled": True}), ("cost", "bucket own-models", "versioning.enabled", "true")),
    (bucket(softDeletePolicy={"retentionDurationSeconds": 7776000}),
     ("cost", "bucket own-models", "softDeletePolicy.retentionDurationSeconds", "7776000")),
    (bind(SECRET, "roles/secretmanager.secretAccessor"),
     ("access", "secret hf", "roles/secretmanager.secretAccessor", MALLORY)),
    (bind(f"/artifactregistry/v1/{REGION}/repositories/hub", "roles/artifactregistry.reader", "allUsers"),
     ("access", "repository hub", "roles/artifactregistry.reader", "allUsers")),
    (lambda stack: stack.project.ok("POST", f"{JOBS}/llm-scaling-0:pause", {}),
     ("cost", "job llm-scaling-0", "state", "PAUSED")),
    (job("mine", f"https://run.googleapis.com/v2/{SERVICE}?updateMask=scaling", f"deployer@{RUNNER.partition('@')[2]}"),
     ("cost", "job mine", "httpTarget", SERVICE)),
    (job("other", "https://example.com/", RUNNER), ("cost", "job other", "httpTarget", "example.com")),
    (lambda stack: stack.project.ok("POST", f"{COMPUTE}/global/firewalls", RULE),
     ("access", "network net", "firewall rule ssh", "tcp from 0.0.0.0/0 to every machine")),
    (lambda stack: stack.project.ok("PATCH", f"{COMPUTE}/global/firewalls/net-gateway", WIDE),
     ("access", "network net", "firewall rule net-gateway", "tcp:8000 from 0.0.0.0/0")),
    (lambda stack: stack.project.ok("POST", f"{COMPUTE}/regions/us-east5/routers", ROUTER),
     ("cost", "network net", "NAT out", "ALL_SUBNETWORKS_ALL_IP_RANGES")),
    (bind(f"/compute/v1/{SUBNETWORK}", "roles/compute.networkUser", sign="/"),
     ("access", "subnetwork net-us-east5", "roles/compute.networkUser", MALLORY)),
    (lambda stack: stack.project.ok("POST", f"{VM}/addAccessConfig", {"name": "door"}, networkInterface="nic0"),
     ("access", "machine vm", "networkInterfaces[0].accessConfigs", "")),
    (lambda stack: setting(stack, "setTags", "tags", items=["bezel-node", "ssh"]),
     ("access", "machine vm", "tags", "bezel-node, ssh")),
    (lambda stack: setting(stack, "setMetadata", "metadata", items=[
        {"key": "startup-script", "value": "#!/bin/sh"}, {"key": "ssh-keys", "value": "me:ssh-rsa AAAA"}]),
     ("access", "machine vm", "metadata.ssh-keys", "(15 characters)")),
    (bind(VM, "roles/compute.instanceAdmin.v1", sign="/"),
     ("access", "machine vm", "roles/compute.instanceAdmin.v1", MALLORY)),
    (lambda stack: stack.project.ok("PATCH", NODE, {"metadata": {"startup-script": "#!/bin/sh\ncurl evil"}},
                                    updateMask="metadata"),
     ("access", "machine tpu", "metadata.startup-script", "(19 characters)")),
]  # fmt: skip


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnedStack]:
    with owned_stack(tmp_path) as made:
        for name, value in made.environ.items():
            monkeypatch.setenv(name, value)
        yield made


class Engine:
    """An engine whose preview finds nothing: what nobody declares, it does not compare."""

    def run(self, _operation: str, *, options: list[str]) -> EngineRun:
        assert options == ["--refresh"]
        return EngineRun(End(0, interrupted=False), Events(complete=True), 0)


def findings(stack: OwnedStack) -> Findings:
    with stack.context() as context:
        return outside_of(context, "dev", declared_in(entries_in(stack.resources)))


def drift(stack: OwnedStack) -> StackDrift:
    engine: Any = StackEngine(Engine(), {"deployment": {"resources": stack.resources}})  # type: ignore[arg-type]
    with stack.context() as context:
        compare = partial(outside_of, context, "dev")
        return drift_of("dev", nullcontext(engine), lambda entries: compare(declared_in(entries)))


def status_of(stack: OwnedStack) -> StackStatus:
    with stack.context() as context:
        (stack_status,) = status(context, StatusArguments(stack="dev")).stacks
        return stack_status


def assert_named(stack: OwnedStack, expected: Iterable[tuple[str, str, str, str]]) -> None:
    """Each finding is made, with its part of the cloud's value."""
    changes = findings(stack)
    assert changes.not_judged == ()
    for kind, what, name, cloud in expected:
        same = [each for each in changes.changes if (each.kind, each.resource, each.setting) == (kind, what, name)]
        assert any(cloud in each.cloud for each in same), (what, name, [each.line() for each in changes.changes])


@pytest.mark.slow
def test_each_change_by_hand_is_named_by_drift_status_and_doctor(stack: OwnedStack) -> None:
    fresh = drift(stack)
    assert (fresh.verdict, fresh.outside, fresh.not_judged) == ("clean", (), ())
    assert "outside" not in Status(stacks=(status_of(stack),)).text()

    expected: list[tuple[str, str, str, str]] = []
    for change, finding in CHANGES:
        change(stack)
        expected.append(finding)
        if finding[2] == "scaling.scalingMode":  # instances of manual scaling have no minimum and no maximum
            assert_named(stack, expected[2:])
            patch("scaling", scaling={"minInstanceCount": 3, "maxInstanceCount": 40})(stack)
            expected = expected[:2]
    assert_named(stack, expected)
    named = {finding[:3] for finding in expected}

    drifted, shown = drift(stack), status_of(stack)
    with stack.context() as context:
        checks = run_all(access_jobs(context, ["dev"], 60.0), 60.0)
    assert {(each.kind, each.resource, each.setting) for each in drifted.outside} == named
    assert {(each.kind, each.resource, each.setting) for each in shown.outside} == named
    report = DriftReport((drifted,))
    assert report.exit_code == Exit.DRIFTED
    text, drift_text, drift_markdown = Status(stacks=(shown,)).text(), report.text(), report.markdown()
    for kind, what, name in named:
        assert f"{what}: {name}: cloud" in drift_text
        assert f"{what}: {name}: cloud" in text
        assert f"`{name}`" in drift_markdown
        (state,) = {each.state for each in checks if each.detail.startswith(f"{what}: {name}: cloud")}
        assert state == ("problem" if kind == "access" else "warning"), (what, name)
    assert json.loads(json.dumps(report.as_json()))["stacks"][0]["outside"]
    assert (shown.min_instances, shown.max_instances) == (3, 40)
    # Declared are one instance and none without traffic: 1.0465 USD per hour and 0, beside the machines.
    assert shown.usd_per_hour is not None
    assert shown.usd_per_hour_idle is not None
    assert (shown.usd_per_hour > 40, shown.usd_per_hour_idle > 3) == (True, True)


@pytest.mark.slow
def test_what_the_stack_does_by_itself_is_no_change(stack: OwnedStack) -> None:
    for minimum in (1, 0):  # the schedule's own
        patch("scaling.minInstanceCount", scaling={"minInstanceCount": minimum})(stack)
        assert findings(stack).changes == ()
    # Another stack of the same backend declares its account's access to what both use.
    role, member = "roles/secretmanager.secretAccessor", f"serviceAccount:{SCALER}"
    bind(SECRET, role, member)(stack)
    (change,) = findings(stack).changes
    assert (change.resource, change.cloud) == ("secret hf", member)
    inputs = {"project": "bezel-local", "secretId": "hf", "role": role, "member": member}
    stack.keep("other", [resource("gcp:secretmanager/secretIamMember:SecretIamMember", "x", inputs)])
    assert findings(stack).changes == ()
    # Machines that are gone, as outside of their hours, have no settings.
    stack.project.ok("DELETE", VM)
    stack.project.passes(120)
    stack.project.passes(120)
    assert findings(stack).changes == ()


PERMISSIONS = {
    "services/llm:getIamPolicy": "run.services.getIamPolicy",
    f"{RUNNER}:getIamPolicy": "iam.serviceAccounts.getIamPolicy",
    f"{RUNNER}/keys": "iam.serviceAccountKeys.list",
    "bezel-local:getIamPolicy": "resourcemanager.projects.getIamPolicy",
    "own-models/iam": "storage.buckets.getIamPolicy",
    "secrets/hf:getIamPolicy": "secretmanager.secrets.getIamPolicy",
    "repositories/hub:getIamPolicy": "artifactregistry.repositories.getIamPolicy",
    "getEffectiveFirewalls": "compute.networks.getEffectiveFirewalls",
    "net-us-east5/getIamPolicy": "compute.subnetworks.getIamPolicy",
    "instances/vm/getIamPolicy": "compute.instances.getIamPolicy",
    "nodes/tpu": "tpu.nodes.get",
    "us-east5/routers": "compute.routers.list",
    "us-east4/jobs": "cloudscheduler.jobs.list",
}


@pytest.mark.slow
def test_what_may_not_be_read_is_not_judged_with_its_permission(stack: OwnedStack) -> None:
    for part, permission in PERMISSIONS.items():
        stack.refused = {part}
        changes = findings(stack)
        assert [item.permission for item in changes.not_judged] == [permission], part
        assert permission in changes.not_judged[0].line()
    unread = drift(stack)
    assert (unread.verdict, DriftReport((unread,)).exit_code) == ("unknown", Exit.FAILED)
    assert "no drift" not in DriftReport((unread,)).text()
    assert "cloudscheduler.jobs.list is missing" in DriftReport((unread,)).text()
    assert any("cloudscheduler.jobs.list" in text for text in status_of(stack).not_judged)


@pytest.mark.slow
def test_a_stack_is_read_by_few_requests(stack: OwnedStack) -> None:
    findings(stack)
    assert len(stack.asked) <= 25, sorted(stack.asked)
