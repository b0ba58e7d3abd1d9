"""Buckets: created, changed, listed, locked; their policies."""

import json
import os
from pathlib import Path

from google.api_core import exceptions
from google.cloud import storage

from storage_parts.common import BASE, KEY_FILE, OPTIONS, anonymous, call_of, client, expect_refusal


@call_of("Client.from_service_account_info")
def _():
    info = json.loads(Path(KEY_FILE).read_text())
    assert storage.Client.from_service_account_info(info, client_options=OPTIONS).project == client.project


@call_of("Client with STORAGE_EMULATOR_HOST")
def _():
    os.environ["STORAGE_EMULATOR_HOST"] = BASE
    try:
        key_client = storage.Client.from_service_account_json(KEY_FILE)
        assert isinstance(list(key_client.list_buckets()), list)
    finally:
        del os.environ["STORAGE_EMULATOR_HOST"]


@call_of("Client.get_service_account_email")
def _():
    assert client.get_service_account_email().endswith("@gs-project-accounts.iam.gserviceaccount.com")


@call_of("Client.create_bucket")
def _():
    bucket = client.create_bucket("library-shelf", location="us-east4")
    assert (bucket.location, bucket.location_type, bucket.storage_class) == ("US-EAST4", "region", "STANDARD")
    expect_refusal(exceptions.Conflict, client.create_bucket, "library-shelf")
    expect_refusal(exceptions.BadRequest, client.create_bucket, "NOT a name")


@call_of("Bucket.create")
def _():
    bucket = client.bucket("library-depot")
    bucket.storage_class = "NEARLINE"
    bucket.create(location="EU", enable_object_retention=True)
    assert (bucket.storage_class, bucket.object_retention_mode) == ("NEARLINE", "Enabled")


@call_of("Bucket.create predefined_acl")
def _():
    client.bucket("library-acl").create(predefined_acl="publicRead")


@call_of("Bucket.create predefined_acl of the project")
def _():
    bucket = client.bucket("library-private")
    bucket.create(predefined_acl="private")
    bucket.delete()


@call_of("Client.get_bucket")
def _():
    assert client.get_bucket("library-shelf").name == "library-shelf"
    expect_refusal(exceptions.NotFound, client.get_bucket, "library-absent")


@call_of("Client.lookup_bucket")
def _():
    assert client.lookup_bucket("library-absent") is None


@call_of("Client.list_buckets")
def _():
    buckets = client.list_buckets(prefix="library-", page_size=1)
    assert [bucket.name for bucket in buckets] == ["library-depot", "library-shelf"]


@call_of("Bucket.exists")
def _():
    assert (client.bucket("library-shelf").exists(), client.bucket("library-absent").exists()) == (True, False)


@call_of("Bucket.reload")
def _():
    bucket = client.bucket("library-shelf")
    bucket.reload(if_metageneration_match=1)
    assert bucket.path_helper("x") == "/b/x"
    expect_refusal(exceptions.PreconditionFailed, bucket.reload, if_metageneration_match=9)


@call_of("Bucket.patch")
def _():
    bucket = client.get_bucket("library-shelf")
    bucket.labels = {"made": "here"}
    bucket.cors = [{"origin": ["*"], "method": ["GET"], "maxAgeSeconds": 60}]
    bucket.versioning_enabled = True
    bucket.patch(if_metageneration_match=bucket.metageneration)
    assert (bucket.labels, bucket.versioning_enabled, bucket.metageneration) == ({"made": "here"}, True, 2)


@call_of("Bucket.update")
def _():
    bucket = client.get_bucket("library-shelf")
    bucket.labels = {"made": "again"}
    bucket.update()
    assert (bucket.labels, bucket.cors[0]["method"]) == ({"made": "again"}, ["GET"])


@call_of("Bucket lifecycle rules")
def _():
    bucket = client.get_bucket("library-depot")
    bucket.add_lifecycle_delete_rule(age=30, matches_prefix=["tmp/"])
    bucket.add_lifecycle_set_storage_class_rule("COLDLINE", is_live=False)
    bucket.add_lifecycle_abort_incomplete_multipart_upload_rule(age=1)
    bucket.patch()
    assert len(list(client.get_bucket("library-depot").lifecycle_rules)) == 3
    bucket.clear_lifecycle_rules()
    bucket.patch()
    assert list(client.get_bucket("library-depot").lifecycle_rules) == []


@call_of("Bucket.configure_website, Bucket.enable_logging")
def _():
    bucket = client.get_bucket("library-depot")
    bucket.configure_website("index.html", "404.html")
    bucket.enable_logging("library-shelf", "logs/")
    bucket.patch()
    assert client.get_bucket("library-depot").get_logging()["logBucket"] == "library-shelf"
    bucket.disable_website()
    bucket.disable_logging()
    bucket.patch()
    assert client.get_bucket("library-depot").get_logging() is None


@call_of("Bucket.soft_delete_policy, Bucket.autoclass_enabled, Bucket.rpo, Bucket.requester_pays")
def _():
    bucket = client.get_bucket("library-depot")
    bucket.soft_delete_policy.retention_duration_seconds = 8 * 86400
    bucket.rpo = "DEFAULT"
    bucket.requester_pays = True
    bucket.patch()
    bucket = client.get_bucket("library-depot")
    assert (bucket.soft_delete_policy.retention_duration_seconds, bucket.requester_pays) == (8 * 86400, True)
    bucket.requester_pays = False
    bucket.patch()


@call_of("Bucket.get_iam_policy")
def _():
    policy = client.bucket("library-shelf").get_iam_policy(requested_policy_version=3)
    assert any(binding["role"] == "roles/storage.legacyBucketOwner" for binding in policy.bindings)


@call_of("Bucket.set_iam_policy")
def _():
    bucket = client.bucket("library-shelf")
    policy = bucket.get_iam_policy(requested_policy_version=3)
    stale = policy.etag
    policy.bindings.append({"role": "roles/storage.objectViewer", "members": {"allUsers"}})
    bucket.set_iam_policy(policy)
    policy.etag = stale
    expect_refusal(exceptions.PreconditionFailed, bucket.set_iam_policy, policy)


@call_of("Bucket.test_iam_permissions")
def _():
    asked = ["storage.objects.get", "storage.objects.delete"]
    assert client.bucket("library-shelf").test_iam_permissions(asked) == asked
    assert anonymous.bucket("library-shelf").test_iam_permissions(asked) == asked[:1]
