"""Refusals and delays of Google: the provider's words, what stays in the state, and the next run."""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2 as pb

from bezel_pulumi_offline.google.cloud import Cloud, Deadline
from bezel_pulumi_offline.google.errors import OperationError
from bezel_pulumi_offline.lifecycle.values import decode
from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin, adoption_advice
from bezel_pulumi_offline.resources import TYPES
from bezel_pulumi_offline.resources.iam_members import MemberType
from pulumi_offline_support.client import FailedError, Provider, ServedProvider, urn
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, with_change

pytestmark = pytest.mark.slow  # whole processes

SERVICE = "gcp:cloudrunv2/service:Service"
SECRET = "gcp:secretmanager/secret:Secret"
BUCKET = "gcp:storage/bucket:Bucket"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
MEMBER = "gcp:storage/bucketIAMMember:BucketIAMMember"
QUOTA = {"code": 8, "message": "Quota exceeded for total allowable count of GPUs per project per region."}


def error_body(code: int, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **more}}


def test_a_refused_create_leaves_nothing_and_says_why(google: FakeGoogle, gcp: Provider) -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED"}
    google.fail("POST .*/secrets", 403, error_body(403, "Secret Manager API is disabled.", details=[detail]))
    with pytest.raises(FailedError) as failed:
        gcp.create(SECRET, PROGRAMS[SECRET])
    assert failed.value.kept is None
    assert failed.value.text == (
        "1 error occurred:\n\t* Error creating Secret: googleapi: Error 403: Secret Manager API is disabled.\n"
        'Details:\n[\n  {\n    "@type": "type.googleapis.com/google.rpc.ErrorInfo",\n'
        '    "reason": "SERVICE_DISABLED"\n  }\n]\n\n'
    )


def test_an_existing_bucket_is_not_adopted(google: FakeGoogle, gcp: Provider) -> None:
    errors = [{"reason": "conflict", "message": "x", "domain": "global"}]
    google.fail("POST .*/b", 409, error_body(409, "you already own it.", errors=errors))
    with pytest.raises(FailedError) as failed:
        gcp.create(BUCKET, PROGRAMS[BUCKET])
    assert failed.value.text == (
        "1 error occurred:\n\t* googleapi: Error 409: you already own it.\n"
        "More details:\nReason: conflict, Message: x\n\n\n" + adoption_advice(urn(BUCKET))
    )


@pytest.mark.parametrize(("status", "named"), [("ALREADY_EXISTS", True), ("ABORTED", False)])
def test_a_repair_is_named_where_something_is_in_the_way(
    status: str, named: bool, google: FakeGoogle, gcp: Provider
) -> None:
    google.fail("POST .*/secrets", 409, error_body(409, "no", status=status))
    with pytest.raises(FailedError) as failed:
        gcp.create(SECRET, PROGRAMS[SECRET])
    assert failed.value.text.startswith("1 error occurred:\n\t* Error creating Secret: googleapi: Error 409: no\n\n")
    assert failed.value.text.endswith(adoption_advice(urn(SECRET))) is named


def test_a_service_whose_create_fails_late_is_kept(google: FakeGoogle, gcp: Provider) -> None:
    """The next update only reads it."""
    google.failing["create"] = QUOTA
    with pytest.raises(FailedError) as failed:
        gcp.create(SERVICE, PROGRAMS[SERVICE])
    reason = f"1 error occurred:\n\t* Error waiting to create Service: Error code 8, message: {QUOTA['message']}\n\n"
    assert failed.value.text == f"creating {urn(SERVICE)}: {reason}"
    kept = failed.value.kept
    assert kept is not None
    assert kept.id.endswith("/services/llm")
    assert list(kept.reasons) == [failed.value.text]
    state = decode(kept.properties)
    assert state["template"]["containers"][0]["args"] == PROGRAMS[SERVICE]["template"]["containers"][0]["args"]
    assert decode(kept.inputs)["location"] == "us-central1"

    google.requests.clear()
    updated = gcp.update(SERVICE, kept.id, state, PROGRAMS[SERVICE])
    assert [item.method for item in google.requests] == ["GET"]
    assert updated["latestReadyRevision"]


def test_an_update_that_fails_late_keeps_what_was_asked_for(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    google.failing["update"] = {"code": 9, "message": "Revision llm-00002-abc is not ready."}
    wanted = with_change(PROGRAMS[SERVICE], "template.containers.0.args.1", "--seed=1")
    with pytest.raises(FailedError) as failed:
        gcp.update(SERVICE, resource_id, made, wanted)
    reason = "1 error occurred:\n\t* Error code 9, message: Revision llm-00002-abc is not ready.\n\n"
    assert failed.value.text == f"updating {urn(SERVICE)}: {reason}"
    assert failed.value.kept is not None
    state = decode(failed.value.kept.properties)
    assert not gcp.diff(SERVICE, resource_id, state, wanted).diffs


def test_a_repository_whose_create_fails_late_is_not_kept(google: FakeGoogle, gcp: Provider) -> None:
    google.fail("POST .*/repositories", 200, {"name": "operations/x", "done": True, "error": QUOTA})
    with pytest.raises(FailedError) as failed:
        gcp.create(REPOSITORY, PROGRAMS[REPOSITORY])
    assert failed.value.kept is None
    assert "Error waiting to create Repository: Error code 8" in failed.value.text


def test_a_passing_trouble_is_outwaited(google: FakeGoogle, gcp: Provider) -> None:
    google.fail("POST .*/secrets", 429, error_body(429, "try later"))
    begun = time.monotonic()
    gcp.create(SECRET, PROGRAMS[SECRET])
    assert time.monotonic() - begun >= 0.5  # no BEZEL_SPEED is set here: the pauses have their full length
    assert [str(item) for item in google.requests_of("POST")] == [
        "POST /secretmanager/v1/projects/bezel-local/secrets"
    ] * 2


@pytest.mark.parametrize("status", [400, 404, 409, 412])
def test_a_refusal_is_not_tried_again(status: int, google: FakeGoogle, gcp: Provider) -> None:
    google.fail("POST .*/secrets", status, error_body(status, "no"), times=9)
    with pytest.raises(FailedError):
        gcp.create(SECRET, PROGRAMS[SECRET])
    assert len(google.requests_of("POST")) == 1


def test_an_operation_that_never_ends_ends_at_the_custom_timeout(google: FakeGoogle, gcp: Provider) -> None:
    google.polls = 10_000
    with pytest.raises(FailedError) as failed:
        gcp.create(SERVICE, PROGRAMS[SERVICE], timeout=2)
    assert "timeout while waiting for state to become 'done: true'" in failed.value.text
    assert failed.value.kept is not None


@contextlib.contextmanager
def called_off_at_a_poll(google: FakeGoogle, gcp: Provider) -> Iterator[list[int]]:
    """Cancel the run once it waits for an operation; how often it had looked by then."""
    looks: list[int] = []

    def cancel() -> None:
        while not google.requests_of("GET"):
            time.sleep(0.01)
        gcp.cancel()
        looks.append(len(google.requests_of("GET")))

    cancelling = threading.Thread(target=cancel, daemon=True)
    cancelling.start()
    yield looks
    cancelling.join(60)


def test_a_called_off_run_leaves_the_service_in_the_state_at_once(google: FakeGoogle, gcp: Provider) -> None:
    google.polls = 10_000
    with called_off_at_a_poll(google, gcp) as looks, pytest.raises(FailedError) as failed:
        gcp.create(SERVICE, PROGRAMS[SERVICE])
    assert len(google.requests_of("GET")) <= looks[0] + 1, "one may have been under way"
    assert failed.value.kept is not None
    assert failed.value.kept.id.endswith("/services/llm")


def test_a_called_off_run_still_waits_for_what_would_be_lost(google: FakeGoogle, gcp: Provider) -> None:
    google.polls = 4
    with called_off_at_a_poll(google, gcp):
        resource_id, _ = gcp.create(REPOSITORY, PROGRAMS[REPOSITORY])
    assert resource_id.endswith("/repositories/hub")


def test_a_protected_service_is_not_deleted_and_an_unprotected_is(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    with pytest.raises(FailedError) as failed:
        gcp.delete(SERVICE, resource_id, {**made, "deletionProtection": True})
    assert failed.value.text == (
        f"deleting {urn(SERVICE)}: 1 error occurred:\n"
        "\t* cannot destroy service without setting deletion_protection=false and running `terraform apply`\n\n"
    )
    assert google.requests_of("DELETE") == []
    gcp.delete(SERVICE, resource_id, made)
    assert len(google.requests_of("DELETE")) == 1


@pytest.mark.parametrize("kind", sorted(kind for kind, row in TYPES.items() if not isinstance(row, MemberType)))
def test_a_deletion_policy_is_kept(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    google.requests.clear()
    with pytest.raises(FailedError, match='without setting deletion_policy="DELETE"'):
        gcp.delete(kind, resource_id, {**made, "deletionPolicy": "PREVENT"})
    gcp.delete(kind, resource_id, {**made, "deletionPolicy": "ABANDON"})
    assert google.requests == []
    gcp.delete(kind, resource_id, made)
    assert (google.requests == []) == (kind == "gcp:kms/keyRing:KeyRing")  # it is only removed from the state


def test_a_secret_version_may_be_switched_off_instead_of_destroyed(google: FakeGoogle, gcp: Provider) -> None:
    kind = "gcp:secretmanager/secretVersion:SecretVersion"
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    gcp.delete(kind, resource_id, {**made, "deletionPolicy": "DISABLE"})
    assert google.things[f"/secretmanager/v1/{resource_id}"]["state"] == "DISABLED"


def test_a_bucket_with_objects_goes_only_where_that_was_allowed(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(BUCKET, PROGRAMS[BUCKET])
    gcp.create("gcp:storage/bucketObject:BucketObject", PROGRAMS["gcp:storage/bucketObject:BucketObject"])
    with pytest.raises(FailedError, match="containing objects without `force_destroy`"):
        gcp.delete(BUCKET, resource_id, made)
    gcp.delete(BUCKET, resource_id, {**made, "forceDestroy": True})
    assert google.things == {}


def test_two_writers_of_one_policy_both_get_in(google: FakeGoogle, gcp: Provider) -> None:
    google.fail("PUT .*/iam", 412, error_body(412, "conditionNotMet"), times=2)
    members = [f"user:{name}@example.com" for name in "abcdefgh"]
    threads = [
        threading.Thread(target=gcp.create, args=(MEMBER, {**PROGRAMS[MEMBER], "member": member})) for member in members
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (policy,) = google.policies.values()
    assert policy["bindings"] == [{"role": "roles/storage.objectViewer", "members": members}]


def test_a_member_leaves_the_others_in_the_policy(google: FakeGoogle, gcp: Provider) -> None:
    key = "/storage/v1/b/models"
    google.policies[key] = {
        "etag": "x",
        "bindings": [
            {"role": "roles/storage.objectViewer", "members": ["user:a@example.com"]},
            {"role": "r", "members": ["z"]},
        ],
    }
    resource_id, made = gcp.create(MEMBER, PROGRAMS[MEMBER])
    gcp.delete(MEMBER, resource_id, made)
    assert google.policies[key]["bindings"] == [
        {"role": "r", "members": ["z"]},
        {"role": "roles/storage.objectViewer", "members": ["user:a@example.com"]},
    ]


def test_labels_of_others_survive_an_update_and_drift_of_ours_shows(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    (thing,) = google.things.values()
    thing["labels"]["foreign"] = "x"
    thing["labels"]["app"] = "changed"
    again = gcp.read(SERVICE, resource_id, made, gcp.inputs(SERVICE, PROGRAMS[SERVICE]))
    assert decode(again.inputs)["labels"] == {"app": "changed"}
    actual = decode(again.properties)
    assert gcp.diff(SERVICE, resource_id, actual, PROGRAMS[SERVICE]).diffs == [
        "effectiveLabels",
        "labels",
        "pulumiLabels",
    ]
    gcp.update(SERVICE, resource_id, actual, PROGRAMS[SERVICE])
    (thing,) = google.things.values()
    assert thing["labels"] == {"app": "vllm", "foreign": "x", "goog-pulumi-provisioned": "true"}


@pytest.fixture
def provider_with_token(google: FakeGoogle) -> Iterator[Provider]:
    environment = {**google.environment(), "GOOGLE_OAUTH_ACCESS_TOKEN": "planted-token"}
    provider = ServedProvider(GooglePlugin(environment))
    yield provider
    provider.close()


@pytest.mark.parametrize("status", [400, 401, 403])
def test_no_error_carries_the_token_or_the_payload(
    status: int, google: FakeGoogle, provider_with_token: Provider
) -> None:
    google.fail(".*:addVersion", status, error_body(status, "no"), times=9)
    with pytest.raises(FailedError) as failed:
        provider_with_token.create(
            "gcp:secretmanager/secretVersion:SecretVersion", {"secret": "projects/p/secrets/s", "secretData": "planted"}
        )
    assert google.requests[0].authorization == "Bearer planted-token"
    assert "planted" not in failed.value.text


def test_nobody_there_is_said_with_what_to_do() -> None:
    provider = ServedProvider(
        GooglePlugin(
            {
                "GOOGLE_OAUTH_ACCESS_TOKEN": "x",
                "GOOGLE_PROJECT": "p",
                "GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT": "http://127.0.0.1:9/v1",
            }
        )
    )
    with pytest.raises(FailedError, match="make up"):
        provider.create(SECRET, PROGRAMS[SECRET])
    with pytest.raises(FailedError, match="GOOGLE_STORAGE_CUSTOM_ENDPOINT is not set"):
        provider.create(BUCKET, PROGRAMS[BUCKET])
    provider.close()


def test_a_missing_project_is_said(google: FakeGoogle) -> None:
    environment = {key: value for key, value in google.environment().items() if "PROJECT" not in key}
    provider = ServedProvider(GooglePlugin(environment))
    with pytest.raises(FailedError, match="project: required field is not set"):
        provider.create(SECRET, PROGRAMS[SECRET])
    assert google.requests == []
    provider.close()


def test_an_unknown_type_or_look_up_is_refused_by_name(gcp: Provider) -> None:
    with pytest.raises(FailedError, match="gcp:compute/disk:Disk"):
        gcp.call("Check", pb.CheckRequest(urn=urn("gcp:compute/disk:Disk")))
    with pytest.raises(FailedError, match="gcp:compute/getZones:getZones"):
        gcp.invoke("gcp:compute/getZones:getZones", {})


@pytest.mark.parametrize(("limit", "named"), [(8.0, "timeout: 8s"), (90.0, "timeout: 1m30s")])
def test_a_late_operation_names_the_limit_that_was_given(limit: float, named: str) -> None:
    """However much of it the requests before have taken, as the SDK's own wait does."""
    late = Deadline(time.monotonic())
    late.seconds = limit
    with pytest.raises(OperationError) as failed:
        Cloud({}, {}).wait_for_operation("run", {"name": "operations/a"}, "Creating Service", until=late)
    assert named in str(failed.value)


def test_a_deadline_lies_as_many_seconds_ahead_as_it_names() -> None:
    before = time.monotonic()
    made = Deadline.after(5.0)
    assert before + 5.0 <= made <= time.monotonic() + 5.0
    assert made.seconds == 5.0
