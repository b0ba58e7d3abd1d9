"""Google's Python library for Cloud Storage, unmodified: every method that calls a server."""

import pytest

from tests.support.clients import environment, programs
from tests.support.record_results import check_results

pytestmark = [pytest.mark.slow, pytest.mark.clients]
NOT_SERVED = {
    "Blob.acl.reload",
    "Blob.get_iam_policy",
    "Blob.make_private",
    "Blob.make_public",
    "Blob.rewrite with an encryption key",
    "Blob.set_iam_policy",
    "Blob.upload_from_string predefined_acl",
    "Blob.upload_from_string with a Cloud KMS key",
    "Blob.upload_from_string with an encryption key",
    "Bucket.acl.reload",
    "Bucket.create predefined_acl",
    "Bucket.default_object_acl.reload",
    "Bucket.get_notification",
    "Bucket.list_blobs filter",
    "Bucket.list_notifications",
    "Bucket.make_private",
    "Bucket.make_public",
    "BucketNotification.create",
    "Client.create_hmac_key",
    "Client.get_hmac_key_metadata",
    "Client.list_buckets soft_deleted",
    "Client.list_hmac_keys",
    "Client.restore_bucket",
}


def test_the_library_of_cloud_storage_works_unmodified(variables):
    program = programs.PROGRAMS / "storage.py"
    calls = programs.run([environment.python("storage"), program], variables)
    programs.assert_served(calls, not_served=NOT_SERVED)
    table = programs.table(
        "Clients: Cloud Storage",
        71,
        "google-cloud-storage from PyPI, unmodified but for `api_endpoint`, with the key file of `bezel local env`: "
        "every public method of clients, buckets, objects, transfers and batches that calls a server, and signed URLs "
        "and forms, sent by requests. What is not served is answered with 501, naming the method.",
        "tests/clients/test_storage.py",
        calls,
    )
    check_results("clients-storage", table)
