"""Check refuses in a preview what the published provider refuses there, with its words, and nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest

from bezel.standin_providers.lifecycle.validations import Validations, unused_rules
from bezel.standin_providers.lifecycle.values import UNKNOWN
from bezel.standin_providers.plugin.google_plugin import GooglePlugin
from bezel.standin_providers.resources import TYPES
from tests.support.standin_providers.client import Provider, ServedProvider
from tests.support.standin_providers.programs import PROGRAMS, changed

SERVICE = "gcp:cloudrunv2/service:Service"
BUCKET = "gcp:storage/bucket:Bucket"
OBJECT = "gcp:storage/bucketObject:BucketObject"
ACCOUNT = "gcp:serviceaccount/account:Account"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
SECRET = "gcp:secretmanager/secret:Secret"
VERSION = "gcp:secretmanager/secretVersion:SecretVersion"
FIREWALL = "gcp:compute/firewall:Firewall"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
NAT = "gcp:compute/routerNat:RouterNat"
MEMBER = "gcp:projects/iAMMember:IAMMember"
ROTATION = {"nextRotationTime": "2030-01-01T00:00:00Z", "rotationPeriod": "3600s"}
CASES: list[tuple[str, str, Any, Any, str]] = [  # type, property, accepted, refused, a part of the reason
    (SERVICE, "ingress", "INGRESS_TRAFFIC_ALL", "ALL", 'expected ingress to be one of ["INGRESS_TRAFFIC_ALL" '),
    (SERVICE, "launchStage", "BETA", "PREVIEW", "expected launch_stage to be one of"),
    (SERVICE, "launchStage", "", "beta", "got beta"),
    (SERVICE, "template.timeout", "3.5s", "1m", '"template.0.timeout" ("1m") doesn\'t match regexp'),
    (SERVICE, "template.timeout", "300s", "300s\n", "doesn't match regexp"),
    (SERVICE, "traffics", [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"}], [{"type": "LATEST"}], "traffic.0.type"),
    (SERVICE, "template.vpcAccess", {"egress": "ALL_TRAFFIC"}, {"egress": "ALL"}, "template.0.vpc_access.0.egress"),
    (SERVICE, "template.executionEnvironment", "EXECUTION_ENVIRONMENT_GEN2", "GEN2", "to be one of"),
    (BUCKET, "labels", {"app": "a", "a_b-1": ""}, {"App": "a"}, '"App" is an invalid label key'),
    (BUCKET, "labels", {"a" * 63: "a"}, {"a" * 64: "a"}, "is an invalid label key"),
    (BUCKET, "website", {"notFoundPage": "404"}, {}, "one of `website.0.main_page_suffix,website.0.not_found_page`"),
    (
        BUCKET,
        "lifecycleRules",
        [],
        [{"action": {"type": "Delete"}, "condition": {"age": 1}}] * 101,
        "Too many list items",
    ),
    (OBJECT, "content", "hello", None, "one of `content,source` must be specified"),
    (OBJECT, "source", None, {"text": "b"}, "only one of `content,source` can be specified"),
    (ACCOUNT, "accountId", "runtime-1", "short", "doesn't match regexp"),
    (ACCOUNT, "accountId", "a" * 30, "a" * 31, "doesn't match regexp"),
    (ACCOUNT, "description", "a" * 256, "a" * 257, "expected length of description to be in the range (0 - 256)"),
    (REPOSITORY, "mode", "STANDARD_REPOSITORY", "standard", "expected mode to be one of"),
    (REPOSITORY, "cleanupPolicies", [{"id": "a", "action": "KEEP"}], [{"id": "a", "action": "keep"}], "action"),
    (REPOSITORY, "virtualRepositoryConfig", None, {}, "conflicts with remote_repository_config"),
    (
        REPOSITORY,
        "remoteRepositoryConfig",
        {"aptRepository": {"publicRepository": {"repositoryBase": "DEBIAN", "repositoryPath": "a"}}},
        {"aptRepository": {"publicRepository": {"repositoryBase": "CENTOS", "repositoryPath": "a"}}},
        "repository_base to be one of",
    ),
    (REPOSITORY, "remoteRepositoryConfig", {"commonRepository": {"uri": "a"}}, {}, "must be specified"),
    (
        REPOSITORY,
        "remoteRepositoryConfig",
        {"dockerRepository": {"publicRepository": "DOCKER_HUB"}},
        {"dockerRepository": {"publicRepository": "DOCKER_HUB"}, "commonRepository": {"uri": "a"}},
        "only one of",
    ),
    (SECRET, "replication", {"auto": {}}, {}, "one of `replication.0.auto,replication.0.user_managed` must be"),
    (
        SECRET,
        "replication",
        {"userManaged": {"replicas": [{"location": "a"}]}},
        {"userManaged": {"replicas": []}},
        "requires 1 item minimum",
    ),
    (SECRET, "rotation", None, ROTATION, '"rotation": all of `rotation,topics` must be specified'),
    (VERSION, "secretDataWo", None, "b", "conflicts with secret_data_wo"),
    (FIREWALL, "priority", 65535, 65536, "expected priority to be in the range (0 - 65535), got 65536"),
    (FIREWALL, "name", "nodes-1", "Nodes", "doesn't match regexp"),
    (FIREWALL, "allows", [{"protocol": "all"}], None, "one of `allow,deny` must be specified"),
    (FIREWALL, "sourceRanges", ["10.0.0.0/8"], None, "one of source_tags, source_ranges, or source_service_accounts"),
    (SUBNETWORK, "ipCidrRange", "10.0.0.0/24", "10.0.0.0", "is not a valid IP CIDR range"),
    (SUBNETWORK, "ipCidrRange", "10.0.0.7/24", "10.0.0.0/33", "is not a valid IP CIDR range"),
    (NAT, "name", "to", "t", "doesn't match regexp"),
    (NAT, "natIpAllocateOption", "AUTO_ONLY", "AUTO", "expected nat_ip_allocate_option to be one of"),
    (MEMBER, "member", "user:a@example.com", "a@example.com", "IAM members must have one of the values"),
    (MEMBER, "member", "allUsers", "deleted:user:a", "deleted principals"),
    (
        "gcp:serviceaccount/iAMMember:IAMMember",
        "serviceAccountId",
        "projects/p/serviceAccounts/runtime@p.iam.gserviceaccount.com",
        "runtime@p.iam.gserviceaccount.com",
        "doesn't match regexp",
    ),
    ("gcp:projects/service:Service", "service", "run.googleapis.com", "run", "to be a domain like"),
    ("gcp:projects/service:Service", "service", "a.b", "source.googleapis.com", "to not match any of"),
]


@pytest.fixture(scope="module")
def gcp() -> Iterator[Provider]:
    """A provider without a cloud: nothing is sent before a resource is made."""
    provider = ServedProvider(GooglePlugin({"GOOGLE_PROJECT": "p"}))
    yield provider
    provider.close()


def with_value(kind: str, path: str, value: Any) -> dict[str, Any]:
    program = PROGRAMS[kind]
    return program if value is None and path not in program else changed(program, path, value)


@pytest.mark.parametrize(("kind", "path", "accepted", "refused", "reason"), CASES)
def test_a_refused_value_is_refused_in_the_preview_and_an_accepted_one_is_not(
    kind: str, path: str, accepted: Any, refused: Any, reason: str, gcp: Provider
) -> None:
    assert not gcp.check(kind, with_value(kind, path, accepted)).failures
    failures = gcp.check(kind, with_value(kind, path, refused)).failures
    assert any(reason in failure.reason for failure in failures)
    for failure in failures:
        assert failure.reason.endswith(f". Examine values at 'thing.{failure.property}'.")


@pytest.mark.parametrize(("kind", "path"), sorted({(case[0], case[1]) for case in CASES}))
def test_a_value_that_is_not_known_yet_passes(kind: str, path: str, gcp: Provider) -> None:
    assert not gcp.check(kind, with_value(kind, path, UNKNOWN)).failures


def test_every_mistake_is_named_at_once_with_its_place(gcp: Provider) -> None:
    program = changed(PROGRAMS[SERVICE], "ingress", "ALL")
    program = changed(program, "template.volumes", [{"name": "a", "emptyDir": {"medium": "TAPE"}}])
    failures = gcp.check(SERVICE, program).failures
    assert [failure.property for failure in failures] == ["template.volumes[0].emptyDir.medium", "ingress"]


@pytest.mark.parametrize("kind", TYPES.values(), ids=lambda kind: kind.pulumi_type)
def test_every_rule_is_about_a_property_of_its_type(kind: Any) -> None:
    assert unused_rules(kind.fields, kind.validations) == []


def test_a_rule_about_a_property_that_is_not_there_would_be_noticed() -> None:
    rules = Validations({"ingres": {"one_of": ["A"]}}, ({"of": "template", "conflict": ["volumes", "volume"]},))
    assert unused_rules(TYPES[SERVICE].fields, rules) == ["ingres", "template.volume"]


@pytest.mark.slow
def test_the_values_are_those_that_the_installed_sdk_documents() -> None:
    from tools.traffic.provider_values import FILE, documented, text  # late: reads the whole SDK

    assert FILE.read_text() == text(documented()), "python -m tools.traffic.provider_values --write"
