"""Objects described, copied, composed, moved, held and deleted."""

import datetime as dt

from google.api_core import exceptions

from storage_parts.common import HOUR, call_of, client, crc, expect_refusal, names

shelf = client.bucket("library-shelf")
source = shelf.blob("c/source")


@call_of("")
def _():
    source.metadata = {"kept": "yes"}
    source.upload_from_string(b"content", content_type="text/plain")


@call_of("Bucket.get_blob")
def _():
    assert shelf.get_blob("c/source").metadata == {"kept": "yes"}
    assert shelf.get_blob("c/absent") is None


@call_of("Blob.reload")
def _():
    source.reload(if_generation_match=source.generation)
    expect_refusal(exceptions.PreconditionFailed, source.reload, if_generation_match=1)
    expect_refusal(exceptions.NotModified, source.reload, if_generation_not_match=source.generation)
    expect_refusal(exceptions.NotModified, source.reload, if_etag_not_match=source.etag)


@call_of("Blob.exists")
def _():
    assert (source.exists(), shelf.blob("c/absent").exists()) == (True, False)


@call_of("Blob.patch")
def _():
    before = source.metageneration
    source.metadata = {"kept": None, "new": "1"}
    source.cache_control = "max-age=1"
    source.patch(if_metageneration_match=before)
    assert (source.metadata, source.cache_control, source.metageneration) == ({"new": "1"}, "max-age=1", before + 1)
    expect_refusal(exceptions.PreconditionFailed, source.patch, if_metageneration_match=before)


@call_of("Blob.update")
def _():
    source.reload()
    source.content_language = "en"
    source.update()
    assert (source.content_language, source.metadata) == ("en", {"new": "1"})


@call_of("Bucket.copy_blob")
def _():
    copy = shelf.copy_blob(source, client.bucket("library-depot"), "copied", if_generation_match=0)
    assert (copy.download_as_bytes(), copy.metadata, copy.crc32c) == (b"content", {"new": "1"}, crc(b"content"))
    expect_refusal(exceptions.PreconditionFailed, shelf.copy_blob, source, shelf, "x", if_source_generation_match=1)


@call_of("Blob.rewrite")
def _():
    large = shelf.blob("c/large")
    large.upload_from_string(bytes(20 << 20))
    target = client.bucket("library-depot").blob("rewritten")
    token, done, total = target.rewrite(large)
    steps = 1
    while token:
        assert not target.exists()
        token, done, total = target.rewrite(large, token=token)
        steps += 1
    assert (steps > 1, done, total) == (True, 20 << 20, 20 << 20)
    target.reload()
    assert target.crc32c == large.crc32c


@call_of("Blob.update_storage_class")
def _():
    source.update_storage_class("COLDLINE")
    assert shelf.get_blob("c/source").storage_class == "COLDLINE"


@call_of("Blob.compose")
def _():
    parts = [shelf.blob(f"c/part{number}") for number in range(3)]
    for number, part in enumerate(parts):
        part.upload_from_string(bytes([number]) * (1000 + number))
    whole = b"".join(bytes([number]) * (1000 + number) for number in range(3))
    composed = shelf.blob("c/composed")
    composed.content_type = "application/x-parts"
    composed.compose(parts, if_generation_match=0)
    assert (composed.download_as_bytes(), composed.component_count) == (whole, 3)
    assert (composed.crc32c, composed.md5_hash) == (crc(whole), None)
    again = [composed, *parts]
    stale = [1, None, None, None]
    expect_refusal(exceptions.PreconditionFailed, composed.compose, again, if_source_generation_match=stale)
    composed.compose(again)
    assert (composed.size, composed.component_count) == (2 * len(whole), 6)
    expect_refusal(exceptions.NotFound, composed.compose, [shelf.blob("c/absent")])


@call_of("Bucket.move_blob")
def _():
    blob = shelf.blob("c/before")
    blob.upload_from_string("moved")
    moved = shelf.move_blob(blob, "c/after", if_source_generation_match=blob.generation)
    assert (moved.download_as_bytes(), shelf.blob("c/before").exists()) == (b"moved", False)


@call_of("Bucket.rename_blob")
def _():
    renamed = shelf.rename_blob(shelf.blob("c/after"), "c/renamed")
    assert (renamed.download_as_bytes(), shelf.blob("c/after").exists()) == (b"moved", False)


@call_of("Blob.delete")
def _():
    blob = shelf.blob("c/renamed")
    expect_refusal(exceptions.PreconditionFailed, blob.delete, if_generation_match=1)
    blob.delete()
    expect_refusal(exceptions.NotFound, blob.delete)


@call_of("Bucket.delete_blob")
def _():
    shelf.delete_blob("c/part0")
    expect_refusal(exceptions.NotFound, shelf.delete_blob, "c/part0")


@call_of("Bucket.delete_blobs")
def _():
    missing = []
    shelf.delete_blobs([shelf.blob("c/part0"), shelf.blob("c/part1")], on_error=missing.append)
    assert names(missing) == ["c/part0"]


@call_of("Blob.test_iam_permissions")
def _():
    assert source.test_iam_permissions(["storage.objects.get"]) == ["storage.objects.get"]


@call_of("Blob holds")
def _():
    source.temporary_hold = True
    source.patch()
    expect_refusal(exceptions.Forbidden, source.delete)
    expect_refusal(exceptions.Forbidden, source.upload_from_string, "x")
    source.temporary_hold = False
    source.patch()


@call_of("Blob.retention")
def _():
    kept = client.bucket("library-depot").blob("kept")
    kept.upload_from_string("x")
    kept.retention.mode = "Unlocked"
    kept.retention.retain_until_time = dt.datetime.now(dt.UTC) + HOUR
    kept.patch()
    expect_refusal(exceptions.Forbidden, kept.delete)
    kept.retention.mode = None
    kept.retention.retain_until_time = None
    expect_refusal(exceptions.Forbidden, kept.patch)
    kept.patch(override_unlocked_retention=True)
    kept.delete()


@call_of("Bucket.retention_period")
def _():
    bucket = client.create_bucket("library-kept")
    bucket.retention_period = 3600
    bucket.default_event_based_hold = True
    bucket.patch()
    blob = bucket.blob("x")
    blob.upload_from_string("x")
    assert (blob.event_based_hold, blob.retention_expiration_time) == (True, None)
    blob.event_based_hold = False
    blob.patch()
    assert blob.retention_expiration_time is not None
    expect_refusal(exceptions.Forbidden, blob.delete)
    bucket.retention_period = None
    bucket.patch()
    blob.delete()


@call_of("Bucket.lock_retention_policy")
def _():
    bucket = client.get_bucket("library-kept")
    bucket.retention_period = 60
    bucket.patch()
    bucket.lock_retention_policy()
    assert bucket.retention_policy_locked
    bucket.retention_period = 30
    expect_refusal(exceptions.Forbidden, bucket.patch)


@call_of("Blob.get_iam_policy")
def _():
    assert shelf.blob("c/source").get_iam_policy().bindings == []
    expect_refusal(exceptions.NotFound, shelf.blob("c/absent").get_iam_policy)


@call_of("Blob.set_iam_policy")
def _():
    blob = shelf.blob("c/source")
    policy = blob.get_iam_policy()
    policy["roles/storage.legacyObjectReader"].add(f"serviceAccount:{client.get_service_account_email()}")
    blob.set_iam_policy(policy)
    assert list(blob.get_iam_policy()) == ["roles/storage.legacyObjectReader"]


@call_of("Blob.get_iam_policy with uniform access")
def _():
    bucket = client.get_bucket("library-depot")
    bucket.iam_configuration.uniform_bucket_level_access_enabled = True
    bucket.patch()
    expect_refusal(exceptions.BadRequest, bucket.blob("copied").get_iam_policy)
    bucket.iam_configuration.uniform_bucket_level_access_enabled = False
    bucket.patch()
