"""Bytes of objects: checksums, downloads, copies without copying, and what a kill leaves."""

import asyncio
import gzip
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_localcloud.core.files.checksums import crc32c, join_crc32c, measure_file
from bezel_localcloud.core.json_types import b64

OBJECTS = "/storage/v1/b/shelf/o"
UPLOAD = "/upload/storage/v1/b/shelf/o"
GIB = 1 << 30
CHUNK = 262_144  # bytes of the smallest chunk that is not the last


def media(project, name, headers=None):
    return project.raw("GET", f"{OBJECTS}/{name}?alt=media", headers=headers)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(first=st.binary(max_size=300), second=st.binary(max_size=300))
def test_the_checksum_of_joined_contents_is_that_of_their_bytes(first, second):
    assert join_crc32c(crc32c(first), crc32c(second), len(second)) == crc32c(first + second)


def test_a_published_checksum_is_computed():
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720, appendix B.4 of CRC32C's check value


def test_a_download_names_both_checksums_of_its_bytes(project, put):
    put("a", b"123456789")
    crc = b64((0xE3069283).to_bytes(4, "big"))
    assert media(project, "a").headers["x-goog-hash"] == f"crc32c={crc},md5=JfnnlDI7RTiF9RgfG2JNCw=="


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 200_000])
def test_small_and_large_contents_are_read_the_same_way(project, put, size):
    content = os.urandom(size)
    put("a", content)
    answer, head = media(project, "a"), project.raw("HEAD", f"{OBJECTS}/a?alt=media")
    assert (answer.status_code, answer.content) == (200, content)
    assert answer.headers["content-length"] == str(size)
    assert (head.content, head.headers) == (b"", answer.headers)
    part = media(project, "a", {"Range": "bytes=1-"})
    assert (part.status_code, part.content) == ((206, content[1:]) if size > 1 else (416, part.content))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "status", "content"),
    [
        ("bytes=2-4", 206, b"234"),
        ("bytes=-3", 206, b"789"),
        ("bytes=7-", 206, b"789"),
        ("bytes=8-99", 206, b"89"),
        ("bytes=-99", 200, b"0123456789"),
        ("bytes=4-2", 200, b"0123456789"),
        ("bytes=0-1,4-5", 200, b"0123456789"),
        ("letters=1-2", 200, b"0123456789"),
    ],
)
def test_a_range_is_a_part_and_a_malformed_one_has_no_effect(project, put, header, status, content):
    put("a", b"0123456789")
    answer = media(project, "a", {"Range": header})
    assert (answer.status_code, answer.content) == (status, content)
    assert ("content-range" in answer.headers) == (status == 206)


@pytest.mark.slow
def test_a_range_behind_the_end_is_refused(project, put):
    put("a", b"0123456789")
    assert media(project, "a", {"Range": "bytes=10-"}).status_code == 416


def test_gzip_is_unpacked_for_readers_that_do_not_take_it(project):
    """Gzip is unpacked for a reader that does not take it and sent as it is to one that does."""
    packed = gzip.compress(b"text" * 99)
    answer = project.raw("POST", f"{UPLOAD}?uploadType=media&name=a&contentEncoding=gzip", packed)
    assert answer.json()["size"] == str(len(packed))
    plain = media(project, "a", {"Accept-Encoding": "identity", "Range": "bytes=0-1"})
    assert (plain.status_code, plain.content, "content-encoding" in plain.headers) == (200, b"text" * 99, False)
    kept = media(project, "a", {"Accept-Encoding": "gzip"})
    assert (kept.headers["content-encoding"], kept.headers["content-length"]) == ("gzip", str(len(packed)))
    project.ok("PATCH", f"{OBJECTS}/a", {"cacheControl": "no-transform"})
    assert media(project, "a", {"Accept-Encoding": "identity"}).headers["content-encoding"] == "gzip"


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["crc32c=AAAAAA==", "md5=AAAAAAAAAAAAAAAAAAAAAA=="])
def test_bytes_that_differ_from_the_announced_checksum_become_no_object(project, wrong):
    answer = project.raw("POST", f"{UPLOAD}?uploadType=media&name=a", b"x", {"x-goog-hash": wrong})
    assert (answer.status_code, "doesn't match calculated" in answer.text) == (400, True)
    assert project.call("GET", f"{OBJECTS}/a").status_code == 404
    assert list(project.cloud.layout.uploads.iterdir()) == []


def sparse_object(project, put, size):
    """An object of zeros that takes no room on the disk."""
    put("large", b"")
    row = project.cloud.store.get("object", "shelf/large")
    path = project.cloud.objects.content(row)
    os.truncate(path, size)
    zeros = measure_file(path) if size < GIB else None
    crc = zeros.crc32c if zeros else b64((0).to_bytes(4, "big"))
    project.cloud.store.put("object", "shelf/large", row | {"size": str(size), "crc32c": crc})


def test_copies_and_compositions_of_20_gib_take_no_room(project, put):
    """Copies and compositions of 20 GiB of zeros take neither time nor room."""
    size = 20 * GIB
    sparse_object(project, put, size)
    before = sum(path.stat().st_blocks for path in project.cloud.layout.contents.iterdir())
    project.ok("POST", f"{OBJECTS}/large/rewriteTo/b/shelf/o/copy", {})
    project.ok("POST", f"{OBJECTS}/copy/moveTo/o/moved")
    parts = {"sourceObjects": [{"name": "large"}, {"name": "moved"}]}
    whole = project.ok("POST", f"{OBJECTS}/whole/compose", parts)
    assert (whole["size"], whole["componentCount"]) == (str(2 * size), 2)
    assert "md5Hash" not in whole
    after = sum(path.stat().st_blocks for path in project.cloud.layout.contents.iterdir())
    assert after - before <= 64
    assert (project.cloud.objects.bucket_folder("shelf") / "moved").stat().st_size == size
    tail = media(project, "whole", {"Range": f"bytes={2 * size - 3}-"})
    assert (tail.status_code, tail.content) == (206, b"\0\0\0")


@pytest.mark.slow
def test_runs_of_zeros_in_an_upload_take_no_room(project):
    content = b"head" + bytes(4092) + bytes(8 << 20) + b"tail"

    async def pieces():
        for begin in range(0, len(content), 1 << 16):
            yield content[begin : begin + (1 << 16)]

    upload = asyncio.run(project.cloud.objects.receive(pieces()))
    assert (upload.path.read_bytes(), upload.size) == (content, len(content))
    assert upload.path.stat().st_blocks * 512 < 1 << 20
    assert (upload.md5, upload.crc32c) == (measure_file(upload.path).md5, measure_file(upload.path).crc32c)


def test_a_composition_has_the_bytes_and_the_checksum_of_its_parts(project, put):
    for name, content in (("a", b"one"), ("b", b""), ("c", os.urandom(9000))):
        put(name, content)
    whole = b"one" + media(project, "c").content
    parts = {"sourceObjects": [{"name": name} for name in "abc"], "destination": {"contentType": "x/y"}}
    row = project.ok("POST", f"{OBJECTS}/d/compose", parts)
    assert (media(project, "d").content, row["contentType"]) == (whole, "x/y")
    assert row["crc32c"] == b64(crc32c(whole).to_bytes(4, "big"))
    assert project.refusal(400, "POST", f"{OBJECTS}/d/compose", {"sourceObjects": [{"name": "a"}] * 33})


def test_a_kill_leaves_the_old_or_the_new_object(project, put):
    """A kill before the commit leaves the old object and one after it the new."""
    put("a", b"old")
    objects, store = project.cloud.objects, project.cloud.store
    folder = objects.bucket_folder("shelf")
    row = store.get("object", "shelf/a")
    # Killed after the bytes were moved, before the row was written.
    (project.cloud.layout.contents / "unknown").write_bytes(b"new")
    (project.cloud.layout.uploads / "half").write_bytes(b"ne")
    project.restart()
    assert (media(project, "a").content, (folder / "a").read_bytes()) == (b"old", b"old")
    assert [path.name for path in project.cloud.layout.contents.iterdir()] == [row["_content"]]
    # Killed after the row was written, before the mount's folder showed it and the old bytes were deleted.
    (project.cloud.layout.contents / "newer").write_bytes(b"new")
    crc = b64(crc32c(b"new").to_bytes(4, "big"))
    project.cloud.store.put("object", "shelf/a", row | {"_content": "newer", "crc32c": crc})
    project.restart()
    assert (media(project, "a").content, (folder / "a").read_bytes()) == (b"new", b"new")
    assert [path.name for path in project.cloud.layout.contents.iterdir()] == ["newer"]


def test_a_session_continues_after_a_restart_without_a_token_and_ends_once(project):
    opened = project.raw("POST", f"{UPLOAD}?uploadType=resumable&name=a&ifGenerationMatch=0")
    address = opened.headers["location"]
    data = os.urandom(CHUNK) + b"12345"
    part = project.raw("PUT", address, data[:CHUNK], {"Content-Range": f"bytes 0-{CHUNK - 1}/*"}, token=False)
    assert (part.status_code, part.headers["range"]) == (308, f"bytes=0-{CHUNK - 1}")
    project.restart()
    again = project.raw("PUT", address, data[4:-1], {"Content-Range": f"bytes 4-{CHUNK + 3}/*"}, token=False)
    assert again.headers["range"] == f"bytes=0-{CHUNK + 3}"
    last = f"bytes {CHUNK + 4}-{CHUNK + 4}/{CHUNK + 5}"
    done = project.raw("PUT", address, data[-1:], {"Content-Range": last}, token=False)
    assert (done.status_code, media(project, "a").content) == (200, data)
    asked = project.raw("PUT", address, b"", {"Content-Range": f"bytes */{CHUNK + 5}"}, token=False)
    assert asked.json()["generation"] == done.json()["generation"]
    other = re.sub(r"upload_id=\w+", "upload_id=0", address)
    assert project.raw("PUT", other, b"x", token=False).status_code == 404


@pytest.mark.parametrize("total", ["*", str(CHUNK)])
def test_a_chunk_below_256_kib_that_is_not_the_last_is_refused(project, total):
    """A chunk below 256 KiB that is not the last is refused and changes nothing."""
    address = project.raw("POST", f"{UPLOAD}?uploadType=resumable&name=a").headers["location"]
    small = project.raw("PUT", address, b"x" * 1024, {"Content-Range": f"bytes 0-1023/{total}"}, token=False)
    assert small.status_code == 400
    assert small.json()["error"]["message"] == (
        "Invalid request.  The number of bytes uploaded is required to be equal or greater than 262144, except for the "
        "final request (it's recommended to be the exact multiple of 262144).  The received request contained 1024 "
        "bytes, which does not meet this requirement."
    )
    assert "range" not in project.raw("PUT", address, b"", {"Content-Range": "bytes */*"}, token=False).headers
    last = project.raw("PUT", address, b"x" * 1024, {"Content-Range": "bytes 0-1023/1024"}, token=False)
    assert last.json()["size"] == "1024"


def test_a_write_that_the_database_cannot_take_leaves_no_bytes(project, put):
    put("a", b"old")
    project.cloud.store.limit(full=True)
    for number in range(20):  # the last page of the database may still take a row or two
        answer = project.raw("POST", f"{UPLOAD}?uploadType=media&name={number}{'x' * 900}", b"new")
        if answer.status_code != 200:
            break
    assert (answer.status_code, "disk is full" in answer.text) == (500, True)
    project.cloud.store.limit(full=False)
    assert len(list(project.cloud.layout.contents.iterdir())) == number + 1
    assert list(project.cloud.layout.uploads.iterdir()) == []


def test_no_signature_is_in_the_request_log(project, put):
    put("a")
    project.raw("GET", "/shelf/a?X-Goog-Signature=aabbccdd&GoogleAccessId=x&Signature=eeff0011", token=False)
    logged = project.cloud.layout.wire_log.read_text()
    assert ("aabbccdd" in logged, "eeff0011" in logged, "/shelf/a" in logged) == (False, False, True)
