"""Objects and buckets protected with keys of Cloud KMS, which Cloud Storage's own account uses."""

import pytest

from localcloud_support.customer_keys import key_headers
from localcloud_support.in_process import PARENT

BUCKET, OBJECTS, UPLOAD = "/storage/v1/b/shelf", "/storage/v1/b/shelf/o", "/upload/storage/v1/b/shelf/o"
RING = f"{PARENT}/locations/us/keyRings/storage"  # a bucket without a location is in US
KEY = f"{RING}/cryptoKeys/objects"
AGENT = "serviceAccount:service-123456789012@gs-project-accounts.iam.gserviceaccount.com"
DENIED = (
    "Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service account has been authorized to "
    "use this key."
)
DISABLED = "Cloud KMS key is disabled, destroyed, or scheduled to be destroyed."


def grant(project, *roles):
    bindings = [{"role": f"roles/cloudkms.{role}", "members": [AGENT]} for role in roles]
    project.ok("POST", f"/cloudkms/v1/{KEY}:setIamPolicy", {"policy": {"bindings": bindings}})


@pytest.fixture
def shelf(project):
    """The cloud with a key that Cloud Storage's account may use."""
    project.ok("POST", "/serviceusage/v1/projects/bezel-local/services/cloudkms.googleapis.com:enable", {})
    for location in ("us", "global"):
        ring = f"/cloudkms/v1/{PARENT}/locations/{location}/keyRings"
        project.ok("POST", ring, {}, keyRingId="storage")
        project.ok("POST", f"{ring}/storage/cryptoKeys", {"purpose": "ENCRYPT_DECRYPT"}, cryptoKeyId="objects")
    grant(project, "cryptoKeyEncrypterDecrypter")
    return project


def upload(project, name, key=KEY, headers=None):
    return project.raw("POST", f"{UPLOAD}?uploadType=media&name={name}&kmsKeyName={key}", b"x", headers)


def version(project, number, state):
    path = f"/cloudkms/v1/{KEY}/cryptoKeyVersions/{number}"
    project.ok("PATCH", path, {"state": state}, updateMask="state")


def message(answer):
    return answer.status_code, answer.json()["error"]["message"]


def test_an_object_names_the_version_that_protects_it(shelf):
    assert upload(shelf, "a").json()["kmsKeyName"] == f"{KEY}/cryptoKeyVersions/1"
    read = shelf.raw("GET", f"{OBJECTS}/a?alt=media")
    assert (read.content, read.headers["x-goog-encryption-kms-key-name"]) == (b"x", f"{KEY}/cryptoKeyVersions/1")
    agent = shelf.ok("GET", "/storage/v1/projects/bezel-local/serviceAccount")["email_address"]
    assert f"serviceAccount:{agent}" == AGENT


def test_a_key_may_be_named_by_the_number_of_its_project(shelf):
    numbered = KEY.replace("bezel-local", "123456789012")
    assert upload(shelf, "a", numbered).json()["kmsKeyName"] == f"{KEY}/cryptoKeyVersions/1"
    shelf.ok("PATCH", BUCKET, {"encryption": {"defaultKmsKeyName": numbered}})
    body = shelf.raw("POST", f"{UPLOAD}?uploadType=media&name=b", b"x").json()
    assert body["kmsKeyName"] == f"{KEY}/cryptoKeyVersions/1"
    assert message(upload(shelf, "c", KEY.replace("bezel-local", "123456789013"))) == (403, DENIED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "status", "text"),
    [
        ("key", 400, "Malformed Cloud KMS crypto key: key"),
        (f"{KEY}/cryptoKeyVersions/1", 400, f"Malformed Cloud KMS crypto key: {KEY}/cryptoKeyVersions/1"),
        (f"{RING}/cryptoKeys/absent", 403, DENIED),
        (KEY.replace("/us/", "/global/"), 403, DENIED),
    ],
)
def test_a_key_that_cannot_be_used_protects_nothing(shelf, key, status, text):
    assert message(upload(shelf, "a", key)) == (status, text)
    assert message(shelf.raw("PATCH", BUCKET, f'{{"encryption": {{"defaultKmsKeyName": "{key}"}}}}'.encode())) == (
        status,
        text,
    )
    assert shelf.call("GET", f"{OBJECTS}/a").status_code == 404
    assert list(shelf.cloud.layout.uploads.iterdir()) == []


def test_the_location_of_the_key_is_that_of_the_bucket(shelf):
    shelf.ok("POST", "/storage/v1/b", {"name": "far", "location": "europe-west4"}, project="bezel-local")
    answer = shelf.raw("POST", f"{UPLOAD.replace('shelf', 'far')}?uploadType=media&name=a&kmsKeyName={KEY}", b"x")
    assert message(answer) == (400, "Cloud KMS key location not allowed.")


def test_an_object_is_read_while_its_key_version_is_enabled(shelf):
    """An object is read only while its version is enabled and the account may use it."""
    upload(shelf, "a")
    version(shelf, 1, "DISABLED")
    for verb, path in (("GET", f"{OBJECTS}/a?alt=media"), ("POST", f"{OBJECTS}/a/rewriteTo/b/shelf/o/b")):
        assert message(shelf.raw(verb, path)) == (400, DISABLED)
    assert "<Code>CloudKmsDisabledKey</Code>" in shelf.raw("GET", "/shelf/a").text
    assert shelf.ok("GET", f"{OBJECTS}/a")["size"] == "1"
    assert message(upload(shelf, "b")) == (400, DISABLED)
    version(shelf, 1, "ENABLED")
    grant(shelf, "cryptoKeyEncrypter")
    assert message(shelf.raw("GET", f"{OBJECTS}/a?alt=media")) == (403, DENIED)
    grant(shelf, "cryptoKeyEncrypterDecrypter")
    assert shelf.raw("GET", "/shelf/a").content == b"x"


@pytest.mark.slow
def test_the_default_of_a_bucket_protects_what_names_no_key(shelf, put):
    changed = shelf.ok("PATCH", BUCKET, {"encryption": {"defaultKmsKeyName": KEY}})
    assert changed["encryption"] == {"defaultKmsKeyName": KEY}
    assert put("a")["kmsKeyName"] == f"{KEY}/cryptoKeyVersions/1"
    assert "kmsKeyName" in shelf.ok("POST", f"{OBJECTS}/a/copyTo/b/shelf/o/b")
    shelf.ok("PATCH", BUCKET, {"encryption": None})
    assert "kmsKeyName" not in put("c")
    assert "kmsKeyName" not in shelf.ok("POST", f"{OBJECTS}/a/copyTo/b/shelf/o/d")
    moved = shelf.ok("POST", f"{OBJECTS}/a/moveTo/o/e")
    assert moved["kmsKeyName"] == f"{KEY}/cryptoKeyVersions/1"


@pytest.mark.slow
def test_a_rewrite_gives_an_object_the_primary_version_and_a_patch_none(shelf):
    upload(shelf, "a")
    shelf.ok("POST", f"/cloudkms/v1/{KEY}/cryptoKeyVersions", {})
    shelf.ok("POST", f"/cloudkms/v1/{KEY}:updatePrimaryVersion", {"cryptoKeyVersionId": "2"})
    path = f"{OBJECTS}/a/rewriteTo/b/shelf/o/a"
    rewritten = shelf.ok("POST", path, destinationKmsKeyName=KEY)["resource"]
    assert rewritten["kmsKeyName"] == f"{KEY}/cryptoKeyVersions/2"
    body = {"kmsKeyName": f"{KEY}/cryptoKeyVersions/1"}
    assert shelf.refusal(400, "PATCH", f"{OBJECTS}/a", body)["message"] == "Cloud KMS key name cannot be changed."
    assert shelf.ok("PATCH", f"{OBJECTS}/a", {"kmsKeyName": rewritten["kmsKeyName"], "cacheControl": "no-store"})


def test_the_xml_api_names_the_key_in_a_header(shelf):
    """The XML API names the key in a header and a key of the customer excludes it."""
    header = {"x-goog-encryption-kms-key-name": KEY}
    assert shelf.raw("PUT", "/shelf/a", b"x", header).status_code == 200
    assert shelf.ok("GET", f"{OBJECTS}/a")["kmsKeyName"] == f"{KEY}/cryptoKeyVersions/1"
    assert upload(shelf, "b", headers=key_headers(b"1" * 32)).status_code == 400
    shelf.ok("PATCH", BUCKET, {"encryption": {"defaultKmsKeyName": KEY}})
    customer_object = shelf.raw("POST", f"{UPLOAD}?uploadType=media&name=b", b"x", key_headers(b"1" * 32)).json()
    assert ("kmsKeyName" in customer_object, "customerEncryption" in customer_object) == (False, True)
