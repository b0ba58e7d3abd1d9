"""Cloud KMS: keys that really encrypt, their versions over time, and who may use them."""

import base64

import pytest

from bezel_localcloud.core.files.checksums import crc32c
from bezel_localcloud.core.json_types import timestamp
from localcloud_support.in_process import PARENT, SCOPE, Project

RINGS = f"/cloudkms/v1/{PARENT}/locations/global/keyRings"
RING = f"{RINGS}/states"
KEY = f"{RING}/cryptoKeys/stack"
NAME = KEY.removeprefix("/cloudkms/v1/")
DAY = 86_400
SYMMETRIC = {"purpose": "ENCRYPT_DECRYPT"}
SERVICE = "/serviceusage/v1/projects/bezel-local/services/{}.googleapis.com:enable"


def text(data):
    return base64.b64encode(data).decode()


@pytest.fixture
def empty(tmp_path):
    new_project = Project(tmp_path / "cloud")
    new_project.ok("POST", SERVICE.format("cloudkms"), {})
    new_project.ok("POST", SERVICE.format("iam"), {})
    yield new_project
    new_project.close()


@pytest.fixture
def kms(empty):
    """A cloud with one key."""
    empty.ok("POST", RINGS, {}, keyRingId="states")
    empty.ok("POST", f"{RING}/cryptoKeys", SYMMETRIC, cryptoKeyId="stack")
    return empty


def seal(kms, data=b"state", **fields):
    return kms.ok("POST", f"{KEY}:encrypt", {"plaintext": text(data)} | fields)["ciphertext"]


def decrypt(kms, ciphertext, key=KEY, **fields):
    return base64.b64decode(kms.ok("POST", f"{key}:decrypt", {"ciphertext": ciphertext} | fields)["plaintext"])


def versions(kms):
    return {
        version["name"].rpartition("/")[2]: version["state"]
        for version in kms.ok("GET", f"{KEY}/cryptoKeyVersions")["cryptoKeyVersions"]
    }


@pytest.mark.slow
def test_a_project_without_the_api_is_told_to_enable_it(tmp_path):
    project = Project(tmp_path / "cloud")
    error = project.refusal(403, "GET", RINGS)
    project.close()
    assert error["message"].startswith("Cloud Key Management Service (KMS) API has not been used in project")


@pytest.mark.slow
def test_rings_and_keys_are_made_once_listed_and_never_deleted(kms):
    assert kms.ok("GET", RING)["name"] == f"{PARENT}/locations/global/keyRings/states"
    assert [ring["name"] for ring in kms.ok("GET", RINGS)["keyRings"]] == [NAME.partition("/cryptoKeys")[0]]
    key = kms.ok("GET", KEY)
    assert (key["purpose"], key["primary"]["name"]) == ("ENCRYPT_DECRYPT", f"{NAME}/cryptoKeyVersions/1")
    assert key["destroyScheduledDuration"] == "2592000s"
    assert kms.ok("GET", f"{RING}/cryptoKeys")["cryptoKeys"] == [key]
    assert "already exists" in kms.refusal(409, "POST", RINGS, {}, keyRingId="states")["message"]
    again = kms.refusal(409, "POST", f"{RING}/cryptoKeys", SYMMETRIC, cryptoKeyId="stack")
    assert again["message"] == f"CryptoKey {NAME} already exists."
    kms.refusal(404, "POST", f"{RINGS}/absent/cryptoKeys", SYMMETRIC, cryptoKeyId="stack")
    kms.refusal(404, "GET", f"{RING}/cryptoKeys/absent")
    kms.refusal(400, "POST", RINGS, {}, keyRingId="no good")
    kms.refusal(403, "POST", RINGS.replace("global", "moon"), {}, keyRingId="x")
    for path in (RING, KEY):
        assert "cloudkms.projects.locations.keyRings" in kms.refusal(400, "DELETE", path)["message"]


def test_only_the_key_and_its_additional_data_decrypt(kms):
    kms.ok("POST", f"{RING}/cryptoKeys", SYMMETRIC, cryptoKeyId="other")
    ciphertext = seal(kms, b"planted", additionalAuthenticatedData=text(b"stack"))
    assert base64.b64decode(ciphertext).startswith(b"\n$\0")
    assert b"planted" not in base64.b64decode(ciphertext)
    assert ciphertext != seal(kms, b"planted", additionalAuthenticatedData=text(b"stack"))
    assert decrypt(kms, ciphertext, additionalAuthenticatedData=text(b"stack")) == b"planted"
    wrong = kms.refusal(400, "POST", f"{RING}/cryptoKeys/other:decrypt", {"ciphertext": ciphertext})
    assert wrong["message"] == "Decryption failed: verify that 'name' refers to the correct CryptoKey."
    for body in (
        {"ciphertext": ciphertext},
        {"ciphertext": text(b"nonsense")},
        {"ciphertext": text(base64.b64decode(ciphertext)[:-1]), "additionalAuthenticatedData": text(b"stack")},
    ):
        refused = kms.refusal(400, "POST", f"{KEY}:decrypt", body)
        assert refused["message"] == "Decryption failed: the ciphertext is invalid."


def test_checksums_are_checked_and_given(kms):
    body = {"plaintext": text(b"state"), "plaintextCrc32c": str(crc32c(b"state"))}
    made = kms.ok("POST", f"{KEY}:encrypt", body)
    assert made["verifiedPlaintextCrc32c"] is True
    assert made["ciphertextCrc32c"] == str(crc32c(base64.b64decode(made["ciphertext"])))
    back = kms.ok("POST", f"{KEY}:decrypt", {"ciphertext": made["ciphertext"]})
    assert (back["plaintextCrc32c"], back["usedPrimary"]) == (body["plaintextCrc32c"], True)
    wrong = kms.refusal(400, "POST", f"{KEY}:encrypt", body | {"plaintextCrc32c": "1"})
    assert wrong["message"] == "The checksum in field plaintext_crc32c did not match the data in field plaintext."
    kms.refusal(400, "POST", f"{KEY}:encrypt", {"plaintext": text(bytes(65_537))})


def test_key_material_is_in_no_answer_and_survives_a_restart(kms):
    ciphertext = seal(kms)
    material = kms.cloud.store.payload(f"{NAME}/cryptoKeyVersions/1")
    assert len(material) == 32
    shown = kms.raw("GET", KEY).text + kms.raw("GET", f"{KEY}/cryptoKeyVersions/1").text
    assert not any(secret in shown for secret in (text(material), material.hex(), "_fingerprint"))
    kms.restart()
    assert decrypt(kms, ciphertext) == b"state"


@pytest.mark.slow
def test_a_disabled_version_is_not_used_until_it_is_enabled(kms):
    ciphertext, version = seal(kms), f"{KEY}/cryptoKeyVersions/1"
    kms.ok("PATCH", version, {"state": "DISABLED"}, updateMask="state")
    message = f"{NAME}/cryptoKeyVersions/1 is not enabled, current state is: DISABLED."
    for verb, body in (("decrypt", {"ciphertext": ciphertext}), ("encrypt", {"plaintext": ""})):
        assert kms.refusal(400, "POST", f"{KEY}:{verb}", body)["message"] == message
    kms.ok("PATCH", version, {"state": "ENABLED"}, updateMask="state")
    assert decrypt(kms, ciphertext) == b"state"
    kms.refusal(400, "PATCH", version, {"state": "DESTROYED"}, updateMask="state")


@pytest.mark.slow
def test_a_destroyed_version_can_be_restored_in_its_time(kms):
    """A destroyed version can be restored in its time and then is gone with its material."""
    ciphertext, version = seal(kms), f"{KEY}/cryptoKeyVersions/1"
    scheduled = kms.ok("POST", f"{version}:destroy", {})
    assert (scheduled["state"], "destroyTime" in scheduled) == ("DESTROY_SCHEDULED", True)
    assert "DESTROY_SCHEDULED" in kms.refusal(400, "POST", f"{KEY}:decrypt", {"ciphertext": ciphertext})["message"]
    kms.refusal(400, "POST", f"{version}:destroy", {})
    restored = kms.ok("POST", f"{version}:restore", {})
    assert (restored["state"], "destroyTime" in restored) == ("DISABLED", False)
    kms.refusal(400, "POST", f"{version}:restore", {})
    kms.ok("POST", f"{version}:destroy", {})
    kms.passes(30 * DAY + 1)
    gone = kms.ok("GET", version)
    assert (gone["state"], "destroyEventTime" in gone) == ("DESTROYED", True)
    assert kms.cloud.store.payload(f"{NAME}/cryptoKeyVersions/1") is None
    assert "DESTROYED" in kms.refusal(400, "POST", f"{KEY}:decrypt", {"ciphertext": ciphertext})["message"]
    kms.refusal(400, "POST", f"{version}:restore", {})


def test_a_primary_version_encrypts_and_older_ones_still_decrypt(kms):
    """A new version encrypts when it is the primary one and the old one still decrypts."""
    first = seal(kms)
    kms.ok("POST", f"{KEY}/cryptoKeyVersions", {})
    assert kms.ok("GET", KEY)["primary"]["name"].endswith("/1")
    kms.ok("POST", f"{KEY}:updatePrimaryVersion", {"cryptoKeyVersionId": "2"})
    assert kms.ok("POST", f"{KEY}:encrypt", {"plaintext": ""})["name"].endswith("/2")
    assert "usedPrimary" not in kms.ok("POST", f"{KEY}:decrypt", {"ciphertext": first})
    kms.refusal(404, "POST", f"{KEY}:updatePrimaryVersion", {"cryptoKeyVersionId": "9"})


def test_a_key_rotates_by_itself_when_it_is_due(empty):
    empty.ok("POST", RINGS, {}, keyRingId="states")
    due = timestamp(empty.clock.now() + DAY)
    body = SYMMETRIC | {"rotationPeriod": f"{7 * DAY}s", "nextRotationTime": due}
    empty.ok("POST", f"{RING}/cryptoKeys", body, cryptoKeyId="stack")
    empty.passes(DAY - 1)
    assert empty.ok("GET", KEY)["primary"]["name"].endswith("/1")
    empty.passes(2)
    key = empty.ok("GET", KEY)
    assert (key["primary"]["name"][-2:], key["nextRotationTime"]) == ("/2", timestamp(empty.clock.now() - 1 + 7 * DAY))
    empty.passes(30 * DAY)
    assert versions(empty) == {"1": "ENABLED", "2": "ENABLED", "3": "ENABLED"}
    stopped = empty.ok("PATCH", KEY, {}, updateMask="rotationPeriod,nextRotationTime")
    assert not {"rotationPeriod", "nextRotationTime"} & stopped.keys()
    empty.passes(30 * DAY)
    assert len(versions(empty)) == 3


def test_labels_are_changed_by_the_mask_and_fixed_fields_are_not(kms):
    changed = kms.ok("PATCH", KEY, {"labels": {"team": "ml"}}, updateMask="labels")
    assert changed["labels"] == {"team": "ml"}
    assert "labels" not in kms.ok("PATCH", KEY, {}, updateMask="labels")
    template = {"algorithm": "GOOGLE_SYMMETRIC_ENCRYPTION"}
    same = kms.ok("PATCH", KEY, {"versionTemplate": template}, updateMask="versionTemplate")
    assert same["versionTemplate"] == template | {"protectionLevel": "SOFTWARE"}
    kms.refusal(400, "PATCH", KEY, {"purpose": "MAC"}, updateMask="purpose")
    kms.refusal(400, "PATCH", KEY, {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "purpose must be set"),
        ({"purpose": "ASYMMETRIC_SIGN"}, 400, "purpose ASYMMETRIC_SIGN"),
        (SYMMETRIC | {"versionTemplate": {"protectionLevel": "HSM"}}, 400, "protection level HSM"),
        (SYMMETRIC | {"versionTemplate": {"algorithm": "HMAC_SHA256"}}, 400, "HMAC_SHA256 is not valid"),
        (SYMMETRIC | {"rotationPeriod": f"{DAY}s"}, 400, "next_rotation_time must also be set"),
        (SYMMETRIC | {"rotationPeriod": "60s", "nextRotationTime": "2100-01-01T00:00:00Z"}, 400, "at least 24 hours"),
        (SYMMETRIC | {"nextRotationTime": "2000-01-01T00:00:00Z"}, 400, "must be in the future"),
        (SYMMETRIC | {"destroyScheduledDuration": "60s"}, 400, "at least 24 hours and at most 120 days"),
        (SYMMETRIC | {"importOnly": True}, 400, "importOnly"),
    ],
)
def test_a_key_that_google_or_localcloud_refuses_is_not_made(empty, body, status, message):
    empty.ok("POST", RINGS, {}, keyRingId="states")
    error = empty.refusal(status, "POST", f"{RING}/cryptoKeys", body, cryptoKeyId="stack")
    assert message in error["message"]
    assert empty.call("GET", KEY).status_code == 404


def test_a_key_without_a_version_encrypts_nothing(empty):
    empty.ok("POST", RINGS, {}, keyRingId="states")
    key = empty.ok("POST", f"{RING}/cryptoKeys", SYMMETRIC, cryptoKeyId="stack", skipInitialVersionCreation="true")
    assert "primary" not in key
    assert "primary" in empty.refusal(400, "POST", f"{KEY}:encrypt", {"plaintext": ""})["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "on", "allowed"),
    [
        ("cryptoKeyEncrypterDecrypter", KEY, {"encrypt", "decrypt"}),
        ("cryptoKeyEncrypter", KEY, {"encrypt"}),
        ("cryptoKeyDecrypter", RING, {"decrypt"}),
        ("admin", RING, set()),
        ("viewer", KEY, set()),
    ],
)
def test_a_role_on_a_key_or_its_ring_allows_what_it_says(kms, role, on, allowed):
    email = "deploy@bezel-local.iam.gserviceaccount.com"
    kms.ok("POST", f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": "deploy"})
    binding = {"role": f"roles/cloudkms.{role}", "members": [f"serviceAccount:{email}"]}
    kms.ok("POST", f"{on}:setIamPolicy", {"policy": {"bindings": [binding]}})
    assert kms.ok("GET", f"{on}:getIamPolicy")["bindings"] == [binding]
    ciphertext = seal(kms)
    kms.token = kms.cloud.tokens.access_token(email, SCOPE, 600.0)[0]
    bodies = {"encrypt": {"plaintext": ""}, "decrypt": {"ciphertext": ciphertext}}
    done = {verb for verb, body in bodies.items() if kms.call("POST", f"{KEY}:{verb}", body).is_success}
    assert done == allowed
    for verb in bodies.keys() - allowed:
        permission = f"cloudkms.cryptoKeyVersions.useTo{verb.capitalize()}"
        message = f"Permission '{permission}' denied on resource '{NAME}' (or it may not exist)."
        assert kms.refusal(403, "POST", f"{KEY}:{verb}", bodies[verb])["message"] == message
    wanted = ["cloudkms.cryptoKeyVersions.useToEncrypt"]
    granted = kms.ok("POST", f"{KEY}:testIamPermissions", {"permissions": wanted})
    assert granted == ({"permissions": wanted} if "encrypt" in allowed else {})


def test_an_injected_fault_strikes_the_calls_that_it_names_and_no_others(kms):
    kms.cloud.faults.add("server-errors", {"path": "*:encrypt", "count": 1})
    kms.ok("GET", KEY)
    struck = kms.raw("POST", f"{KEY}:encrypt", b'{"plaintext": ""}')
    assert struck.status_code >= 500
    assert decrypt(kms, seal(kms)) == b"state"
