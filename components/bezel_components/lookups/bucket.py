"""Lookup of a bucket's location in previews. Reads only, within seconds."""

from typing import Any

from bezel.rest import GoogleClient, endpoint
from bezel.rest.buckets import bucket_of

_SECONDS = 5.0


def look_up_bucket(name: str) -> dict[str, Any]:
    """The location of a bucket in Cloud Storage's description.

    Raises:
        RestError: There is none, or its description could not be read.
    """
    with GoogleClient(timeout_seconds=_SECONDS, deadline_seconds=_SECONDS) as client:
        return bucket_of(client, endpoint("STORAGE"), name)
