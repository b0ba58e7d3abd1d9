"""Requests of the published provider that recordings do not hold: seen with its source of version 8.0.0."""

from typing import Any

import pytest

from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin
from bezel_pulumi_offline.resources import TYPES
from pulumi_offline_support.client import Provider, ServedProvider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, with_change

SERVICE = "gcp:cloudrunv2/service:Service"
SECRET = "gcp:secretmanager/secret:Secret"
BUCKET = "gcp:storage/bucket:Bucket"
MEMBER = "gcp:storage/bucketIAMMember:BucketIAMMember"
PROJECT_MEMBER = "gcp:projects/iAMMember:IAMMember"
ENABLED = "gcp:projects/service:Service"
FIREWALL = "gcp:compute/firewall:Firewall"
ROUTER = "gcp:compute/router:Router"
NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
JOB = "gcp:cloudscheduler/job:Job"
PLAIN_BUCKET = {"name": "plain", "location": "us-east4"}


def body(google: FakeGoogle, method: str) -> Any:
    """The content of the last request with a method."""
    return google.requests_of(method)[-1].body


@pytest.mark.parametrize(
    ("kind", "policy"), [(MEMBER, "/storage/v1/b/models"), (PROJECT_MEMBER, "/crm/v1/projects/bezel-local")]
)
@pytest.mark.parametrize("version", [1, 3])
def test_removing_a_member_leaves_the_policys_version_as_it_is(
    kind: str, policy: str, version: int, google: FakeGoogle, gcp: Provider
) -> None:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    google.policies[policy]["version"] = version
    gcp.delete(kind, resource_id, made)
    assert google.policies[policy]["version"] == version


def test_adding_a_member_raises_the_policys_version(google: FakeGoogle, gcp: Provider) -> None:
    google.policies["/storage/v1/b/models"] = {"version": 1, "etag": "e0"}
    gcp.create(MEMBER, PROGRAMS[MEMBER])
    assert google.policies["/storage/v1/b/models"]["version"] == 3


def test_a_protection_alone_is_sent_with_the_whole_service(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    google.requests.clear()
    gcp.update(SERVICE, resource_id, made, with_change(PROGRAMS[SERVICE], "deletionProtection", True))
    assert [item.method for item in google.requests] == ["PATCH", "GET"]
    assert body(google, "PATCH")["template"]["containers"]
    assert "deletionProtection" not in body(google, "PATCH")


WITH_A_POLICY = [token for token, kind in TYPES.items() if any(item.name == "deletionPolicy" for item in kind.fields)]


@pytest.mark.parametrize("kind", WITH_A_POLICY)
def test_a_deletion_policy_alone_is_not_sent(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    google.requests.clear()
    updated = gcp.update(kind, resource_id, made, {**PROGRAMS[kind], "deletionPolicy": "ABANDON"})
    assert updated["deletionPolicy"] == "ABANDON"
    assert {item.method for item in google.requests} <= {"GET"}
    google.requests.clear()
    gcp.delete(kind, resource_id, updated)
    assert google.requests == [], "it stays at Google"


@pytest.mark.parametrize("name", ["disableOnDestroy", "disableDependentServices", "checkIfServiceHasUsageOnDestroy"])
@pytest.mark.parametrize("value", [True, False])
def test_an_apis_own_settings_change_the_state_alone(name: str, value: bool, google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[ENABLED], name: not value}
    resource_id, made = gcp.create(ENABLED, program)
    google.requests.clear()
    updated = gcp.update(ENABLED, resource_id, made, {**program, name: value})
    assert google.requests == []
    assert updated == {**made, name: value}


def test_an_api_is_disabled_as_it_was_last_set(google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[ENABLED], "disableOnDestroy": False}
    resource_id, made = gcp.create(ENABLED, program)
    updated = gcp.update(ENABLED, resource_id, made, {**program, "disableOnDestroy": True})
    gcp.delete(ENABLED, resource_id, made)
    assert program["service"] in google.enabled, "as it was made"
    gcp.delete(ENABLED, resource_id, updated)
    assert program["service"] not in google.enabled


@pytest.mark.slow
def test_an_api_that_is_enabled_is_not_read_after_its_creation(google: FakeGoogle, gcp: Provider) -> None:
    google.enabled.add(PROGRAMS[ENABLED]["service"])
    gcp.create(ENABLED, PROGRAMS[ENABLED])
    assert [str(item) for item in google.requests] == ["GET /serviceusage/v1/projects/bezel-local/services"]


@pytest.mark.slow
def test_an_api_that_was_not_enabled_is_read_with_its_project(google: FakeGoogle, gcp: Provider) -> None:
    gcp.create(ENABLED, PROGRAMS[ENABLED])
    assert "GET /crm/v1/projects/bezel-local" in [str(item) for item in google.requests]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_service_usage_operations_are_polled_under_the_endpoint(version: str, google: FakeGoogle) -> None:
    """And under its version."""
    google.polls = 1
    google.fail("POST .*/services.*", 200, {"name": "operations/o", "done": False})
    google.fail("GET .*/operations/o", 200, {"name": "operations/o", "done": True, "response": {}})
    endpoint = {"GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT": f"{google.base}/serviceusage/{version}/"}
    provider = ServedProvider(GooglePlugin({**google.environment(), **endpoint}))
    try:
        google.enabled.add("other.googleapis.com")
        with pytest.raises(Exception, match="does not exist after its creation"):
            provider.create(ENABLED, PROGRAMS[ENABLED])
    finally:
        provider.close()
    paths = [item.path for item in google.requests]
    assert f"/serviceusage/{version}/operations/o" in paths
    assert not [path for path in paths if "/services" in path and "/v1/" not in path]


def test_a_plain_bucket_states_that_it_has_no_rules_nor_uniform_access(google: FakeGoogle, gcp: Provider) -> None:
    gcp.create(BUCKET, PLAIN_BUCKET)
    sent = body(google, "POST")
    assert sent["lifecycle"] == {"rule": []}
    assert sent["iamConfiguration"] == {"uniformBucketLevelAccess": {"enabled": False}}


def test_a_buckets_location_is_sent_as_it_is_written(google: FakeGoogle, gcp: Provider) -> None:
    for name, location in {"one": "us-east4", "two": "US-EAST4", "three": "Us-East4"}.items():
        resource_id, made = gcp.create(BUCKET, {**PLAIN_BUCKET, "name": name, "location": location})
        assert body(google, "POST")["location"] == location
        assert made["location"] == "US-EAST4"
        assert not gcp.diff(BUCKET, resource_id, made, {**PLAIN_BUCKET, "name": name, "location": location}).diffs


def test_force_destroy_alone_is_an_empty_patch(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(BUCKET, PLAIN_BUCKET)
    google.requests.clear()
    gcp.update(BUCKET, resource_id, made, {**PLAIN_BUCKET, "forceDestroy": True})
    assert [item.method for item in google.requests] == ["PATCH", "GET"]
    assert body(google, "PATCH") == {}


def test_an_unchanged_bucket_is_not_patched(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(BUCKET, PLAIN_BUCKET)
    google.requests.clear()
    gcp.update(BUCKET, resource_id, made, PLAIN_BUCKET)
    assert {item.method for item in google.requests} == {"GET"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("had", "sent"),
    [
        ({"lifecycleRules": [{"action": {"type": "Delete"}, "condition": {"age": 1}}]}, {"lifecycle": {"rule": []}}),
        (
            {"uniformBucketLevelAccess": True, "publicAccessPrevention": "enforced"},
            {
                "iamConfiguration": {
                    "uniformBucketLevelAccess": {"enabled": False},
                    "publicAccessPrevention": "enforced",
                }
            },
        ),
        ({"requesterPays": True}, {"billing": {"requesterPays": False}}),
        ({"autoclass": {"enabled": True}}, {"autoclass": {"enabled": False}}),
        ({"cors": [{"origins": ["*"], "methods": ["GET"]}]}, {"cors": None}),
        ({"labels": {"app": "vllm"}}, {"labels": {"app": None, "goog-pulumi-provisioned": "true"}}),
    ],
)
def test_what_a_bucket_no_longer_has_is_sent_as_the_provider_empties_it(
    had: dict[str, Any], sent: dict[str, Any], google: FakeGoogle, gcp: Provider
) -> None:
    resource_id, made = gcp.create(BUCKET, {**PLAIN_BUCKET, **had})
    kept = {"publicAccessPrevention": "enforced"} if "publicAccessPrevention" in had else {}
    off = {"uniformBucketLevelAccess": False} if "uniformBucketLevelAccess" in had else {}
    gcp.update(BUCKET, resource_id, made, {**PLAIN_BUCKET, **kept, **off})
    assert body(google, "PATCH") == sent


def test_the_rules_of_a_firewall_are_sent_in_the_order_of_their_hashes(google: FakeGoogle, gcp: Provider) -> None:
    rules = [
        {"protocol": "tcp", "ports": ["8000", "22"]},
        {"protocol": "udp"},
        {"protocol": "icmp"},
        {"protocol": "TCP", "ports": ["443"]},
    ]
    orders = []
    for name, listed in {"one": rules, "two": rules[::-1]}.items():
        gcp.create(FIREWALL, {**PROGRAMS[FIREWALL], "name": name, "allows": listed})
        orders.append(body(google, "POST")["allowed"])
    assert orders[0] == orders[1]
    # crc32 of "icmp-", "udp-", "tcp-22-8000-" and "tcp-443-": 136..., 148..., 236..., 680..., sorted as texts
    assert [rule["IPProtocol"] for rule in orders[0]] == ["icmp", "udp", "tcp", "TCP"]


MIXED = "serviceAccount:Runtime@Bezel-Local.iam.gserviceaccount.com"
POLICIES = {
    "gcp:projects/iAMMember:IAMMember": "/crm/v1/projects/bezel-local",
    "gcp:storage/bucketIAMMember:BucketIAMMember": "/storage/v1/b/models",
}


@pytest.mark.parametrize("kind", POLICIES)
def test_a_members_name_is_sent_in_lower_case(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[kind], "member": MIXED}
    resource_id, made = gcp.create(kind, program)
    (binding,) = google.policies[POLICIES[kind]]["bindings"]
    assert binding["members"] == [f"serviceAccount:{MIXED.partition(':')[2].lower()}"]
    assert resource_id.endswith(binding["members"][0])
    assert not gcp.diff(kind, resource_id, made, program).diffs
    assert gcp.read(kind, resource_id, made, gcp.inputs(kind, program)).id == resource_id
    gcp.delete(kind, resource_id, made)
    assert not google.policies[POLICIES[kind]].get("bindings")


@pytest.mark.parametrize(
    "member",
    [
        "allUsers",
        "allAuthenticatedUsers",
        "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/a/subject/Sub",
        "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/a/attribute.x/Y",
    ],
)
def test_a_name_whose_case_matters_is_sent_as_it_is(member: str, google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[MEMBER], "member": member}
    resource_id, made = gcp.create(MEMBER, program)
    assert google.policies["/storage/v1/b/models"]["bindings"][0]["members"] == [member]
    other = {**program, "member": member.swapcase().replace("PRINCIPAL", "principal")}
    if ":" in member:
        assert list(gcp.diff(MEMBER, resource_id, made, other).replaces) == ["member"]


def test_a_cleanup_policy_has_its_id_as_its_key_alone(google: FakeGoogle, gcp: Provider) -> None:
    policies = [{"id": "old", "action": "DELETE", "condition": {"olderThan": "86400s"}}]
    program = {**PROGRAMS[REPOSITORY], "cleanupPolicies": policies}
    resource_id, made = gcp.create(REPOSITORY, program)
    sent = {"old": {"action": "DELETE", "condition": {"olderThan": "86400s", "tagState": "ANY"}}}
    assert body(google, "POST")["cleanupPolicies"] == sent
    assert not gcp.diff(REPOSITORY, resource_id, made, program).diffs
    gcp.update(REPOSITORY, resource_id, made, with_change(program, "cleanupPolicies.0.condition.tagState", "TAGGED"))
    assert body(google, "PATCH")["cleanupPolicies"]["old"]["condition"]["tagState"] == "TAGGED"


@pytest.mark.parametrize(("config", "sent"), [({}, {}), ({"immutableTags": False}, {}), (None, None)])
def test_a_docker_configuration_is_sent_where_the_program_has_one(
    config: dict[str, Any] | None, sent: dict[str, Any] | None, google: FakeGoogle, gcp: Provider
) -> None:
    gcp.create(REPOSITORY, PROGRAMS[REPOSITORY] | ({"dockerConfig": config} if config is not None else {}))
    assert body(google, "POST").get("dockerConfig") == sent


@pytest.mark.parametrize(("deadline", "sent"), [(None, None), ("180s", None), ("30s", "30s")])
def test_a_jobs_default_deadline_is_left_out_at_its_creation(
    deadline: str | None, sent: str | None, google: FakeGoogle, gcp: Provider
) -> None:
    program = PROGRAMS[JOB] | ({"attemptDeadline": deadline} if deadline else {})
    resource_id, made = gcp.create(JOB, program)
    created = next(item for item in google.requests_of("POST") if item.path.endswith("/jobs"))
    assert created.body.get("attemptDeadline") == sent
    assert not gcp.diff(JOB, resource_id, made, program).diffs


@pytest.mark.parametrize(
    ("before", "after", "sent"), [(True, False, {}), (False, True, {"privateIpGoogleAccess": True})]
)
def test_a_switched_private_access_is_sent_where_it_is_on(
    before: bool, after: bool, sent: dict[str, Any], google: FakeGoogle, gcp: Provider
) -> None:
    program = PROGRAMS[SUBNETWORK] | {"privateIpGoogleAccess": before}
    resource_id, made = gcp.create(SUBNETWORK, program)
    gcp.update(SUBNETWORK, resource_id, made, program | {"privateIpGoogleAccess": after})
    assert body(google, "POST") == sent
    assert google.requests_of("POST")[-1].path.endswith("/setPrivateIpGoogleAccess")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "more", "mask"),
    [
        ("gcp:serviceaccount/account:Account", {"displayName": "a", "description": "b"}, "description,display_name"),
        (
            "gcp:kms/cryptoKey:CryptoKey",
            {"labels": {"a": "b"}, "rotationPeriod": "90000s"},
            "rotationPeriod,nextRotationTime,labels",
        ),
        (REPOSITORY, {"labels": {"a": "b"}, "description": "c"}, "description,labels"),
        (SECRET, {"labels": {"a": "b"}, "annotations": {"c": "d"}, "ttl": "90000s"}, "ttl,labels,annotations"),
    ],
)
def test_a_mask_has_labels_and_annotations_last(
    kind: str, more: dict[str, Any], mask: str, google: FakeGoogle, gcp: Provider
) -> None:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    gcp.update(kind, resource_id, made, PROGRAMS[kind] | more)
    patch = google.requests_of("PATCH")[-1]
    assert (patch.query.get("updateMask") or patch.body["updateMask"]) == mask


def test_a_router_without_bgp_is_sent_with_null(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(ROUTER, PROGRAMS[ROUTER])
    assert body(google, "POST")["bgp"] is None
    gcp.update(ROUTER, resource_id, made, {**PROGRAMS[ROUTER], "description": "for updates"})
    assert body(google, "PATCH") == {"bgp": None, "description": "for updates"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [NETWORK, SERVICE, REPOSITORY])
def test_polls_ask_for_json_and_nothing_else(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    google.polls = 2
    gcp.create(kind, PROGRAMS[kind])
    polls = [item.query for item in google.requests if "/operations/" in item.path]
    assert polls == [{"alt": "json"}] * 2
