"""Google's Python library for Cloud Storage, unmodified: every method that calls a server."""

import pytest

from bezel_localcloud.core.paths import PROJECT
from tests.support.clients import environment, programs
from tests.support.record_results import check_results

pytestmark = [pytest.mark.slow, pytest.mark.clients]
KMS = f"/cloudkms/v1/projects/{PROJECT}/locations/us-east4/keyRings"
AGENT = "serviceAccount:service-123456789012@gs-project-accounts.iam.gserviceaccount.com"
# Access control lists, notifications, HMAC keys.
NOT_SERVED = {
    "Blob.acl.reload",
    "Blob.make_private",
    "Blob.make_public",
    "Blob.upload_from_string predefined_acl",
    "Bucket.acl.reload",
    "Bucket.create predefined_acl",
    "Bucket.default_object_acl.reload",
    "Bucket.get_notification",
    "Bucket.list_notifications",
    "Bucket.make_private",
    "Bucket.make_public",
    "BucketNotification.create",
    "Client.create_hmac_key",
    "Client.get_hmac_key_metadata",
    "Client.list_hmac_keys",
}


@pytest.fixture
def kms_key(cloud):
    """The name of a key that Cloud Storage's account may use."""
    cloud.enable("cloudkms")
    cloud.post(KMS, {}, keyRingId="clients")
    cloud.post(f"{KMS}/clients/cryptoKeys", {"purpose": "ENCRYPT_DECRYPT"}, cryptoKeyId="objects")
    key = f"{KMS}/clients/cryptoKeys/objects"
    cloud.grant(key, "roles/cloudkms.cryptoKeyEncrypterDecrypter", AGENT)
    return key.removeprefix("/cloudkms/v1/")


def test_the_library_of_cloud_storage_works_unmodified(variables, kms_key):
    program = programs.PROGRAMS / "storage.py"
    calls = programs.run([environment.python("storage"), program], variables | {"TRIED_KMS_KEY": kms_key})
    programs.assert_served(calls, not_served=NOT_SERVED)
    table = programs.table(
        "Clients of Cloud Storage",
        71,
        "google-cloud-storage from PyPI, unmodified but for `api_endpoint`, with the key file of `bezel local env`: "
        "every public method of clients, buckets, objects, transfers and batches that calls a server, and signed URLs "
        "and forms, sent by requests. What is not served is refused with its name.",
        "tests/clients/test_storage.py",
        calls,
    )
    check_results("clients-storage", table)
