"""Objects encrypted with keys of customers: unreadable without the key, on the disk too."""

import base64
import hashlib
import os
import re

import pytest

from bezel_localcloud.core.files.checksums import measure_file
from localcloud_support.customer_keys import key_headers

OBJECTS = "/storage/v1/b/shelf/o"
UPLOAD = "/upload/storage/v1/b/shelf/o"
CONTENT = b"planted words " * 3000
ONE, OTHER = b"1" * 32, b"2" * 32
MISSING = "The target object is encrypted by a customer-supplied encryption key."
WRONG = "The provided encryption key is incorrect."


def source(secret):
    return key_headers(secret, "x-goog-copy-source-encryption-")


@pytest.fixture
def upload_with_key(project):
    """A function that uploads an object with a key and returns its JSON."""

    def upload(name, secret=ONE, content=CONTENT):
        answer = project.raw("POST", f"{UPLOAD}?uploadType=media&name={name}", content, key_headers(secret))
        assert answer.status_code == 200, answer.text
        return answer.json()

    return upload


def media(project, name, headers=None):
    return project.raw("GET", f"{OBJECTS}/{name}?alt=media", headers=headers)


def message(answer):
    return answer.status_code, answer.json()["error"]["errors"][0]["reason"], answer.json()["error"]["message"]


def test_only_the_key_reads_the_bytes_and_the_checksums(project, upload_with_key):
    written = upload_with_key("a")
    digest = key_headers(ONE)["x-goog-encryption-key-sha256"]
    assert written["customerEncryption"] == {"encryptionAlgorithm": "AES256", "keySha256": digest}
    assert "md5Hash" in written
    assert message(media(project, "a")) == (400, "resourceIsEncryptedWithCustomerEncryptionKey", MISSING)
    assert message(media(project, "a", key_headers(OTHER))) == (400, "customerEncryptionKeyIsIncorrect", WRONG)
    part = media(project, "a", {**key_headers(ONE), "Range": "bytes=14017-14030"})
    assert (part.status_code, part.content) == (206, CONTENT[14017:14031])
    whole = media(project, "a", key_headers(ONE))
    assert (whole.content, whole.headers["x-goog-encryption-key-sha256"]) == (CONTENT, digest)
    plain = project.ok("GET", f"{OBJECTS}/a")
    assert plain["size"] == str(len(CONTENT))
    assert not {"crc32c", "md5Hash"} & plain.keys()
    assert project.raw("GET", f"{OBJECTS}/a", headers=key_headers(ONE)).json()["md5Hash"] == written["md5Hash"]
    assert message(project.raw("GET", f"{OBJECTS}/a", headers=key_headers(OTHER)))[0] == 400


def test_neither_the_bytes_nor_the_key_are_on_the_disk(project, upload_with_key):
    """Neither the bytes nor the key are on the disk and no mount shows them."""
    upload_with_key("a/b")
    project.restart()
    assert media(project, "a%2Fb", key_headers(ONE)).content == CONTENT
    files = [path for path in project.cloud.layout.root.rglob("*") if path.is_file()]
    content = b"".join(path.read_bytes() for path in files)
    assert not any(secret in content for secret in (b"planted words", ONE, base64.b64encode(ONE)))
    assert not (project.cloud.objects.bucket_folder("shelf") / "a/b").exists()


@pytest.mark.slow
def test_an_object_without_a_key_is_not_read_with_one(project, put):
    put("plain")
    reason = "resourceNotEncryptedWithCustomerEncryptionKey"
    assert message(media(project, "plain", key_headers(ONE)))[:2] == (400, reason)
    assert message(project.raw("GET", f"{OBJECTS}/plain", headers=key_headers(ONE)))[:2] == (400, reason)
    assert media(project, "plain").content == b"x"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"x-goog-encryption-algorithm": "AES128"}, "customerEncryptionAlgorithmIsInvalid"),
        ({"x-goog-encryption-key": "short"}, "customerEncryptionKeyFormatIsInvalid"),
        ({"x-goog-encryption-key-sha256": "AAAA"}, "customerEncryptionKeySha256IsInvalid"),
    ],
)
def test_headers_that_do_not_fit_together_are_refused_in_both_apis(project, change, reason):
    headers = key_headers(ONE) | change
    assert message(project.raw("POST", f"{UPLOAD}?uploadType=media&name=a", b"x", headers))[:2] == (400, reason)
    assert f"<Code>{reason[0].upper()}{reason[1:]}</Code>" in project.raw("PUT", "/shelf/a", b"x", headers).text
    assert project.call("GET", f"{OBJECTS}/a").status_code == 404


def test_a_rewrite_changes_the_key_and_takes_both(project, upload_with_key):
    upload_with_key("a")
    path = f"{OBJECTS}/a/rewriteTo/b/shelf/o/b"
    assert message(project.raw("POST", path))[1] == "resourceIsEncryptedWithCustomerEncryptionKey"
    assert message(project.raw("POST", path, headers=source(OTHER)))[1] == "customerEncryptionKeyIsIncorrect"
    rotated = project.raw("POST", path, headers=source(ONE) | key_headers(OTHER)).json()["resource"]
    assert rotated["customerEncryption"]["keySha256"] == key_headers(OTHER)["x-goog-encryption-key-sha256"]
    assert media(project, "b", key_headers(OTHER)).content == CONTENT
    assert media(project, "b", key_headers(ONE)).status_code == 400
    freed = project.raw("POST", path.replace("/b/shelf/o/b", "/b/shelf/o/c"), headers=source(ONE)).json()["resource"]
    assert ("customerEncryption" in freed, media(project, "c").content) == (False, CONTENT)


def test_a_copy_a_move_and_a_composition_take_the_key(project, upload_with_key):
    for name in ("a", "b"):
        upload_with_key(name)
    body = b'{"sourceObjects": [{"name": "a"}, {"name": "b"}]}'
    assert project.raw("POST", f"{OBJECTS}/joined/compose", body).status_code == 400
    joined = project.raw("POST", f"{OBJECTS}/joined/compose", body, key_headers(ONE)).json()
    assert media(project, "joined", key_headers(ONE)).content == CONTENT * 2
    (project.cloud.layout.root / "twice").write_bytes(CONTENT * 2)
    assert joined["crc32c"] == measure_file(project.cloud.layout.root / "twice").crc32c
    assert project.raw("POST", f"{OBJECTS}/a/moveTo/o/moved").status_code == 400
    assert project.raw("POST", f"{OBJECTS}/a/moveTo/o/moved", headers=key_headers(ONE)).status_code == 200
    assert media(project, "moved", key_headers(ONE)).content == CONTENT
    assert (
        project.raw("POST", f"{OBJECTS}/b/copyTo/b/shelf/o/copy", headers=source(ONE) | key_headers(ONE)).status_code
        == 200
    )
    assert media(project, "copy", key_headers(ONE)).content == CONTENT


@pytest.mark.slow
def test_every_request_of_a_session_brings_the_key_also_after_a_restart(project):
    data = os.urandom(300_000)
    opened = project.raw("POST", f"{UPLOAD}?uploadType=resumable&name=a", headers=key_headers(ONE))
    address, first = opened.headers["location"], {"Content-Range": "bytes 0-262143/300000"}
    assert project.raw("PUT", address, data[:262_144], first).status_code == 400
    assert project.raw("PUT", address, data[:262_144], first | key_headers(OTHER)).status_code == 400
    assert project.raw("PUT", address, data[:262_144], first | key_headers(ONE)).status_code == 308
    project.restart()
    rest = {"Content-Range": "bytes 262144-299999/300000"}
    done = project.raw("PUT", address, data[262_144:], rest | key_headers(ONE))
    assert (done.status_code, media(project, "a", key_headers(ONE)).content) == (200, data)
    assert done.json()["md5Hash"] == base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def test_the_xml_api_takes_the_same_headers(project):
    assert project.raw("PUT", "/shelf/a", CONTENT, key_headers(ONE)).status_code == 200
    refused = project.raw("GET", "/shelf/a")
    assert refused.status_code == 400
    assert re.findall("<(?:Code|Message)>([^<]*)", refused.text) == [
        "ResourceIsEncryptedWithCustomerEncryptionKey",
        MISSING,
    ]
    assert "<Code>CustomerEncryptionKeyIsIncorrect<" in project.raw("GET", "/shelf/a", headers=key_headers(OTHER)).text
    assert project.raw("GET", "/shelf/a", headers=key_headers(ONE)).content == CONTENT
    assert "x-goog-hash" not in project.raw("HEAD", "/shelf/a").headers
    assert "x-goog-hash" in project.raw("HEAD", "/shelf/a", headers=key_headers(ONE)).headers
    copied = project.raw("PUT", "/shelf/b", b"", {"x-goog-copy-source": "shelf/a"} | source(ONE))
    assert (copied.status_code, project.raw("GET", "/shelf/b").content) == (200, CONTENT)


@pytest.mark.slow
def test_the_parts_of_an_xml_upload_bring_the_key(project):
    begun = project.raw("POST", "/shelf/a?uploads", headers=key_headers(ONE)).text
    upload = f"/shelf/a?uploadId={re.search('<UploadId>([^<]*)', begun)[1]}"
    part, last = os.urandom(5 << 20), b"last"
    assert project.raw("PUT", f"{upload}&partNumber=1", part).status_code == 400
    etags = [
        project.raw("PUT", f"{upload}&partNumber={number}", data, key_headers(ONE)).headers["etag"]
        for number, data in ((1, part), (2, last))
    ]
    parts = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{etag}</ETag></Part>" for n, etag in enumerate(etags, 1))
    document = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    assert project.raw("POST", upload, document, key_headers(OTHER)).status_code == 400
    assert project.raw("POST", upload, document, key_headers(ONE)).status_code == 200
    assert project.raw("GET", "/shelf/a", headers=key_headers(ONE)).content == part + last
    assert project.raw("GET", "/shelf/a").status_code == 400


def test_a_restored_object_still_needs_its_key(project, upload_with_key):
    generation = upload_with_key("a")["generation"]
    project.call("DELETE", f"{OBJECTS}/a")
    restored = project.ok("POST", f"{OBJECTS}/a/restore", generation=generation)
    assert "customerEncryption" in restored
    assert media(project, "a").status_code == 400
    assert media(project, "a", key_headers(ONE)).content == CONTENT
