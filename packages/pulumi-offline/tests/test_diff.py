"""A change is an update or a replacement as the table says, at the place where it is, and nothing else is one."""

from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2 as pb

from bezel_pulumi_offline.lifecycle.values import UNKNOWN, decode
from pulumi_offline_support.client import Provider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, with_change

SERVICE = "gcp:cloudrunv2/service:Service"
BUCKET = "gcp:storage/bucket:Bucket"
UPTIME = "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig"
KEY = "gcp:kms/cryptoKey:CryptoKey"
FIREWALL = "gcp:compute/firewall:Firewall"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"
KINDS = pb.PropertyDiff.Kind


def create_and_refresh(gcp: Provider, kind: str) -> tuple[str, dict[str, Any]]:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    return resource_id, decode(gcp.read(kind, resource_id, made, gcp.inputs(kind, PROGRAMS[kind])).properties)


def kinds_by_path(answer: Any) -> dict[str, str]:
    return {path: KINDS.Name(item.kind) for path, item in answer.detailedDiff.items()}


CONTAINER = "template.containers.0"
# A rule's condition is a set of one: another age is another member, without the zeros that were read of the old one.
GONE_WITH_IT = (
    "daysSinceCustomTime",
    "daysSinceNoncurrentTime",
    "numNewerVersions",
    "sendAgeIfZero",
    "sendDaysSinceCustomTimeIfZero",
    "sendDaysSinceNoncurrentTimeIfZero",
    "sendNumNewerVersionsIfZero",
    "sizeAboveBytes",
    "sizeBelowBytes",
)
RULE_REPLACED = {
    "lifecycleRules[0].condition.age": "UPDATE",
    "lifecycleRules[0].condition.withState": "UPDATE",
    **{f"lifecycleRules[0].condition.{name}": "DELETE" for name in GONE_WITH_IT},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "path", "value", "expected"),
    [
        (SERVICE, f"{CONTAINER}.args.1", "--max-model-len=8192", {"template.containers[0].args[1]": "UPDATE"}),
        (SERVICE, f"{CONTAINER}.args.1", None, {"template.containers[0].args[1]": "DELETE"}),
        (
            SERVICE,
            f"{CONTAINER}.resources.limits",
            {"cpu": "8", "nvidia.com/gpu": "2"},
            {
                "template.containers[0].resources.limits.cpu": "UPDATE",
                'template.containers[0].resources.limits["nvidia.com/gpu"]': "UPDATE",
            },
        ),
        (SERVICE, "template.scaling.minInstanceCount", 1, {"template.scaling.minInstanceCount": "UPDATE"}),
        (SERVICE, "template.nodeSelector", {"accelerator": "nvidia-l4"}, {"template.nodeSelector": "ADD"}),
        (SERVICE, "deletionProtection", True, {"deletionProtection": "UPDATE"}),
        (SERVICE, "location", "europe-west4", {"location": "UPDATE_REPLACE"}),
        (BUCKET, "lifecycleRules.0.condition.age", 60, RULE_REPLACED),
        (BUCKET, "versioning.enabled", True, {"versioning.enabled": "UPDATE"}),
        (BUCKET, "location", "EU", {"location": "UPDATE_REPLACE"}),
        ("gcp:serviceaccount/account:Account", "accountId", "another", {"accountId": "UPDATE_REPLACE"}),
        (
            "gcp:secretmanager/secret:Secret",
            "replication",
            {"userManaged": {"replicas": [{"location": "us-central1"}]}},
            {"replication.auto": "DELETE_REPLACE", "replication.userManaged": "ADD_REPLACE"},
        ),
        (
            "gcp:secretmanager/secret:Secret",
            "replication.auto",
            {"customerManagedEncryption": {"kmsKeyName": "projects/p/locations/global/keyRings/r/cryptoKeys/k"}},
            {"replication.auto.customerManagedEncryption": "ADD"},
        ),
        (
            BUCKET,
            "customPlacementConfig",
            {"dataLocations": ["US-EAST1", "US-WEST1"]},
            {"customPlacementConfig": "ADD_REPLACE"},
        ),
        ("gcp:secretmanager/secretVersion:SecretVersion", "secretData", "b", {"secretData": "UPDATE_REPLACE"}),
        ("gcp:secretmanager/secretVersion:SecretVersion", "enabled", False, {"enabled": "UPDATE"}),
        ("gcp:artifactregistry/repository:Repository", "description", "x", {"description": "UPDATE"}),
        ("gcp:artifactregistry/repository:Repository", "format", "PYTHON", {"format": "UPDATE_REPLACE"}),
        ("gcp:projects/service:Service", "disableOnDestroy", False, {"disableOnDestroy": "UPDATE"}),
        ("gcp:projects/iAMMember:IAMMember", "role", "roles/viewer", {"role": "UPDATE_REPLACE"}),
        ("gcp:storage/bucketObject:BucketObject", "content", "bye", {"content": "UPDATE", "detectMd5hash": "UPDATE"}),
    ],
)
def test_a_change_shows_where_it_is(
    kind: str, path: str, value: Any, expected: dict[str, str], gcp: Provider, google: FakeGoogle
) -> None:
    del google
    resource_id, made = create_and_refresh(gcp, kind)
    answer = gcp.diff(kind, resource_id, made, with_change(PROGRAMS[kind], path, value))
    shown = kinds_by_path(answer)
    assert shown == expected
    assert list(answer.diffs) == sorted({name.split(".")[0].split("[")[0] for name in expected})
    assert list(answer.replaces) == sorted({name.split(".")[0] for name, how in expected.items() if "REPLACE" in how})
    assert not set(answer.stables) & set(answer.replaces)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        (SERVICE, "template.containers.0.envs", [{"name": "A", "value": "2"}, {"name": "B", "value": "1"}]),
        (SERVICE, "scaling", None),  # a block of zeros
        (SERVICE, "template.containers.0.resources.cpuIdle", None),
        (BUCKET, "location", "US-CENTRAL1"),
        ("gcp:storage/bucketIAMMember:BucketIAMMember", "bucket", "b/models"),
        ("gcp:secretmanager/secretIamMember:SecretIamMember", "secretId", "hf"),
        ("gcp:serviceaccount/account:Account", "disabled", False),
    ],
)
def test_what_means_the_same_is_no_change(kind: str, path: str, value: Any, gcp: Provider) -> None:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    answer = gcp.diff(kind, resource_id, made, with_change(PROGRAMS[kind], path, value))
    assert kinds_by_path(answer) == {}
    assert answer.changes == pb.DiffResponse.DIFF_NONE


FULL: dict[str, dict[str, Any]] = {
    SERVICE: with_change(
        {
            **PROGRAMS[SERVICE],
            "scaling": {"minInstanceCount": 1, "maxInstanceCount": 3},
            "traffics": [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}],
        },
        f"{CONTAINER}.readinessProbe",
        {"httpGet": {"path": "/ready"}, "periodSeconds": 5, "timeoutSeconds": 2, "successThreshold": 2},
    ),
    UPTIME: PROGRAMS[UPTIME],
    KEY: {**PROGRAMS[KEY], "skipInitialVersionCreation": True},
    FIREWALL: PROGRAMS[FIREWALL],
    REPOSITORY: {**PROGRAMS[REPOSITORY], "mavenConfig": {}},
    ROLE: PROGRAMS[ROLE],
}
ENVS = [{"name": "A", "value": "2"}, {"name": "B", "value": "1"}]
TCP = {"protocol": "tcp", "ports": ["8000"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "path", "value", "verdict"),
    [
        # Optional and chosen by Google where the program says nothing: what is removed stays as it is.
        (SERVICE, f"{CONTAINER}.resources.limits.cpu", None, "same"),
        (SERVICE, "template.scaling.maxInstanceCount", None, "same"),
        (SERVICE, "scaling.minInstanceCount", None, "same"),
        (SERVICE, "scaling.maxInstanceCount", None, "same"),
        (SERVICE, "traffics.0.percent", None, "same"),
        (SERVICE, f"{CONTAINER}.readinessProbe.periodSeconds", None, "same"),
        (SERVICE, f"{CONTAINER}.readinessProbe.timeoutSeconds", None, "same"),
        (SERVICE, f"{CONTAINER}.readinessProbe.successThreshold", None, "same"),
        (SERVICE, f"{CONTAINER}.readinessProbe.httpGet.path", None, "same"),
        (SERVICE, f"{CONTAINER}.ports", None, "same"),
        (UPTIME, "monitoredResource.labels.project_id", None, "same"),
        # The same property with another value, and what lies beside it and is not chosen by Google.
        (SERVICE, f"{CONTAINER}.resources.limits.cpu", "8", "update"),
        (SERVICE, f"{CONTAINER}.resources.limits", {"cpu": "4"}, "update"),
        (SERVICE, "template.scaling.maxInstanceCount", 2, "update"),
        (SERVICE, "scaling.minInstanceCount", 2, "update"),
        (SERVICE, "traffics.0.percent", 50, "update"),
        (SERVICE, f"{CONTAINER}.readinessProbe.periodSeconds", 6, "update"),
        (SERVICE, f"{CONTAINER}.readinessProbe", None, "update"),
        (SERVICE, f"{CONTAINER}.startupProbe.periodSeconds", 11, "update"),
        (SERVICE, f"{CONTAINER}.ports.containerPort", None, "update"),
        (UPTIME, "monitoredResource.labels.project_id", "another", "replace"),
        (UPTIME, "monitoredResource.labels.host", None, "replace"),
        # A removed block: what returns to its default has not changed.
        (UPTIME, "httpCheck", None, "update"),
        (UPTIME, "httpCheck.requestMethod", "POST", "replace"),
        (REPOSITORY, "mavenConfig", None, "same"),
        # Sets have each member once.
        (SERVICE, f"{CONTAINER}.envs", [*ENVS, ENVS[0]], "same"),
        (SERVICE, f"{CONTAINER}.envs", [*ENVS, {"name": "A", "value": "3"}], "update"),
        (FIREWALL, "allows", [TCP, TCP], "same"),
        (FIREWALL, "allows", [TCP, {**TCP, "protocol": "udp"}], "update"),
        (FIREWALL, "targetTags", ["bezel-node", "bezel-node"], "same"),
        (FIREWALL, "sourceRanges", ["10.80.0.0/24", "10.79.0.0/24", "10.79.0.0/24"], "same"),
        (FIREWALL, "sourceRanges", ["10.80.0.0/24", "10.80.0.0/24"], "update"),
        (ROLE, "permissions", ["compute.networks.get", "run.services.get", "run.services.get"], "same"),
        # What counts at a creation alone does not make another key.
        (KEY, "skipInitialVersionCreation", False, "update"),
        (KEY, "purpose", "MAC", "replace"),
    ],
)
def test_a_single_change_has_the_providers_verdict(
    kind: str, path: str, value: Any, verdict: str, gcp: Provider
) -> None:
    program = FULL[kind]
    resource_id, made = gcp.create(kind, program)
    answer = gcp.diff(kind, resource_id, made, with_change(program, path, value))
    assert ("replace" if answer.replaces else "update" if answer.diffs else "same") == verdict


def test_a_removed_block_replaces_where_it_had_more_than_its_default(gcp: Provider) -> None:
    posted = with_change(PROGRAMS[UPTIME], "httpCheck.requestMethod", "POST")
    resource_id, made = gcp.create(UPTIME, posted)
    assert gcp.diff(UPTIME, resource_id, made, with_change(posted, "httpCheck", None)).replaces
    without = with_change(PROGRAMS[UPTIME], "httpCheck", None)
    resource_id, made = gcp.create(UPTIME, without)
    assert gcp.diff(UPTIME, resource_id, made, PROGRAMS[UPTIME]).replaces, (
        "a new one has the default, which is a change"
    )


def test_what_is_in_a_block_says_for_itself_what_its_change_takes(gcp: Provider) -> None:
    program = {**PROGRAMS[BUCKET], "customPlacementConfig": {"dataLocations": ["US-EAST1", "US-WEST1"]}}
    resource_id, made = gcp.create(BUCKET, program)
    answer = gcp.diff(
        BUCKET, resource_id, made, with_change(program, "customPlacementConfig.dataLocations.1", "US-EAST4")
    )
    assert kinds_by_path(answer) == {"customPlacementConfig.dataLocations[1]": "UPDATE_REPLACE"}
    assert "customPlacementConfig" not in answer.stables
    repository = "gcp:artifactregistry/repository:Repository"
    program = with_change(PROGRAMS[repository], "remoteRepositoryConfig.upstreamCredentials", {})
    path = "remoteRepositoryConfig.upstreamCredentials.usernamePasswordCredentials"
    program = with_change(program, path, {"username": "a", "passwordSecretVersion": "s"})
    resource_id, made = gcp.create(repository, program)
    answer = gcp.diff(repository, resource_id, made, with_change(program, f"{path}.username", "b"))
    assert kinds_by_path(answer) == {f"{path}.username": "UPDATE"}
    assert "remoteRepositoryConfig" in answer.stables


def test_a_rule_that_was_changed_is_unchanged_from_then_on(gcp: Provider) -> None:
    resource_id, made = gcp.create(BUCKET, PROGRAMS[BUCKET])
    assert made["lifecycleRules"][0]["condition"]["withState"] == "ANY"
    wanted = with_change(PROGRAMS[BUCKET], "lifecycleRules.0.condition.age", 60)
    updated = gcp.update(BUCKET, resource_id, made, wanted)
    assert updated["lifecycleRules"][0]["condition"]["withState"] == ""
    assert kinds_by_path(gcp.diff(BUCKET, resource_id, updated, wanted)) == {}


def test_an_ignored_change_is_none_and_others_beside_it_show(gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    wanted = with_change(PROGRAMS[SERVICE], "template.containers.0.args.1", "--seed=1")
    wanted["description"] = "new"
    answer = gcp.diff(SERVICE, resource_id, made, wanted, ignoreChanges=["template.containers"])
    assert kinds_by_path(answer) == {"description": "UPDATE", **NEVER_READ}


NEVER_READ = {"template.annotations": "ADD", "template.labels": "ADD"}


def test_a_map_that_was_never_read_shows_beside_any_change(gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    assert made["template"]["labels"] is None
    wanted = with_change(PROGRAMS[SERVICE], "template.containers.0.args.1", "--seed=1")
    assert kinds_by_path(gcp.diff(SERVICE, resource_id, made, wanted)) == {
        "template.containers[0].args[1]": "UPDATE",
        **NEVER_READ,
    }
    updated = gcp.update(SERVICE, resource_id, made, wanted)
    assert updated["template"]["labels"] == {}
    assert updated["annotations"] is None, "that stays null until the first refresh"
    elsewhere = with_change(PROGRAMS[SERVICE], "description", "new")
    assert kinds_by_path(gcp.diff(SERVICE, resource_id, made, elsewhere)) == {"description": "UPDATE", **NEVER_READ}
    assert kinds_by_path(gcp.diff(SERVICE, resource_id, made, PROGRAMS[SERVICE])) == {}, "alone they are no change"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        ("customAudiences", None, ["a", "b"], {"customAudiences": "ADD"}),
        ("customAudiences", ["a"], ["a", "b"], {"customAudiences[1]": "ADD"}),
        ("customAudiences", ["a", "b"], ["a"], {"customAudiences[1]": "DELETE"}),
        ("customAudiences", ["a", "b"], None, {"customAudiences": "DELETE"}),
        ("customAudiences", ["a", "b"], [], {"customAudiences": "DELETE"}),
        ("annotations", None, {"a": "b", "c": "d"}, {"annotations": "ADD"}),
        ("annotations", {"a": "b"}, {"a": "b", "c": "d"}, {"annotations.c": "ADD"}),
        ("annotations", {"a": "b"}, None, {"annotations.a": "DELETE"}),
        ("template.containers.0.volumeMounts", [{"name": "m", "mountPath": "/m"}], [], {
            "template.containers[0].volumeMounts": "DELETE",
        }),
    ],
)  # fmt: skip
def test_a_whole_list_or_map_is_named_as_such(
    path: str, before: Any, after: Any, expected: dict[str, str], gcp: Provider
) -> None:
    def with_value(value: Any) -> dict[str, Any]:
        return PROGRAMS[SERVICE] if value is None else with_change(PROGRAMS[SERVICE], path, value)

    resource_id, made = gcp.create(SERVICE, with_value(before))
    shown = kinds_by_path(gcp.diff(SERVICE, resource_id, made, with_value(after)))
    followers = {name for name in shown if name.startswith("effective")} | NEVER_READ.keys()
    assert {name: how for name, how in shown.items() if name not in followers} == expected


def test_an_unknown_value_is_a_change_until_it_is_known(gcp: Provider) -> None:
    resource_id, made = create_and_refresh(gcp, SERVICE)
    wanted = with_change(PROGRAMS[SERVICE], "template.containers.0.image", UNKNOWN)
    assert kinds_by_path(gcp.diff(SERVICE, resource_id, made, wanted)) == {"template.containers[0].image": "UPDATE"}


def test_a_member_that_others_add_to_a_set_shows_at_its_place(google: FakeGoogle, gcp: Provider) -> None:
    kind = "gcp:compute/backendService:BackendService"
    program = PROGRAMS[kind] | {"customRequestHeaders": ["X-Region: {client_region}"]}
    resource_id, made = gcp.create(kind, program)
    (service,) = google.things.values()
    service["customRequestHeaders"] = ["X-Region: {client_region}", "X-Before: a"]
    read = gcp.read(kind, resource_id, made, gcp.inputs(kind, program))
    assert decode(read.inputs)["customRequestHeaders"] == ["X-Before: a"], (
        "as many as the program's, in the state's order"
    )
    answer = gcp.diff(kind, resource_id, decode(read.properties), program)
    assert kinds_by_path(answer) == {"customRequestHeaders[0]": "DELETE"}
    service["customRequestHeaders"] = ["X-Before: a"]
    read = gcp.read(kind, resource_id, made, gcp.inputs(kind, program))
    answer = gcp.diff(kind, resource_id, decode(read.properties), program)
    assert kinds_by_path(answer) == {"customRequestHeaders[0]": "UPDATE"}
