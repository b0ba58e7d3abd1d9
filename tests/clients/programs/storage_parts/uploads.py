"""Uploads and downloads, and the names of objects."""

import datetime as dt
import gzip
import io
import os

import requests
from google.api_core import exceptions
from google.auth.exceptions import InvalidOperation
from google.cloud.storage.retry import DEFAULT_RETRY

from storage_parts.common import BASE, FOLDER, KMS_KEY, anonymous, call_of, client, crc, expect_refusal, md5, names

shelf = client.bucket("library-shelf")


@call_of("Blob.upload_from_string")
def _():
    blob = shelf.blob("a/plain")
    blob.upload_from_string("one", content_type="text/plain", if_generation_match=0)
    assert (blob.content_type, blob.size, blob.md5_hash, blob.crc32c) == ("text/plain", 3, md5(b"one"), crc(b"one"))
    expect_refusal(exceptions.PreconditionFailed, blob.upload_from_string, "two", if_generation_match=0)
    for checksum in ("md5", "crc32c", "auto"):
        shelf.blob("a/plain").upload_from_string("one", checksum=checksum, retry=DEFAULT_RETRY)


@call_of("Blob.upload_from_string with metadata")
def _():
    blob = shelf.blob("a/described")
    blob.metadata = {"key": "value", "ü": "ß"}
    blob.cache_control, blob.content_language = "no-store", "de"
    blob.content_disposition = 'attachment; filename="x"'
    blob.custom_time = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    blob.storage_class = "NEARLINE"
    blob.upload_from_string(b"described")
    stored_blob = shelf.get_blob("a/described")
    assert (stored_blob.metadata, stored_blob.cache_control) == ({"key": "value", "ü": "ß"}, "no-store")
    assert (stored_blob.content_language, stored_blob.content_disposition) == ("de", 'attachment; filename="x"')
    assert (stored_blob.storage_class, stored_blob.custom_time) == ("NEARLINE", blob.custom_time)
    assert (stored_blob.etag, stored_blob.media_link[: len(BASE)], stored_blob.self_link[: len(BASE)]) == (
        blob.etag,
        BASE,
        BASE,
    )


@call_of("Blob.upload_from_file in chunks")
def _():
    content = os.urandom(1_000_000)
    blob = shelf.blob("a/chunks", chunk_size=256 * 1024)
    blob.upload_from_file(io.BytesIO(content), if_generation_match=0)
    assert (blob.size, blob.crc32c, blob.md5_hash) == (len(content), crc(content), md5(content))


@call_of("Blob.upload_from_file of unknown size")
def _():
    blob = shelf.blob("a/stream", chunk_size=256 * 1024)

    class Pipe(io.RawIOBase):
        left = 700_000

        def readable(self):
            return True

        def read(self, size=-1):
            size = min(self.left, size if size >= 0 else self.left)
            self.left -= size
            return b"x" * size

        def tell(self):
            return 700_000 - self.left

    blob.upload_from_file(Pipe())
    assert blob.size == 700_000


@call_of("Blob.upload_from_filename")
def _():
    (FOLDER / "file.json").write_text("{}")
    blob = shelf.blob("a/file.json")
    blob.upload_from_filename(FOLDER / "file.json")
    assert blob.content_type == "application/json"


@call_of("Blob.create_resumable_upload_session")
def _():
    url = shelf.blob("a/session").create_resumable_upload_session(size=262_147, content_type="text/plain")
    chunk, small = b"x" * 262_144, requests.put(url, b"abc", headers={"Content-Range": "bytes 0-2/262147"}, timeout=30)
    assert (small.status_code, "equal or greater than 262144" in small.text) == (400, True)
    first = requests.put(url, chunk, headers={"Content-Range": "bytes 0-262143/262147"}, timeout=30)
    assert (first.status_code, first.headers["range"]) == (308, "bytes=0-262143")
    asked = requests.put(url, headers={"Content-Range": "bytes */262147"}, timeout=30)
    assert (asked.status_code, asked.headers["range"]) == (308, "bytes=0-262143")
    done = requests.put(url, b"def", headers={"Content-Range": "bytes 262144-262146/262147"}, timeout=30)
    assert (done.status_code, shelf.get_blob("a/session").size) == (200, 262_147)
    again = requests.put(url, headers={"Content-Range": "bytes */262147"}, timeout=30)
    assert again.json()["generation"] == done.json()["generation"]
    other = shelf.blob("a/ended").create_resumable_upload_session()
    assert requests.delete(other, timeout=30).status_code == 499


@call_of("Blob.open for writing")
def _():
    with shelf.blob("a/written").open("w", chunk_size=256 * 1024) as file:
        file.write("line\n" * 100_000)
    with shelf.blob("a/written").open("rb") as file:
        file.seek(5)
        assert file.readline() == b"line\n"
    with shelf.blob("a/written").open("r") as file:
        assert sum(1 for _ in file) == 100_000


@call_of("Blob.upload_from_string with an encryption key")
def _():
    blob = shelf.blob("a/secret", encryption_key=b"0" * 32)
    blob.upload_from_string("secret")
    assert (blob.download_as_bytes(), blob.md5_hash) == (b"secret", md5(b"secret"))
    assert shelf.get_blob("a/secret").md5_hash is None
    expect_refusal(exceptions.BadRequest, shelf.blob("a/secret").download_as_bytes)
    expect_refusal(exceptions.BadRequest, shelf.blob("a/secret", encryption_key=b"1" * 32).download_as_bytes)
    chunks = shelf.blob("a/secret", chunk_size=256 * 1024, encryption_key=b"0" * 32)
    content = os.urandom(600_000)
    chunks.upload_from_file(io.BytesIO(content))
    assert (chunks.download_as_bytes(), chunks.crc32c) == (content, crc(content))


@call_of("Blob.rewrite with an encryption key")
def _():
    old, new = shelf.blob("a/secret", encryption_key=b"0" * 32), shelf.blob("a/rotated", encryption_key=b"1" * 32)
    token, _, _ = new.rewrite(old)
    while token:
        token, _, _ = new.rewrite(old, token=token)
    assert new.download_as_bytes() == old.download_as_bytes()
    plain = shelf.blob("a/freed")
    plain.rewrite(old)
    assert plain.download_as_bytes() == old.download_as_bytes()
    expect_refusal(exceptions.BadRequest, plain.rewrite, shelf.blob("a/secret", encryption_key=b"2" * 32))


@call_of("Blob.upload_from_string with a Cloud KMS key")
def _():
    wrong = shelf.blob("a/kms", kms_key_name=KMS_KEY + "x")
    expect_refusal(exceptions.Forbidden, wrong.upload_from_string, "x")
    blob = shelf.blob("a/kms", kms_key_name=KMS_KEY)
    blob.upload_from_string("x")
    assert (blob.kms_key_name, blob.download_as_bytes()) == (f"{KMS_KEY}/cryptoKeyVersions/1", b"x")


@call_of("Bucket.default_kms_key_name")
def _():
    bucket = client.get_bucket("library-shelf")
    bucket.default_kms_key_name = KMS_KEY + "x"
    expect_refusal(exceptions.Forbidden, bucket.patch)
    bucket.default_kms_key_name = KMS_KEY
    bucket.patch()
    blob = bucket.blob("by-default")
    blob.upload_from_string("x")
    assert blob.kms_key_name == f"{KMS_KEY}/cryptoKeyVersions/1"
    bucket.default_kms_key_name = None
    bucket.patch()
    blob.delete()


@call_of("Blob.upload_from_string predefined_acl")
def _():
    shelf.blob("a/acl").upload_from_string("x", predefined_acl="publicRead")


content = bytes(range(256)) * 4096
blob = shelf.blob("d/bytes")


@call_of("")
def _():
    blob.upload_from_string(content)


@call_of("Blob.download_as_bytes")
def _():
    for checksum in ("auto", "md5", "crc32c", None):
        assert shelf.blob("d/bytes").download_as_bytes(checksum=checksum) == content
    assert blob.download_as_bytes(start=10, end=19) == content[10:20]
    assert blob.download_as_bytes(start=-5) == content[-5:]
    assert blob.download_as_bytes(start=len(content) - 1, end=len(content) + 9) == content[-1:]
    assert blob.download_as_bytes(raw_download=True) == content
    expect_refusal(exceptions.RequestRangeNotSatisfiable, blob.download_as_bytes, start=len(content))
    expect_refusal(exceptions.NotFound, shelf.blob("d/absent").download_as_bytes)
    expect_refusal(exceptions.PreconditionFailed, blob.download_as_bytes, if_generation_match=1)
    assert blob.download_as_bytes(if_etag_match=blob.etag, if_metageneration_match=1) == content


@call_of("Blob.download_as_text")
def _():
    text = shelf.blob("d/text")
    text.upload_from_string("Grüße", content_type="text/plain; charset=utf-8")
    assert (text.download_as_text(), text.download_as_string()) == ("Grüße", "Grüße".encode())


@call_of("Blob.download_to_file in chunks")
def _():
    target = io.BytesIO()
    shelf.blob("d/bytes", chunk_size=256 * 1024).download_to_file(target)
    assert target.getvalue() == content


@call_of("Blob.download_to_filename")
def _():
    blob.download_to_filename(FOLDER / "copy")
    assert (FOLDER / "copy").read_bytes() == content


@call_of("Client.download_blob_to_file")
def _():
    target = io.BytesIO()
    client.download_blob_to_file("gs://library-shelf/d/bytes", target, end=9)
    assert target.getvalue() == content[:10]


@call_of("Blob.download_as_bytes of gzip")
def _():
    packed = shelf.blob("d/packed")
    packed.content_encoding = "gzip"
    packed.upload_from_string(gzip.compress(b"unpacked" * 100), content_type="text/plain")
    assert packed.download_as_bytes() == b"unpacked" * 100
    assert gzip.decompress(packed.download_as_bytes(raw_download=True)) == b"unpacked" * 100
    plain = requests.get(f"{BASE}/library-shelf/d/packed", headers={"Accept-Encoding": "identity"}, timeout=30)
    assert (plain.content, plain.headers["x-goog-stored-content-encoding"]) == (b"unpacked" * 100, "gzip")


@call_of("Client.create_anonymous_client")
def _():
    assert anonymous.bucket("library-shelf").blob("d/bytes").download_as_bytes() == content
    # The library takes a 401 for a token that it should refresh.
    expect_refusal(InvalidOperation, anonymous.bucket("library-depot").blob("x").download_as_bytes)
    expect_refusal(InvalidOperation, anonymous.bucket("library-shelf").blob("x").upload_from_string, "x")


@call_of("Blob with any legal name")
def _():
    for name in (
        "a/../b",
        "a//b",
        "/a",
        "a/",
        "ü/ß 日本",
        "a%2Fb",
        "a+b c?d#e&f=g",
        "x" * 1024,
        "..a",
        "a\tb",
        "n/acl",
        "n/iam",
        "n/compose",
        "n/rewriteTo/b/x/o/y",
        "t",
        "t/u",
        "*[x]?",
        "'\"\\",
        "~._-:@!$",
    ):
        blob = shelf.blob("names/" + name if len(name) < 1000 else name)
        blob.upload_from_string(name)
        stored_blob = shelf.get_blob(blob.name)
        assert (stored_blob.name, stored_blob.download_as_text()) == (blob.name, name), name
        blob.reload()
        blob.metadata = {"a": "b"}
        blob.patch()
        assert blob.name in names(client.list_blobs(shelf, prefix=blob.name)), name
        copied = shelf.copy_blob(blob, shelf, f"copy of {name}"[:1024])
        assert copied.exists()
        copied.delete()
        blob.delete()
        assert not blob.exists(), name


@call_of("Blob with an illegal name")
def _():
    for name in ("a\nb", "a\rb", ".", "..", "x" * 1025, ".well-known/acme-challenge/x"):
        expect_refusal(exceptions.BadRequest, shelf.blob(name).upload_from_string, "x")
        assert not shelf.blob(name).exists()
