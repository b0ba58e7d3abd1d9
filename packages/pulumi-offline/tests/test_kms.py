"""Rings and keys of Cloud KMS: rotation, imports, and deletions that leave them at Google."""

from datetime import UTC, datetime, timedelta

import pytest

from bezel_pulumi_offline.lifecycle.comparisons import key_path
from bezel_pulumi_offline.lifecycle.values import decode
from pulumi_offline_support.client import FailedError, Provider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, with_change

RING, KEY, MEMBER = (
    "gcp:kms/keyRing:KeyRing",
    "gcp:kms/cryptoKey:CryptoKey",
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
)
RING_ID = "projects/bezel-local/locations/us-central1/keyRings/states"
KEY_ID = f"{RING_ID}/cryptoKeys/stack"
QUARTER = "7776000s"


def due(text: str) -> timedelta:
    """How long it is until the next rotation that was sent."""
    return datetime.fromisoformat(text) - datetime.now(UTC)


@pytest.mark.slow
def test_a_period_of_rotation_is_sent_with_the_time_of_the_next_one(google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[KEY], "rotationPeriod": QUARTER}
    resource_id, made = gcp.create(KEY, program)
    body = google.requests_of("POST")[0].body
    assert body["rotationPeriod"] == QUARTER
    assert timedelta(days=89, hours=23) < due(body["nextRotationTime"]) <= timedelta(days=90)
    sooner = with_change(program, "rotationPeriod", "864000s")
    made = gcp.update(KEY, resource_id, made, sooner)
    patch = google.requests_of("PATCH")[-1]
    assert patch.query["updateMask"] == "rotationPeriod,nextRotationTime"
    assert due(patch.body["nextRotationTime"]) <= timedelta(days=10)
    gcp.update(KEY, resource_id, made, with_change(sooner, "labels", {"a": "b"}))
    patch = google.requests_of("PATCH")[-1]
    assert (patch.query["updateMask"], "nextRotationTime" in patch.body) == ("labels", False)


def test_a_deleted_key_no_longer_rotates(google: FakeGoogle, gcp: Provider) -> None:
    """Its destroyed versions are left alone."""
    resource_id, made = gcp.create(KEY, {**PROGRAMS[KEY], "rotationPeriod": QUARTER})
    google.requests.clear()
    gcp.delete(KEY, resource_id, made)
    assert [f"{request.method} {request.path.rpartition('/')[2]}" for request in google.requests] == [
        "GET cryptoKeyVersions",
        "POST 1:destroy",
        "PATCH stack",
    ]
    assert google.requests[-1].body == {"nextRotationTime": None, "rotationPeriod": None}
    google.requests.clear()
    gcp.delete(KEY, resource_id, {**made, "rotationPeriod": ""})
    assert [request.method for request in google.requests] == ["GET"]


def test_a_deleted_ring_is_only_removed_from_the_state(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(RING, PROGRAMS[RING])
    assert google.requests_of("POST")[0].body is None
    google.requests.clear()
    gcp.delete(RING, resource_id, made)
    assert google.requests == []
    with pytest.raises(FailedError, match="Error 409"):
        gcp.create(RING, PROGRAMS[RING])


@pytest.mark.parametrize(
    ("kind", "written", "whole"),
    [
        (RING, RING_ID, RING_ID),
        (RING, "bezel-local/us-central1/states", RING_ID),
        (RING, "us-central1/states", RING_ID),
        (KEY, KEY_ID, KEY_ID),
        (KEY, f"{RING_ID}/stack", KEY_ID),
        (KEY, "bezel-local/us-central1/states/stack", KEY_ID),
        (KEY, "us-central1/states/stack", KEY_ID),
    ],
)
def test_an_import_takes_each_form_of_the_id(
    kind: str, written: str, whole: str, google: FakeGoogle, gcp: Provider
) -> None:
    gcp.create(kind, PROGRAMS[kind])
    google.requests.clear()
    imported = gcp.read(kind, written)
    assert imported.id == whole
    inputs = decode(imported.inputs)
    assert inputs["name"] == PROGRAMS[kind]["name"]
    if kind == KEY:
        assert inputs["keyRing"] == RING_ID


def test_an_import_of_no_key_is_refused(gcp: Provider) -> None:
    with pytest.raises(FailedError, match="Invalid CryptoKey id format, expecting"):
        gcp.read(KEY, "stack")


@pytest.mark.parametrize("written", [KEY_ID, "bezel-local/us-central1/states/stack", "us-central1/states/stack"])
def test_a_member_names_its_key_in_each_form(written: str, google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[MEMBER], "cryptoKeyId": written}
    resource_id, made = gcp.create(MEMBER, program)
    assert resource_id.startswith(f"{KEY_ID}/roles/")
    assert google.requests_of("POST")[0].path == f"/cloudkms/v1/{KEY_ID}:setIamPolicy"
    assert not gcp.diff(MEMBER, resource_id, made, program).diffs
    imported = gcp.read(MEMBER, f"{written} {program['role']} {program['member']}")
    assert imported.id == resource_id


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (KEY_ID, "us-central1/states/stack", True),
        (RING_ID, "bezel-local/us-central1/states", True),
        (KEY_ID, f"{RING_ID}/cryptoKeys/other", False),
        (KEY_ID, "europe-west4/states/stack", False),
        (KEY_ID, "stack", False),
    ],
)
def test_a_short_reference_is_that_of_the_same_key_only(left: str, right: str, same: bool) -> None:
    assert key_path(left, right) is key_path(right, left) is same


@pytest.mark.parametrize(
    ("period", "message"),
    [
        ("90d", "Invalid rotation period format: 90d"),
        ("3600s", "Rotation period must be greater than one day"),
        ("86400.1234567890s", "Rotation period cannot have more than 9 fractional digits"),
    ],
)
def test_check_refuses_a_period_that_the_published_provider_refuses(period: str, message: str, gcp: Provider) -> None:
    (failure,) = gcp.check(KEY, {**PROGRAMS[KEY], "rotationPeriod": period}).failures
    assert message in failure.reason
    assert not gcp.check(KEY, {**PROGRAMS[KEY], "rotationPeriod": "86400.5s"}).failures


def test_labels_change_in_place_and_the_ring_takes_a_new_key(gcp: Provider) -> None:
    resource_id, made = gcp.create(KEY, PROGRAMS[KEY])
    assert not gcp.diff(KEY, resource_id, made, with_change(PROGRAMS[KEY], "labels", {"a": "b"})).replaces
    for name, value in (("keyRing", f"{RING_ID}-2"), ("purpose", "MAC"), ("destroyScheduledDuration", "86400s")):
        assert list(gcp.diff(KEY, resource_id, made, with_change(PROGRAMS[KEY], name, value)).replaces) == [name]
