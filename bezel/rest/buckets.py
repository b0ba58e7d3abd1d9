"""Description of a Cloud Storage bucket: where it is. Needs `storage.buckets.get`, which a reader of objects lacks."""

from typing import Any
from urllib.parse import quote

from bezel.rest.client import GoogleClient

_FIELDS = "location,locationType,customPlacementConfig"


def bucket_of(client: GoogleClient, storage: str, name: str) -> dict[str, Any]:
    """The location of a bucket, as the API writes it.

    Args:
        client: The client; its deadline bounds the question.
        storage: Base address of the Storage API.
        name: Name of the bucket.

    Raises:
        RestError: There is no such bucket, it may not be read, or Cloud Storage did not answer.
    """
    return client.get(f"{storage}b/{quote(name, safe='')}", params={"fields": _FIELDS})
