"""What the security pack refuses of a service and its grants, and what it lets pass."""

from __future__ import annotations

from datetime import date

import pytest

from bezel.resource_cost.inputs import Inputs
from bezel_policies.config import LabelConfig
from bezel_policies.security.labels import labels
from tests.support.policies.harness import DIGEST, LABELS, SERVICE, UNKNOWN, remedy, service, violations

MEMBER = "gcp:cloudrunv2/serviceIamMember:ServiceIamMember"
BINDING = "gcp:cloudrunv2/serviceIamBinding:ServiceIamBinding"
POLICY = "gcp:cloudrunv2/serviceIamPolicy:ServiceIamPolicy"
BUCKET = "gcp:storage/bucket:Bucket"
CONTAINER = "template.containers.0"
TOKEN = "hf_" + "x" * 24
SERVICE_POLICIES = [
    "no-public-invoker",
    "own-service-account",
    "image-by-digest",
    "no-plain-secret",
    "no-external-address",
    "labels",
]


@pytest.mark.parametrize("policy", SERVICE_POLICIES)
def test_a_service_as_this_repository_makes_it_passes(policy: str) -> None:
    secret = {"name": "HF_TOKEN", "valueSource": {"secretKeyRef": {"secret": "hf-token", "version": "latest"}}}
    assert (
        violations(policy, SERVICE, service({f"{CONTAINER}.envs": [secret, {"name": "MAX_TOKENS", "value": "512"}]}))
        == []
    )


@pytest.mark.parametrize(
    ("token", "inputs", "key"),
    [
        (MEMBER, {"role": "roles/run.invoker", "member": "allUsers"}, "member = allUsers"),
        (MEMBER, {"role": "roles/run.invoker", "member": "allAuthenticatedUsers"}, "allAuthenticatedUsers"),
        (MEMBER, {"role": "roles/run.invoker", "member": UNKNOWN}, "member = (not known"),
        (BINDING, {"members": ["user:a@b.c", "allUsers"]}, "members.1 = allUsers"),
        (BINDING, {"members": ["user:a@b.c", UNKNOWN]}, "members.1 = (not known"),
        (POLICY, {"policyData": '{"bindings": [{"role": "r", "members": ["allUsers"]}]}'}, "members.0 = allUsers"),
        (POLICY, {"policyData": "no json"}, "expected an IAM policy"),
        ("gcp:storage/bucketIAMMember:BucketIAMMember", {"member": "allUsers"}, "member = allUsers"),
        ("gcp:storage/bucketAccessControl:BucketAccessControl", {"entity": "allUsers", "role": "READER"}, "entity ="),
        (
            "gcp:storage/bucketACL:BucketACL",
            {"roleEntities": ["OWNER:user-a@b.c", "READER:allUsers"]},
            "roleEntities.1",
        ),
        ("gcp:storage/bucketACL:BucketACL", {"predefinedAcl": "publicReadWrite"}, "predefinedAcl = publicReadWrite"),
        ("gcp:storage/objectACL:ObjectACL", {"predefinedAcl": "authenticatedRead"}, "authenticatedRead"),
        (
            "gcp:storage/defaultObjectACL:DefaultObjectACL",
            {"roleEntities": ["READER:allAuthenticatedUsers"]},
            "roleEnt",
        ),
        ("gcp:storage/objectAccessControl:ObjectAccessControl", {"entity": UNKNOWN}, "entity = (not known"),
        ("gcp:bigquery/dataset:Dataset", {"accesses": [{"specialGroup": "allAuthenticatedUsers"}]}, "specialGroup"),
        ("gcp:bigquery/datasetAccess:DatasetAccess", {"iamMember": "allUsers"}, "iamMember = allUsers"),
        (
            "gcp:cloudrunv2/serviceIamPolicy:ServiceIamPolicy",
            {"policyData": '{"bindings": "\\u0061llUsers"}'},
            "allUsers",
        ),
        (
            "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding",
            {"subjects": [{"name": "system:anonymous"}]},
            "name",
        ),
        ("pulumi-python:dynamic/x:Y", {"body": {"bindings": [{"members": ["allUsers"]}]}}, "members.0 = allUsers"),
        ("nobody:knows/this:Type", {"who": "ALLUSERS"}, "who = ALLUSERS"),
        ("gcp:billing/accountIamMember:AccountIamMember", {"member": "allAuthenticatedUsers"}, "member = all"),
        ("gcp:logging/logViewIamBinding:LogViewIamBinding", {"members": ["allUsers"]}, "members.0 = allUsers"),
        (
            "gcp:cloudrun/service:Service",
            {"metadata": {"annotations": {"run.googleapis.com/invoker-iam-disabled": "true"}}},
            "invoker-iam-disabled = true",
        ),
        (SERVICE, service({"invokerIamDisabled": True}), "invokerIamDisabled = true"),
        (SERVICE, service({"invokerIamDisabled": UNKNOWN}), "invokerIamDisabled = (not known"),
    ],
)
def test_a_grant_to_everybody_is_refused(token: str, inputs, key: str) -> None:
    (message,) = violations("no-public-invoker", token, inputs)
    assert key in message


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (MEMBER, {"member": "serviceAccount:app@p.iam.gserviceaccount.com"}),
        (BINDING, {"members": ["user:a@b.c"]}),
        (POLICY, {"policyData": '{"bindings": [{"role": "r", "members": ["user:a@b.c"]}]}'}),
        (SERVICE, service({"invokerIamDisabled": False})),
        ("gcp:storage/bucketACL:BucketACL", {"predefinedAcl": "projectPrivate", "roleEntities": ["OWNER:user-a@b.c"]}),
        (
            "gcp:iam/denyPolicy:DenyPolicy",
            {"rules": [{"denyRule": {"deniedPrincipals": ["principalSet://goog/public:all"]}}]},
        ),
        ("gcp:logging/metric:Metric", {"filter": 'protoPayload.member="allUsers"'}),
        ("gcp:orgpolicy/policy:Policy", {"spec": {"rules": [{"values": {"deniedValues": ["allUsers"]}}]}}),
        ("gcp:storage/bucket:Bucket", {"publicAccessPrevention": "enforced", "labels": {"note": "allusers"}}),
        ("gcp:storage/bucket:Bucket", {"name": "public-read"}),
        ("gcp:cloudidentity/group:Group", {"groupKey": {"id": "install-users@b.c"}}),
        ("gcp:dataplex/datascan:Datascan", {"data": {"entity": UNKNOWN}}),
    ],
)
def test_a_grant_to_somebody_passes(token: str, inputs) -> None:
    assert violations("no-public-invoker", token, inputs) == []


def test_a_variable_that_is_not_known_yet_waits_for_the_up() -> None:
    """A variable that is not known yet waits for `up` unless it is named like a secret."""
    for name, messages in (("GATEWAY_CONFIGURATION", 0), ("HF_TOKEN", 1)):
        unknown = service({f"{CONTAINER}.envs": [{"name": name, "value": UNKNOWN}]})
        assert len(violations("no-plain-secret", SERVICE, unknown)) == messages
    unresolved = service({f"{CONTAINER}.envs": [{"name": "GATEWAY_CONFIGURATION", "value": "hf_" + "a" * 30}]})
    assert len(violations("no-plain-secret", SERVICE, unresolved)) == 1


@pytest.mark.parametrize(
    ("policy", "changes", "text"),
    [
        ("own-service-account", {"template.serviceAccount": None}, "template.serviceAccount = (not set)"),
        ("own-service-account", {"template.serviceAccount": ""}, "(not set)"),
        ("own-service-account", {"template.serviceAccount": UNKNOWN}, "(not known"),
        (
            "own-service-account",
            {"template.serviceAccount": "12-compute@developer.gserviceaccount.com"},
            "12-compute@developer",
        ),
        ("own-service-account", {"template.serviceAccount": "p@appspot.gserviceaccount.com"}, "p@appspot"),
        ("image-by-digest", {f"{CONTAINER}.image": "vllm/vllm-openai:v0.32.0"}, f"{CONTAINER}.image = vllm"),
        ("image-by-digest", {f"{CONTAINER}.image": DIGEST[:-1]}, "sha256"),
        ("image-by-digest", {f"{CONTAINER}.image": None}, "(not set)"),
        ("image-by-digest", {f"{CONTAINER}.image": UNKNOWN}, "(not known"),
        ("image-by-digest", {"template.containers": UNKNOWN}, "template.containers = (not known"),
    ],
)
def test_a_shared_account_or_an_image_that_can_move_is_refused(policy: str, changes, text: str) -> None:
    (message,) = violations(policy, SERVICE, service(changes))
    assert text in message


@pytest.mark.parametrize(
    "changes",
    [
        {f"{CONTAINER}.envs": [{"name": "HF_TOKEN", "value": "open sesame"}]},
        {f"{CONTAINER}.envs": [{"name": "db-password", "value": "x"}]},
        {f"{CONTAINER}.envs": [{"name": "VLLM_API_KEY", "value": "x"}]},
        {f"{CONTAINER}.envs": [{"name": "SETTINGS", "value": f"a={TOKEN}"}]},
        {f"{CONTAINER}.envs": [{"name": "KEY", "value": "-----BEGIN RSA PRIVATE KEY-----\nabc"}]},
        {f"{CONTAINER}.envs": [{"name": "SA", "value": '{"type": "service_account", "private_key": "x"}'}]},
        {f"{CONTAINER}.envs": [{"name": "HF_TOKEN", "value": UNKNOWN}]},
        {f"{CONTAINER}.args": ["m", "--api-key=s3cret"]},
        {f"{CONTAINER}.args": ["m", "--api-key", "s3cret"]},
        {f"{CONTAINER}.args": ["m", TOKEN]},
        {f"{CONTAINER}.commands": ["sh", "-c", f"HF={TOKEN} vllm serve"]},
    ],
)
def test_a_secret_in_plain_text_is_refused_and_not_repeated(changes) -> None:
    (message,) = violations("no-plain-secret", SERVICE, service(changes))
    assert "Repair:" in message
    for secret in (TOKEN, "s3cret", "sesame", "abc"):
        assert secret not in message


OTHER_TYPES = {
    "gcp:cloudrun/service:Service": lambda entry: {"template": {"spec": {"containers": [{"envs": [entry]}]}}},
    "kubernetes:apps/v1:Deployment": lambda entry: {"spec": {"template": {"spec": {"containers": [{"env": [entry]}]}}}},
    "gcp:cloudfunctionsv2/function:Function": lambda entry: {
        "serviceConfig": {"environmentVariables": {entry["name"]: entry["value"]}}
    },
    "gcp:composer/environment:Environment": lambda entry: {
        "config": {"softwareConfig": {"envVariables": {entry["name"]: entry["value"]}}}
    },
}


@pytest.mark.parametrize("token", OTHER_TYPES)
def test_a_variable_is_judged_on_whatever_type_has_it(token: str) -> None:
    made = OTHER_TYPES[token]
    (message,) = violations("no-plain-secret", token, made({"name": "PGPASSWORD", "value": "sesame"}))
    assert "sesame" not in message
    assert len(violations("no-plain-secret", token, made({"name": "PGPASSWORD", "value": UNKNOWN}))) == 1
    assert violations("no-plain-secret", token, made({"name": "MAX_TOKENS", "value": "512"})) == []
    assert violations("no-plain-secret", token, made({"name": "CONFIGURATION", "value": UNKNOWN})) == []


@pytest.mark.parametrize(
    "variable",
    [
        {"name": "MAX_TOKENS", "value": "4096"},
        {"name": "TOKENIZERS_PARALLELISM", "value": "false"},
        {"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": "/secrets/key.json"},
        {"name": "HF_TOKEN", "value": ""},
        {"name": "NOTE", "value": "risk-assessment-of-the-disk-configuration"},
    ],
)
def test_what_only_sounds_like_a_secret_passes(variable) -> None:
    assert violations("no-plain-secret", SERVICE, service({f"{CONTAINER}.envs": [variable]})) == []


@pytest.mark.parametrize("name", ["owner", "environment", "expires-at"])
@pytest.mark.parametrize("token", [SERVICE, BUCKET])
def test_each_label_must_be_there(token: str, name: str) -> None:
    (message,) = violations("labels", token, {"labels": {**LABELS, name: ""}})
    assert f"labels.{name} = (not set)" in message
    assert len(violations("labels", token, {})) == 3


@pytest.mark.parametrize(
    ("expiry", "message"),
    [
        ("2026-11-20", "needed until 2026-11-20, and today is 2026-11-21"),
        ("tomorrow", "expected a date"),
        ("2026-13-01", "expected a date"),
    ],
)
def test_what_has_expired_is_refused(expiry: str, message: str) -> None:
    inputs = Inputs({"labels": {**LABELS, "expires-at": expiry}})
    (problem,) = labels(SERVICE, inputs, LabelConfig(), today=date(2026, 11, 21))
    assert message in problem.consequence


@pytest.mark.parametrize("expiry", ["2026-11-21", "2027-01-01", "never"])
def test_what_is_still_wanted_passes(expiry: str) -> None:
    inputs = Inputs({"labels": {**LABELS, "expires-at": expiry}})
    assert list(labels(SERVICE, inputs, LabelConfig(), today=date(2026, 11, 21))) == []


def test_the_clock_is_read_for_the_policy() -> None:
    (message,) = violations("labels", SERVICE, service({"labels.expires-at": "2020-01-01"}))
    assert "needed until 2020-01-01" in message


def test_missing_labels_are_filled_in_alike_each_time_and_the_others_left() -> None:
    inputs = {"name": "b", "labels": {"environment": "dev", "owner": "speech"}}
    mended = remedy("labels", BUCKET, {**inputs, "labels": {**inputs["labels"]}})
    assert mended == {"name": "b", "labels": {**inputs["labels"], "expires-at": "never"}}
    assert remedy("labels", BUCKET, mended) is None
    assert violations("labels", BUCKET, mended) == []


def test_the_examples_never_fill_in_the_environment() -> None:
    """The environment is never filled in by the examples and nothing without a configuration."""
    unlabelled = {"name": "b"}
    mended = remedy("labels", BUCKET, dict(unlabelled))
    assert "environment" not in mended["labels"]
    assert remedy("labels", BUCKET, dict(unlabelled), {}) is None
    assert remedy("labels", "gcp:projects/service:Service", dict(unlabelled)) is None
    assert remedy("labels", BUCKET, {"labels": UNKNOWN}) is None


JOB = "gcp:cloudscheduler/job:Job"
CHECK = "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig"


@pytest.mark.parametrize("kind", ["oauthToken", "oidcToken"])
def test_a_scheduled_request_has_an_account_of_its_own(kind: str) -> None:
    def job(email: str) -> dict[str, object]:
        return {"httpTarget": {"uri": "https://run.googleapis.com/", kind: {"serviceAccountEmail": email}}}

    (message,) = violations("own-service-account", JOB, job("12-compute@developer.gserviceaccount.com"))
    assert f"httpTarget.{kind}.serviceAccountEmail = 12-compute@developer" in message
    assert violations("own-service-account", JOB, job("runner@p.iam.gserviceaccount.com")) == []
    assert violations("own-service-account", JOB, {"httpTarget": {"uri": "https://example.com/"}}) == []


@pytest.mark.parametrize(("token", "block"), [(JOB, "httpTarget"), (CHECK, "httpCheck")])
@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("Authorization", "Bearer abc", True),
        ("X-Api-Key", "abc", True),
        ("Proxy-Authorization", "Basic abc", True),
        ("X-Trace", TOKEN, True),
        ("Content-Type", "application/json", False),
        ("User-Agent", "check", False),
    ],
)
def test_a_header_of_a_request_that_google_sends_holds_no_secret(
    token: str, block: str, name: str, value: str, refused: bool
) -> None:
    problems = violations("no-plain-secret", token, {block: {"headers": {name: value}, "maskHeaders": True}})
    assert [value in message for message in problems] == [False] * refused
