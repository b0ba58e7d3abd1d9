"""Calls that are not served, and the end of everything."""

from google.api_core import exceptions

from storage_parts.common import call_of, client, expect_refusal

shelf, blob = client.bucket("library-shelf"), client.bucket("library-shelf").blob("a/plain")

for name, call in {
    "Bucket.acl.reload": shelf.acl.reload,
    "Bucket.default_object_acl.reload": shelf.default_object_acl.reload,
    "Blob.acl.reload": blob.acl.reload,
    "Blob.make_public": blob.make_public,
    "Blob.make_private": blob.make_private,
    "Bucket.make_public": shelf.make_public,
    "Bucket.make_private": shelf.make_private,
    "Bucket.list_notifications": lambda: list(shelf.list_notifications()),
    "Bucket.get_notification": lambda: shelf.get_notification("1"),
    "BucketNotification.create": lambda: shelf.notification("topic").create(),
    "Client.create_hmac_key": lambda: client.create_hmac_key("x@example.com"),
    "Client.list_hmac_keys": lambda: list(client.list_hmac_keys()),
    "Client.get_hmac_key_metadata": lambda: client.get_hmac_key_metadata("GOOG1"),
}.items():
    call_of(name)(call)


@call_of("Bucket.delete")
def _():
    expect_refusal(exceptions.Conflict, client.bucket("library-shelf").delete)
    empty = client.create_bucket("library-empty")
    empty.delete()
    assert client.lookup_bucket("library-empty") is None


@call_of("Bucket.delete force")
def _():
    for name in ("library-shelf", "library-depot"):
        client.get_bucket(name).delete(force=True)
        assert client.lookup_bucket(name) is None


@call_of("Client.list_buckets soft_deleted")
def _():
    by_name = {bucket.name: bucket for bucket in client.list_buckets(soft_deleted=True)}
    assert {"library-shelf", "library-depot", "library-empty"} <= by_name.keys()
    assert by_name["library-shelf"].soft_delete_time < by_name["library-shelf"].hard_delete_time
    assert "library-shelf" not in {bucket.name for bucket in client.list_buckets()}


@call_of("Client.get_bucket soft_deleted")
def _():
    (generation,) = [one.generation for one in client.list_buckets(soft_deleted=True) if one.name == "library-shelf"]
    assert client.get_bucket("library-shelf", generation=generation, soft_deleted=True).generation == generation
    expect_refusal(exceptions.NotFound, client.get_bucket, "library-shelf")


@call_of("Client.restore_bucket")
def _():
    (generation,) = [one.generation for one in client.list_buckets(soft_deleted=True) if one.name == "library-empty"]
    expect_refusal(exceptions.NotFound, client.restore_bucket, "library-empty", generation=1)
    assert client.restore_bucket("library-empty", generation=generation).name == "library-empty"
    client.get_bucket("library-empty").delete()


@call_of("Client.close")
def _():
    client.close()
