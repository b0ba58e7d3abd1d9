"""Changes of accounts and objects: the requests and the texts of the published provider's hand-written resources.

Source: hashicorp/terraform-provider-google-beta, services/resourcemanager/resource_google_service_account.go;
GoogleCloudPlatform/magic-modules, mmv1/third_party/terraform/services/storage/resource_storage_bucket_object.go.
"""

from typing import Any

import pytest

from pulumi_offline_support.client import FailedError, Provider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, with_change

ACCOUNT = "gcp:serviceaccount/account:Account"
OBJECT = "gcp:storage/bucketObject:BucketObject"
NAMED = {**PROGRAMS[ACCOUNT], "displayName": "Runtime", "description": "serves"}
KEY = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
NO = {"error": {"code": 403, "message": "no"}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (ACCOUNT, "createIgnoreAlreadyExists"),
        ("gcp:secretmanager/secret:Secret", "deletionProtection"),
        ("gcp:kms/cryptoKey:CryptoKey", "skipInitialVersionCreation"),
    ],
)
def test_a_switch_of_the_provider_alone_sends_nothing(kind: str, name: str, google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    google.requests.clear()
    updated = gcp.update(kind, resource_id, made, {**PROGRAMS[kind], name: True})
    assert updated[name] is True
    assert {item.method for item in google.requests} == {"GET"}


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(FailedError) as failed:
        call(*arguments)
    return failed.value.text


@pytest.mark.parametrize(
    ("path", "value", "sent"),
    [
        ("displayName", "Other", {"displayName": "Other", "description": "serves"}),
        ("displayName", None, {"description": "serves"}),
        ("description", "more", {"displayName": "Runtime", "description": "more"}),
    ],
)
def test_a_change_of_an_account_sends_what_it_has(
    path: str, value: Any, sent: Any, google: FakeGoogle, gcp: Provider
) -> None:
    resource_id, made = gcp.create(ACCOUNT, NAMED)
    gcp.update(ACCOUNT, resource_id, made, with_change(NAMED, path, value))
    (patch,) = google.requests_of("PATCH")
    assert patch.body["serviceAccount"] == {**sent, "etag": "a"}


@pytest.mark.parametrize(
    ("pattern", "path", "value", "text"),
    [
        ("GET .*", "displayName", "x", 'Error retrieving service account "{id}": googleapi: Error 403: no'),
        ("PATCH .*", "displayName", "x", "* googleapi: Error 403: no"),
        ("POST .*:disable", "disabled", True, "* googleapi: Error 403: no"),
    ],
)
def test_a_refused_change_of_an_account_says_where(
    pattern: str, path: str, value: Any, text: str, google: FakeGoogle, gcp: Provider
) -> None:
    resource_id, made = gcp.create(ACCOUNT, NAMED)
    google.fail(pattern, 403, NO)
    message = refusal(gcp.update, ACCOUNT, resource_id, made, with_change(NAMED, path, value))
    assert text.format(id=resource_id) in message


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ACCOUNT, "Error deleting service account: googleapi: Error 403: no"),
        (OBJECT, "Error deleting contents of object a/readme.txt: googleapi: Error 403: no"),
    ],
)
def test_a_refused_deletion_says_of_what(kind: str, text: str, google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    google.fail("DELETE .*", 403, NO)
    assert text in refusal(gcp.delete, kind, resource_id, made)
    google.fail("DELETE .*", 404, {"error": {"code": 404, "message": "gone"}})
    gcp.delete(kind, resource_id, made)


def test_a_hold_writes_the_object_back(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(OBJECT, PROGRAMS[OBJECT])
    google.requests.clear()
    with_hold = gcp.update(OBJECT, resource_id, made, with_change(PROGRAMS[OBJECT], "temporaryHold", True))
    assert [item.method for item in google.requests] == ["GET", "PUT", "GET"]
    (put,) = google.requests_of("PUT")
    assert (put.body["temporaryHold"], put.body["name"]) == (True, "a/readme.txt")
    freed = gcp.update(OBJECT, resource_id, with_hold, with_change(PROGRAMS[OBJECT], "temporaryHold", False))
    assert "temporaryHold" not in google.requests_of("PUT")[-1].body
    assert freed["temporaryHold"] is False


def test_a_changed_content_is_uploaded_with_its_hold_at_once(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(OBJECT, PROGRAMS[OBJECT])
    google.requests.clear()
    wanted = {**PROGRAMS[OBJECT], "content": "bye", "temporaryHold": True}
    gcp.update(OBJECT, resource_id, made, wanted)
    assert [item.method for item in google.requests] == ["POST", "GET"]


@pytest.mark.parametrize(
    ("wanted", "verdict"), [(KEY, "same"), (f"{KEY}2", "replace"), (f"{KEY}/cryptoKeyVersions/2", "replace")]
)
def test_a_key_is_the_one_whose_version_google_shows(
    wanted: str, verdict: str, google: FakeGoogle, gcp: Provider
) -> None:
    program = {**PROGRAMS[OBJECT], "kmsKeyName": KEY}
    resource_id, made = gcp.create(OBJECT, program)
    made["kmsKeyName"] = f"{KEY}/cryptoKeyVersions/1"
    answer = gcp.diff(OBJECT, resource_id, made, {**program, "kmsKeyName": wanted})
    assert ("replace" if answer.replaces else "update" if answer.diffs else "same") == verdict
    if verdict == "same":
        gcp.update(OBJECT, resource_id, made, {**program, "content": "bye"})
        assert "cryptoKeyVersions" not in str(google.requests_of("POST")[-1].body)
