"""Uploads of blobs: in one request or in chunks, mounted, broken off, verified, and what is left on the disk."""

import hashlib

import pytest

from bezel_localcloud.core.files.blobs import digest_of
from bezel_localcloud.services.artifact_registry.image_store import SESSION_SECONDS
from localcloud_support.registry_harness import APP, HOST, code

OTHER = f"/v2/{HOST}/bezel-local/tools/other"
BLOB = bytes(range(256)) * 9
DIGEST = digest_of(BLOB)


def start(registry, path=APP):
    answer = registry.send("POST", f"{path}/blobs/uploads/")
    assert answer.status_code == 202
    return answer.headers["location"]


def pull(registry, digest=DIGEST, path=APP):
    return registry.send("GET", f"{path}/blobs/{digest}")


@pytest.mark.slow
def test_a_blob_pushed_at_once_is_pulled_whole(registry):
    assert pull(registry).status_code == 404
    assert registry.blob(BLOB) == DIGEST
    answer = pull(registry)
    assert answer.content == BLOB
    assert answer.headers["docker-content-digest"] == DIGEST
    head = registry.send("HEAD", f"{APP}/blobs/{DIGEST}")
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(BLOB)))


def test_an_upload_is_completed_by_a_put_with_the_whole_body(registry):
    answer = registry.send("PUT", f"{start(registry)}?digest={DIGEST}", BLOB)
    assert (answer.status_code, answer.headers["location"]) == (201, f"{APP}/blobs/{DIGEST}")
    assert pull(registry).content == BLOB


def test_chunks_are_appended_in_order_and_status_names_what_has_arrived(registry):
    place = start(registry)
    assert registry.send("GET", place).headers["range"] == "0-0"
    first = registry.send("PATCH", place, BLOB[:1000], content_range="0-999")
    assert (first.status_code, first.headers["range"]) == (202, "0-999")
    assert registry.send("GET", place).headers["range"] == "0-999"
    assert registry.send("PATCH", place, BLOB[1000:2000]).headers["range"] == "0-1999"
    rest = f"2000-{len(BLOB) - 1}"
    assert registry.send("PUT", f"{place}?digest={DIGEST}", BLOB[2000:], content_range=rest).status_code == 201
    assert pull(registry).content == BLOB


@pytest.mark.slow
@pytest.mark.parametrize("header", ["1500-1999", "0-499", "1000-999", "x", "999-1498"])
def test_a_chunk_out_of_order_is_refused_and_changes_nothing(registry, header):
    place = start(registry)
    registry.send("PATCH", place, BLOB[:1000], content_range="0-999")
    answer = registry.send("PATCH", place, b"x" * 500, content_range=header)
    assert code(answer) == (416, "BLOB_UPLOAD_INVALID")
    assert (answer.headers["range"], answer.headers["location"]) == ("0-999", place)
    assert registry.send("PUT", f"{place}?digest={DIGEST}", BLOB[1000:]).status_code == 201


@pytest.mark.parametrize("body", [b"x" * 400, b"x" * 600])
def test_a_chunk_of_another_length_than_announced_is_refused(registry, body):
    """A chunk of another length than announced is refused and changes nothing."""
    place = start(registry)
    registry.send("PATCH", place, BLOB[:1000], content_range="0-999")
    assert code(registry.send("PATCH", place, body, content_range="1000-1499")) == (400, "SIZE_INVALID")
    assert registry.send("GET", place).headers["range"] == "0-999"


def test_bytes_with_another_digest_are_refused_and_leave_nothing(registry):
    place = start(registry)
    assert code(registry.send("PUT", f"{place}?digest={DIGEST}", BLOB[1:])) == (400, "DIGEST_INVALID")
    assert code(registry.send("POST", f"{APP}/blobs/uploads/?digest={DIGEST}", b"")) == (400, "DIGEST_INVALID")
    assert code(registry.send("GET", place)) == (404, "BLOB_UPLOAD_UNKNOWN")
    assert registry.files() == []


@pytest.mark.slow
@pytest.mark.parametrize("digest", ["", "sha256:abc", "md5:d41d8cd98f00b204e9800998ecf8427e", "../../cloud.db"])
def test_a_text_that_is_no_digest_is_refused(registry, digest):
    assert code(registry.send("PUT", f"{start(registry)}?digest={digest}", BLOB)) == (400, "DIGEST_INVALID")


def test_sha512_and_the_empty_blob_are_blobs_too(registry):
    digest = "sha512:" + hashlib.sha512(BLOB).hexdigest()
    assert registry.send("POST", f"{APP}/blobs/uploads/?digest={digest}", BLOB).status_code == 201
    assert pull(registry, digest).content == BLOB
    assert pull(registry, registry.blob(b"")).content == b""


def test_a_cancelled_upload_is_gone(registry):
    place = start(registry)
    registry.send("PATCH", place, BLOB)
    assert registry.send("DELETE", place).status_code == 204
    assert code(registry.send("PATCH", place, BLOB)) == (404, "BLOB_UPLOAD_UNKNOWN")
    assert registry.files() == []


def test_an_upload_belongs_to_one_image(registry):
    place = start(registry).replace("/app/", "/other/")
    assert code(registry.send("PATCH", place, BLOB)) == (404, "BLOB_UPLOAD_UNKNOWN")


def test_a_blob_is_mounted_from_an_image_that_has_it(registry):
    registry.blob(BLOB)
    name = APP.removeprefix("/v2/")
    answer = registry.send("POST", f"{OTHER}/blobs/uploads/?mount={DIGEST}&from={name}")
    assert (answer.status_code, answer.headers["location"]) == (201, f"{OTHER}/blobs/{DIGEST}")
    assert pull(registry, path=OTHER).content == BLOB
    anywhere = registry.send("POST", f"/v2/{HOST}/bezel-local/tools/third/blobs/uploads/?mount={DIGEST}")
    assert anywhere.status_code == 201


def test_a_blob_that_the_source_does_not_have_is_uploaded_instead(registry):
    registry.blob(BLOB, OTHER)
    answer = registry.send("POST", f"{APP}/blobs/uploads/?mount={DIGEST}&from={APP.removeprefix('/v2/')}")
    assert answer.status_code == 202
    assert pull(registry).status_code == 404
    assert registry.send("PUT", f"{answer.headers['location']}?digest={DIGEST}", BLOB).status_code == 201


def test_a_killed_upload_continues_after_a_restart(registry):
    place = start(registry)
    registry.send("PATCH", place, BLOB[:1000])
    registry.restart()
    assert registry.send("GET", place).headers["range"] == "0-999"
    assert registry.send("PUT", f"{place}?digest={DIGEST}", BLOB[1000:]).status_code == 201


@pytest.mark.slow
def test_an_upload_that_nobody_continues_is_forgotten_after_a_day(registry):
    place = start(registry)
    registry.send("PATCH", place, BLOB)
    registry.passes(SESSION_SECONDS + 1)
    registry.token = registry.cloud.tokens.access_token("deployer@bezel-local.iam.gserviceaccount.com", "")[0]
    another = start(registry)
    assert code(registry.send("PATCH", place, BLOB)) == (404, "BLOB_UPLOAD_UNKNOWN")
    assert registry.send("GET", another).status_code == 204
    assert registry.files() == []


@pytest.mark.slow
def test_files_of_a_kill_between_two_steps_are_removed_at_the_next_start(registry):
    registry.blob(BLOB)
    blobs = registry.cloud.blobs
    blobs.keep(b"moved, but not linked", digest_of(b"moved, but not linked"))
    (registry.cloud.layout.blob_uploads / "without-a-row").write_bytes(b"x")
    registry.restart()
    assert registry.files() == [DIGEST.removeprefix("sha256:")]
    assert pull(registry).content == BLOB


def test_two_uploads_of_the_same_blob_both_succeed(registry):
    places = [start(registry), start(registry, OTHER)]
    for place in places:
        registry.send("PATCH", place, BLOB)
    for place in places:
        assert registry.send("PUT", f"{place}?digest={DIGEST}").status_code == 201
    assert pull(registry).content == pull(registry, path=OTHER).content == BLOB
    assert registry.files() == [DIGEST.removeprefix("sha256:")]


def test_an_upload_is_used_by_one_request_at_a_time(registry):
    place = start(registry)
    with registry.cloud.blobs.exclusive(place.rpartition("/")[2]):
        assert code(registry.send("PATCH", place, BLOB)) == (409, "BLOB_UPLOAD_INVALID")
    assert registry.send("PATCH", place, BLOB).status_code == 202


def test_an_upload_continues_after_a_full_disk(registry):
    """A full disk is reported and the upload continues when there is room."""
    place = start(registry)
    registry.send("PATCH", place, BLOB[:1000])
    registry.cloud.blobs.full = True
    answer = registry.send("PATCH", place, BLOB[1000:])
    assert code(answer) == (500, "UNKNOWN")
    assert "disk is full" in answer.text
    registry.cloud.blobs.full = False
    assert registry.send("PUT", f"{place}?digest={DIGEST}", BLOB[1000:]).status_code == 201


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "status", "content"),
    [
        ("bytes=500-1499", 206, BLOB[500:1500]),
        ("bytes=2000-", 206, BLOB[2000:]),
        ("bytes=-300", 206, BLOB[-300:]),
        ("bytes=2000-99999", 206, BLOB[2000:]),
        ("bytes=99999-", 416, None),
        ("bytes=500-0", 416, None),
        ("bytes=-", 416, None),
        ("lines=1-2", 416, None),
    ],
)
def test_a_part_of_a_blob_is_pulled_by_its_range(registry, header, status, content):
    registry.blob(BLOB)
    answer = registry.send("GET", f"{APP}/blobs/{DIGEST}", range=header)
    assert answer.status_code == status
    assert content is None or answer.content == content


def test_a_blob_is_deleted_unless_a_manifest_refers_to_it(registry):
    used, free = registry.image(layer=BLOB), registry.blob(b"free")
    assert used
    assert registry.send("DELETE", f"{APP}/blobs/{free}").status_code == 202
    assert code(registry.send("DELETE", f"{APP}/blobs/{free}")) == (404, "BLOB_UNKNOWN")
    assert code(registry.send("DELETE", f"{APP}/blobs/{DIGEST}")) == (405, "UNSUPPORTED")
    assert pull(registry).content == BLOB
