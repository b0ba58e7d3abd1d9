"""The stand-in against localcloud's own daemon: what one sends, the other takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bezel.engine.events.open_changes import unfinished_changes
from bezel.engine.events.reader import read_events
from bezel.engine.state.resource_ids import derived_id
from bezel_localcloud import control
from bezel_pulumi_offline.google.errors import ProviderError
from bezel_pulumi_offline.lifecycle.values import decode
from bezel_pulumi_offline.plugin.docker_plugin import digest_of
from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin
from pulumi_offline_support.client import FailedError, Provider, ServedProvider, urn
from pulumi_offline_support.programs import PROGRAMS
from tests.support.e2e import warm_localcloud

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

APIS = (
    *(
        "artifactregistry",
        "billingbudgets",
        "certificatemanager",
        "cloudkms",
        "cloudscheduler",
        "compute",
        "dns",
        "iam",
    ),
    *("run", "secretmanager"),
)
PARENTS = (
    "gcp:serviceaccount/account:Account",
    "gcp:storage/bucket:Bucket",
    "gcp:secretmanager/secret:Secret",
    "gcp:artifactregistry/repository:Repository",
    "gcp:compute/network:Network",
    "gcp:compute/router:Router",
    "gcp:kms/keyRing:KeyRing",
    "gcp:kms/cryptoKey:CryptoKey",
    # Deleted ones keep their names, so they are made once.
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool",
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
    "gcp:projects/iAMCustomRole:IAMCustomRole",
    # Each in the order of its uses.
    "gcp:compute/globalAddress:GlobalAddress",
    "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup",
    "gcp:compute/securityPolicy:SecurityPolicy",
    "gcp:compute/sSLPolicy:SSLPolicy",
    "gcp:compute/backendService:BackendService",
    "gcp:compute/uRLMap:URLMap",
    "gcp:compute/managedSslCertificate:ManagedSslCertificate",
    "gcp:compute/targetHttpsProxy:TargetHttpsProxy",
    "gcp:certificatemanager/dnsAuthorization:DnsAuthorization",
    "gcp:certificatemanager/certificate:Certificate",
    "gcp:certificatemanager/certificateMap:CertificateMap",
    "gcp:dns/managedZone:ManagedZone",
)
LATER = (
    "gcp:storage/bucketObject:BucketObject",
    "gcp:storage/bucketIAMMember:BucketIAMMember",
    "gcp:secretmanager/secretVersion:SecretVersion",
    "gcp:secretmanager/secretIamMember:SecretIamMember",
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
    "gcp:serviceaccount/iAMMember:IAMMember",
    "gcp:compute/subnetwork:Subnetwork",
    "gcp:compute/firewall:Firewall",
    "gcp:compute/routerNat:RouterNat",
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
    "gcp:projects/iAMMember:IAMMember",
    "gcp:projects/service:Service",
    "gcp:billing/budget:Budget",
    "gcp:monitoring/notificationChannel:NotificationChannel",
    "gcp:monitoring/alertPolicy:AlertPolicy",
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig",
    "gcp:monitoring/dashboard:Dashboard",
    "gcp:logging/metric:Metric",
    "gcp:cloudscheduler/job:Job",
    "gcp:compute/globalForwardingRule:GlobalForwardingRule",
    "gcp:compute/targetHttpProxy:TargetHttpProxy",
    "gcp:certificatemanager/certificateMapEntry:CertificateMapEntry",
    "gcp:dns/recordSet:RecordSet",
)
# Types whose id Google chooses: what a killed run made of them is not found again by its inputs.
NUMBERED = {
    "gcp:secretmanager/secretVersion:SecretVersion",
    "gcp:billing/budget:Budget",
    "gcp:monitoring/notificationChannel:NotificationChannel",
    "gcp:monitoring/alertPolicy:AlertPolicy",
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig",
    "gcp:monitoring/dashboard:Dashboard",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    directory: Path = tmp_path_factory.mktemp("localcloud")
    yield control.environment(warm_localcloud.start(directory))
    control.stop(directory)


@pytest.fixture(scope="module")
def local(environment: dict[str, str]) -> Iterator[Provider]:
    provider = ServedProvider(GooglePlugin(environment))
    for api in APIS:
        provider.create("gcp:projects/service:Service", {"service": f"{api}.googleapis.com"})
    yield provider
    provider.close()


def program_of(kind: str) -> dict[str, Any]:
    """A resource as elsewhere; a NAT lies in the router that is made here."""
    if kind != "gcp:compute/routerNat:RouterNat":
        return PROGRAMS[kind]
    return {**PROGRAMS[kind], "router": PROGRAMS["gcp:compute/router:Router"]["name"]}


@pytest.fixture(scope="module")
def parents(local: Provider) -> dict[str, str]:
    return {kind: local.create(kind, PROGRAMS[kind])[0] for kind in PARENTS}


@pytest.mark.parametrize("kind", [*PARENTS, *LATER])
def test_localcloud_takes_and_gives_back_each_resource(kind: str, local: Provider, parents: dict[str, str]) -> None:
    program = program_of(kind)
    if kind in parents:  # made by the fixture: here as an import finds them
        resource_id, made = parents[kind], decode(local.read(kind, parents[kind]).properties)
    else:
        resource_id, made = local.create(kind, program)
    again = local.read(kind, resource_id, made, local.inputs(kind, program))
    assert again.id == resource_id
    assert not local.diff(kind, resource_id, decode(again.properties), program).diffs
    if kind not in parents:
        local.delete(kind, resource_id, decode(again.properties))
        assert local.read(kind, resource_id, made).id == ""


def test_a_second_of_the_same_name_is_refused(local: Provider, parents: dict[str, str]) -> None:
    assert parents
    with pytest.raises(FailedError, match="Error creating Secret: googleapi: Error 409"):
        local.create("gcp:secretmanager/secret:Secret", PROGRAMS["gcp:secretmanager/secret:Secret"])


@pytest.mark.usefixtures("parents")
def test_a_member_with_a_condition_is_made_read_and_removed(local: Provider) -> None:
    kind = "gcp:storage/bucketIAMMember:BucketIAMMember"
    below = 'resource.name.startsWith("projects/_/buckets/models/objects/plans/")'
    program = {**PROGRAMS[kind], "condition": {"title": "plans", "expression": below}}
    resource_id, made = local.create(kind, program)
    again = local.read(kind, resource_id, made, local.inputs(kind, program))
    assert decode(again.properties)["condition"]["expression"] == below
    assert not local.diff(kind, resource_id, decode(again.properties), program).diffs
    local.delete(kind, resource_id, made)
    assert local.read(kind, resource_id, made).id == ""


def test_a_deleted_pool_is_gone_and_its_name_is_not_free(local: Provider) -> None:
    kind = "gcp:iam/workloadIdentityPool:WorkloadIdentityPool"
    program = {**PROGRAMS[kind], "workloadIdentityPoolId": "short-lived"}
    resource_id, made = local.create(kind, program)
    changed = {**program, "description": "of a test"}
    made = local.update(kind, resource_id, made, changed)
    assert made["description"] == "of a test"
    local.delete(kind, resource_id, made)
    assert local.read(kind, resource_id, made).id == ""
    with pytest.raises(FailedError, match="Error creating WorkloadIdentityPool: googleapi: Error 409"):
        local.create(kind, program)


def test_a_deleted_role_is_shown_as_such_and_restored_by_the_next_create(local: Provider) -> None:
    kind = "gcp:projects/iAMCustomRole:IAMCustomRole"
    program = {**PROGRAMS[kind], "roleId": "shortLived"}
    resource_id, made = local.create(kind, program)
    local.delete(kind, resource_id, made)
    assert decode(local.read(kind, resource_id, made).properties)["deleted"] is True
    again, restored = local.create(kind, {**program, "title": "Another title"})
    assert again == resource_id
    assert (restored["deleted"], restored["title"]) == (False, "Another title")
    with pytest.raises(FailedError, match="already exists and must be imported"):
        local.create(kind, program)


def named_by_a_log(kind: str, inputs: dict[str, Any], refusal: str, log: Path) -> str | None:
    """The id of what a refused create is in the way of, as the next run tells it from the engine's log."""
    metadata = {"op": "create", "urn": urn(kind), "type": kind}
    resource = {"urn": urn(kind), "custom": True, "type": kind, "inputs": inputs}
    events: list[dict[str, Any]] = [
        {"resourcePreEvent": {"metadata": metadata | {"new": resource}}},
        {"diagnosticEvent": {"urn": urn(kind), "severity": "error", "message": refusal}},
        {"resOpFailedEvent": {"metadata": metadata, "status": 0}},
    ]
    log.write_text("\n".join(json.dumps(event) for event in events))
    (change,) = unfinished_changes(read_events(log))
    assert change.exists, refusal
    return derived_id(kind, change.resource["inputs"], "bezel-local")


@pytest.mark.parametrize("kind", sorted({*PARENTS, *LATER} - NUMBERED))
def test_what_was_made_without_an_answer_is_found_again_by_its_inputs(
    kind: str, local: Provider, parents: dict[str, str], tmp_path: Path
) -> None:
    program = program_of(kind)
    made, state = (parents[kind], {}) if kind in parents else local.create(kind, program)
    resource: str | None
    try:
        resource, _ = local.create(kind, program)
    except FailedError as refused:
        resource = named_by_a_log(kind, local.inputs(kind, program), refused.text, tmp_path / "events.jsonl")
    assert resource == made
    if kind not in parents:  # for the test that makes one of each kind, whichever runs first
        local.delete(kind, made, state)


def test_a_digest_is_looked_up_and_never_made_up(environment: dict[str, str]) -> None:
    endpoint = environment["BEZEL_REGISTRY_ENDPOINT"]
    assert digest_of("docker.io/vllm/vllm-openai:v0.32.0", endpoint).startswith("sha256:")
    with pytest.raises(ProviderError, match="has no image"):
        digest_of("docker.io/vllm/vllm-openai:v0.0.1", endpoint)
