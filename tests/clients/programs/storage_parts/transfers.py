"""Batches, and transfers in chunks and of many files."""

import io
import os

from google.api_core import exceptions
from google.cloud.storage import transfer_manager

from storage_parts.common import FOLDER, call_of, client, crc, names

THREADS = {"worker_type": transfer_manager.THREAD, "max_workers": 3}
shelf = client.bucket("library-shelf")


@call_of("")
def _():
    for number in range(5):
        shelf.blob(f"b/{number}").upload_from_string(str(number))


@call_of("Client.batch patch")
def _():
    blobs = [shelf.get_blob(f"b/{number}") for number in range(5)]
    with client.batch():
        for blob in blobs:
            blob.metadata = {"in": "batch"}
            blob.patch()
    assert [shelf.get_blob(blob.name).metadata for blob in blobs] == [{"in": "batch"}] * 5


@call_of("Client.batch delete")
def _():
    with client.batch():
        for number in range(4):
            shelf.delete_blob(f"b/{number}")
    assert names(shelf.list_blobs(prefix="b/")) == ["b/4"]


@call_of("Client.batch with a failing call")
def _():
    with client.batch(raise_exception=False) as batch:
        shelf.delete_blob("b/4")
        shelf.delete_blob("b/absent ü")
    assert [answer.status_code for answer in batch._responses] == [204, 404]


content = os.urandom(11 << 20)


@call_of("")
def _():
    (FOLDER / "large").write_bytes(content)


@call_of("transfer_manager.upload_chunks_concurrently")
def _():
    blob = shelf.blob("t/large")
    blob.metadata = {"by": "parts"}
    for checksum in ("crc32c", "md5", None):
        transfer_manager.upload_chunks_concurrently(
            str(FOLDER / "large"), blob, chunk_size=5 << 20, checksum=checksum, **THREADS
        )
    blob.reload()
    assert (blob.size, blob.crc32c, blob.metadata) == (len(content), crc(content), {"by": "parts"})


@call_of("transfer_manager.download_chunks_concurrently")
def _():
    transfer_manager.download_chunks_concurrently(
        shelf.blob("t/large"), str(FOLDER / "chunks"), chunk_size=3 << 20, **THREADS
    )
    assert (FOLDER / "chunks").read_bytes() == content


@call_of("transfer_manager.upload_many")
def _():
    pairs = [(io.BytesIO(b"%d" % number), shelf.blob(f"t/many/{number}")) for number in range(5)]
    transfer_manager.upload_many(pairs, raise_exception=True, **THREADS)
    again = [(io.BytesIO(b"x"), shelf.blob("t/many/0"))]
    (result,) = transfer_manager.upload_many(again, skip_if_exists=True, **THREADS)
    assert isinstance(result, exceptions.PreconditionFailed)
    assert shelf.blob("t/many/0").download_as_bytes() == b"0"


@call_of("transfer_manager.download_many")
def _():
    pairs = [(shelf.blob(f"t/many/{number}"), io.BytesIO()) for number in range(5)]
    transfer_manager.download_many(pairs, raise_exception=True, **THREADS)
    assert [target.getvalue() for _, target in pairs] == [b"%d" % number for number in range(5)]


@call_of("transfer_manager.upload_many_from_filenames")
def _():
    (FOLDER / "tree" / "sub").mkdir(parents=True)
    (FOLDER / "tree" / "sub" / "file").write_text("x")
    options = {"source_directory": str(FOLDER / "tree"), "blob_name_prefix": "t/tree/", "raise_exception": True}
    transfer_manager.upload_many_from_filenames(shelf, ["sub/file"], **options, **THREADS)
    assert shelf.blob("t/tree/sub/file").download_as_bytes() == b"x"


@call_of("transfer_manager.download_many_to_path")
def _():
    target = {"destination_directory": str(FOLDER / "back"), "blob_name_prefix": "t/tree/", "raise_exception": True}
    transfer_manager.download_many_to_path(shelf, ["sub/file"], **target, **THREADS)
    assert (FOLDER / "back" / "sub" / "file").read_text() == "x"
