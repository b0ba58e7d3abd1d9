"""Calls that are not served, and the end of everything."""

from google.api_core import exceptions

from storage_parts.common import client, refused, tried

shelf, blob = client.bucket("library-shelf"), client.bucket("library-shelf").blob("a/plain")

for name, call in {
    "Bucket.acl.reload": shelf.acl.reload,
    "Bucket.default_object_acl.reload": shelf.default_object_acl.reload,
    "Blob.acl.reload": blob.acl.reload,
    "Blob.make_public": blob.make_public,
    "Blob.make_private": blob.make_private,
    "Bucket.make_public": shelf.make_public,
    "Bucket.make_private": shelf.make_private,
    "Blob.get_iam_policy": blob.get_iam_policy,
    "Blob.set_iam_policy": lambda: blob.set_iam_policy(shelf.get_iam_policy()),
    "Bucket.list_notifications": lambda: list(shelf.list_notifications()),
    "Bucket.get_notification": lambda: shelf.get_notification("1"),
    "BucketNotification.create": lambda: shelf.notification("topic").create(),
    "Client.create_hmac_key": lambda: client.create_hmac_key("x@example.com"),
    "Client.list_hmac_keys": lambda: list(client.list_hmac_keys()),
    "Client.get_hmac_key_metadata": lambda: client.get_hmac_key_metadata("GOOG1"),
    "Client.restore_bucket": lambda: client.restore_bucket("library-shelf", generation=1),
    "Client.list_buckets soft_deleted": lambda: list(client.list_buckets(soft_deleted=True)),
    "Blob.rewrite with an encryption key": lambda: shelf.blob("e", encryption_key=b"0" * 32).rewrite(blob),
}.items():
    tried(name)(call)


@tried("Bucket.delete")
def _():
    refused(exceptions.Conflict, client.bucket("library-shelf").delete)
    empty = client.create_bucket("library-empty")
    empty.delete()
    assert client.lookup_bucket("library-empty") is None


@tried("Bucket.delete force")
def _():
    for name in ("library-shelf", "library-depot"):
        client.get_bucket(name).delete(force=True)
        assert client.lookup_bucket(name) is None


@tried("Client.close")
def _():
    client.close()
