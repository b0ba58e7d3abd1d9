"""Check refuses in a preview what the published provider refuses there, with its words, and nothing else."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from bezel_pulumi_offline.lifecycle.fields import Field
from bezel_pulumi_offline.lifecycle.validations import Validations
from bezel_pulumi_offline.lifecycle.values import UNKNOWN
from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin
from bezel_pulumi_offline.resources import TYPES
from pulumi_offline_support.client import FailedError, Provider, ServedProvider, urn
from pulumi_offline_support.programs import PROGRAMS, with_change

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
BUDGET = "gcp:billing/budget:Budget"
JOB = "gcp:cloudscheduler/job:Job"
POLICY = "gcp:monitoring/alertPolicy:AlertPolicy"
UPTIME = "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig"
DASHBOARD = "gcp:monitoring/dashboard:Dashboard"
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
    *[
        (BUDGET, "budgetFilter", {name: value}, refused, "one of `budget_filter.0.calendar_period,")
        for name, value in {
            "projects": ["projects/1"],
            "resourceAncestors": ["folders/1"],
            "creditTypesTreatment": "EXCLUDE_ALL_CREDITS",
            "services": ["services/1"],
            "subaccounts": ["billingAccounts/1"],
            "labels": {"a": "b"},
            "calendarPeriod": "YEAR",
            "customPeriod": {"startDate": {"year": 2026, "month": 1, "day": 1}},
        }.items()
        for refused in ({}, {"creditTypes": ["a"]})
    ],
    *[
        (
            JOB,
            "retryConfig",
            {name: value},
            {},
            "one of `retry_config.0.max_backoff_duration,retry_config.0.max_doublings",
        )
        for name, value in {"retryCount": 1, "maxRetryDuration": "1s", "maxDoublings": 1}.items()
    ],
    (JOB, "retryConfig", {"minBackoffDuration": "1s"}, {}, "must be specified"),
    (JOB, "retryConfig", {"maxBackoffDuration": "1s"}, {}, "must be specified"),
    (JOB, "httpTarget.body", "e30=", "{}", "could not decode"),
    (JOB, "httpTarget.body", "e3\n0=", "e30", "as a valid base64 value"),
    (JOB, "httpTarget.headers", {"X-Own": "a"}, {"Content-Length": "1"}, "Cannot set the Content-Length header on"),
    (JOB, "httpTarget.headers", {"Accept": "a"}, {"X-Google-A": "1"}, "Cannot set the X-Google-A header on"),
    (POLICY, "documentation", {"subject": "a"}, {}, "one of `documentation.0.content,documentation.0.links"),
    (POLICY, "documentation", {"mimeType": "text/markdown"}, {}, "must be specified"),
    (POLICY, "documentation", {"links": [{"displayName": "a", "url": "b"}]}, {}, "must be specified"),
    (POLICY, "combiner", "AND", "", "expected combiner to be one of"),
    (POLICY, "conditions.0.conditionThreshold.comparison", "COMPARISON_LT", "", "comparison to be one of"),
    (POLICY, "alertStrategy.notificationPrompts", ["OPENED", "CLOSED"], ["OPENED", "opened"], "prompts.1 to be one of"),
    (POLICY, "alertStrategy.notificationPrompts", [], [""], "notification_prompts.0 to be one of"),
    (POLICY, "severity", "", "LOW", "expected severity to be one of"),
    (NAT, "sourceSubnetworkIpRangesToNat", "LIST_OF_SUBNETWORKS", "", "to be one of"),
    (UPTIME, "httpCheck", {"port": 80}, {}, "one of `http_check.0.auth_info,http_check.0.headers"),
    (UPTIME, "httpCheck", {"path": "/"}, {"validateSsl": True}, "must be specified"),
    (DASHBOARD, "dashboardJson", '{"a": [1, null]}', "{a: 1}", '"dashboard_json" contains an invalid JSON'),
    (DASHBOARD, "dashboardJson", "[]", '{"a": NaN}', "contains an invalid JSON"),
    (
        SERVICE,
        "template.vpcAccess",
        {"networkInterfaces": [{"network": "a"}]},
        {"connector": "c", "networkInterfaces": [{"network": "a"}]},
        '"template.0.vpc_access.0.connector": conflicts with template.0.vpc_access.0.network_interfaces',
    ),
    (VERSION, "secretDataWoVersion", None, 1, "all of `secret_data_wo,secret_data_wo_version` must be specified"),
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
    return program if value is None and path not in program else with_change(program, path, value)


@pytest.mark.parametrize(("kind", "path", "accepted", "refused", "reason"), CASES)
def test_a_refused_value_fails_the_preview_and_an_accepted_one_passes(
    kind: str, path: str, accepted: Any, refused: Any, reason: str, gcp: Provider
) -> None:
    assert not gcp.check(kind, with_value(kind, path, accepted)).failures
    failures = gcp.check(kind, with_value(kind, path, refused)).failures
    assert any(reason in failure.reason for failure in failures)
    for failure in failures:
        assert failure.reason.endswith(f". Examine values at 'thing.{failure.property}'.")


@pytest.mark.parametrize(
    ("kind", "name", "others", "reason"),
    [
        (JOB, "httpTarget", {}, "one of `app_engine_http_target,http_target,pubsub_target` must be specified"),
        (UPTIME, "monitoredResource", {}, "one of `monitored_resource,resource_group,synthetic_monitor` must be"),
        (VERSION, "secretData", {"secretDataWo": "a", "secretDataWoVersion": 1}, "one of `secret_data,secret_data_wo`"),
    ],
)
def test_one_of_some_properties_is_needed(
    kind: str, name: str, others: dict[str, Any], reason: str, gcp: Provider
) -> None:
    without = {key: value for key, value in PROGRAMS[kind].items() if key != name}
    assert any(reason in failure.reason for failure in gcp.check(kind, without).failures)
    assert not gcp.check(kind, without | (others or {name: UNKNOWN})).failures


def test_a_rule_says_nothing_about_what_is_refused_already(gcp: Provider) -> None:
    without = {key: value for key, value in PROGRAMS[JOB].items() if key != "httpTarget"}
    (failure,) = gcp.check(JOB, {**without, "pubsubTarget": {"topicName": "a"}}).failures
    assert "does not support" in failure.reason


OUTPUT_ONLY = [
    (SERVICE, "buildConfig.name", "a"),
    (SERVICE, "multiRegionSettings.multiRegionId", "a"),
    (REPOSITORY, "vulnerabilityScanningConfig.enablementState", "a"),
    (REPOSITORY, "vulnerabilityScanningConfig.enablementStateReason", "a"),
    (POLICY, "conditions.0.name", "projects/p/alertPolicies/1/conditions/2"),
]


@pytest.mark.parametrize(("kind", "path", "value"), OUTPUT_ONLY)
def test_a_property_that_google_sets_is_refused(kind: str, path: str, value: str, gcp: Provider) -> None:
    (failure,) = gcp.check(kind, with_change(PROGRAMS[kind], path, value)).failures
    assert "is set by Google" in failure.reason


PLANNED = [  # type, what a program has instead of the accepted one, the reason
    (FIREWALL, {"sourceRanges": None}, "one of source_tags, source_ranges, or source_service_accounts must be defined"),
    (
        JOB,
        {
            "httpTarget": {
                "uri": "https://a/",
                "oauthToken": {"serviceAccountEmail": "a"},
                "oidcToken": {"serviceAccountEmail": "a"},
            }
        },
        "Error in http_target: only one of oauth_token or oidc_token can be specified, but not both.",
    ),
]


@pytest.mark.parametrize(("kind", "refused", "reason"), PLANNED)
def test_a_plan_is_refused_in_the_preview_and_not_by_check(
    kind: str, refused: dict[str, Any], reason: str, gcp: Provider
) -> None:
    wrong = {key: value for key, value in {**PROGRAMS[kind], **refused}.items() if value is not None}
    assert not gcp.check(kind, wrong).failures
    with pytest.raises(FailedError) as failed:
        gcp.create(kind, wrong, preview=True)
    assert failed.value.text == f"diffing {urn(kind)}: 1 error occurred:\n\t* {reason}\n\n"
    gcp.create(kind, PROGRAMS[kind], preview=True)


@pytest.mark.parametrize(("kind", "path"), sorted({(case[0], case[1]) for case in CASES}))
def test_a_value_that_is_not_known_yet_passes(kind: str, path: str, gcp: Provider) -> None:
    assert not gcp.check(kind, with_value(kind, path, UNKNOWN)).failures


def test_every_mistake_is_named_at_once_with_its_place(gcp: Provider) -> None:
    program = with_change(PROGRAMS[SERVICE], "ingress", "ALL")
    program = with_change(program, "template.volumes", [{"name": "a", "emptyDir": {"medium": "TAPE"}}])
    failures = gcp.check(SERVICE, program).failures
    assert [failure.property for failure in failures] == ["template.volumes[0].emptyDir.medium", "ingress"]


_GROUPS = frozenset({"exactly_one", "at_least_one", "conflict", "requires"})
"""Keys of a rule that name properties."""


def unused_rules(fields: Sequence[Field], validations: Validations) -> list[str]:
    """The properties of rules that a type does not have: such a rule would never refuse anything."""
    together = [(rule["of"], names) for rule in validations.together for kind, names in rule.items() if kind in _GROUPS]
    named = {f"{place}.{name}".lstrip(".") for place, names in together for name in names}
    return sorted((validations.values.keys() | named) - set(keys_of(fields, "")))


def keys_of(fields: Sequence[Field], prefix: str) -> Iterator[str]:
    """The properties, also those of blocks: `template.volumes`."""
    for declared in fields:
        yield prefix + declared.name
        yield from keys_of(declared.fields, f"{prefix}{declared.name}.")


@pytest.mark.parametrize("kind", TYPES.values(), ids=lambda kind: kind.pulumi_type)
def test_every_rule_is_about_a_property_of_its_type(kind: Any) -> None:
    assert unused_rules(kind.fields, kind.validations) == []


def test_a_rule_about_a_property_that_is_not_there_would_be_noticed() -> None:
    rules = Validations({"ingres": {"one_of": ["A"]}}, ({"of": "template", "conflict": ["volumes", "volume"]},))
    assert unused_rules(TYPES[SERVICE].fields, rules) == ["ingres", "template.volume"]
