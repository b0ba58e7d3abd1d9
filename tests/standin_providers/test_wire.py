"""Requests of the published provider that recordings do not hold: seen with its source of version 8.0.0."""

from typing import Any

import pytest

from bezel.standin_providers.plugin.google_plugin import GooglePlugin
from tests.support.standin_providers.client import Provider, ServedProvider
from tests.support.standin_providers.google import FakeGoogle
from tests.support.standin_providers.programs import PROGRAMS, changed

SERVICE = "gcp:cloudrunv2/service:Service"
SECRET = "gcp:secretmanager/secret:Secret"
BUCKET = "gcp:storage/bucket:Bucket"
MEMBER = "gcp:storage/bucketIAMMember:BucketIAMMember"
PROJECT_MEMBER = "gcp:projects/iAMMember:IAMMember"
ENABLED = "gcp:projects/service:Service"
FIREWALL = "gcp:compute/firewall:Firewall"
ROUTER = "gcp:compute/router:Router"
NETWORK = "gcp:compute/network:Network"
PLAIN_BUCKET = {"name": "plain", "location": "us-east4"}


def body(google: FakeGoogle, method: str) -> Any:
    """The content of the last request with a method."""
    return google.sent(method)[-1].body


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
    gcp.update(SERVICE, resource_id, made, changed(PROGRAMS[SERVICE], "deletionProtection", True))
    assert [item.method for item in google.requests] == ["PATCH", "GET"]
    assert body(google, "PATCH")["template"]["containers"]
    assert "deletionProtection" not in body(google, "PATCH")


@pytest.mark.parametrize("kind", [SERVICE, SECRET, BUCKET, FIREWALL])
def test_a_deletion_policy_alone_is_not_sent(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    google.requests.clear()
    gcp.update(kind, resource_id, made, {**PROGRAMS[kind], "deletionPolicy": "ABANDON"})
    assert {item.method for item in google.requests} == {"GET"}


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
def test_operations_of_service_usage_are_polled_under_the_endpoints_version(version: str, google: FakeGoogle) -> None:
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


def test_a_plain_bucket_is_created_without_rules_and_without_uniform_access_in_so_many_words(
    google: FakeGoogle, gcp: Provider
) -> None:
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


def test_a_router_without_bgp_is_sent_with_null(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(ROUTER, PROGRAMS[ROUTER])
    assert body(google, "POST")["bgp"] is None
    gcp.update(ROUTER, resource_id, made, {**PROGRAMS[ROUTER], "description": "for updates"})
    assert body(google, "PATCH") == {"bgp": None, "description": "for updates"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [NETWORK, SERVICE, "gcp:artifactregistry/repository:Repository"])
def test_polls_ask_for_json_and_nothing_else(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    google.polls = 2
    gcp.create(kind, PROGRAMS[kind])
    polls = [item.query for item in google.requests if "/operations/" in item.path]
    assert polls == [{"alt": "json"}] * 2
