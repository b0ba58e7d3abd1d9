"""Prepare the project of a running localcloud, as a user would: over REST, with the deployer's key file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from bezel.localcloud.control import access_token
from bezel.localcloud.layout import NO_TLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.localcloud.layout import Endpoint


def seed(endpoint: Endpoint, bucket: str, path: str, files: Mapping[str, bytes]) -> int:
    """Upload files to gs://bucket/path/..., making the bucket if it is missing.

    Files that are there with the same size are left alone, so that a second call costs one listing.

    Returns:
        How many files were uploaded.

    Raises:
        httpx.HTTPError: If a call is refused.
    """
    with _client(endpoint) as client:
        if client.get(f"/storage/v1/b/{bucket}").status_code == httpx.codes.NOT_FOUND:
            body = {
                "name": bucket,
                "location": "US",
                "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
            }
            made = client.post("/storage/v1/b", params={"project": endpoint.project}, json=body)
            if made.status_code != httpx.codes.CONFLICT:  # somebody else was faster
                made.raise_for_status()
        present = _sizes(client, bucket, path)
        missing = {
            name: content
            for name, content in files.items()
            if present.get(f"{path}/{name}".lstrip("/")) != len(content)
        }
        for name, content in missing.items():
            query = {"uploadType": "media", "name": f"{path}/{name}".lstrip("/")}
            client.post(f"/upload/storage/v1/b/{bucket}/o", params=query, content=content).raise_for_status()
    return len(missing)


def enable(endpoint: Endpoint, api: str) -> None:
    """Enable an API of the project.

    Raises:
        httpx.HTTPError: If the call is refused.
    """
    with _client(endpoint) as client:
        client.post(f"/serviceusage/v1/projects/{endpoint.project}/services/{api}:enable").raise_for_status()


def _client(endpoint: Endpoint) -> httpx.Client:
    headers = {"Authorization": f"Bearer {access_token(endpoint)}"}
    return httpx.Client(base_url=endpoint.base, headers=headers, timeout=60, trust_env=False, verify=NO_TLS)


def _sizes(client: httpx.Client, bucket: str, path: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    token = ""
    while True:
        query = {"prefix": f"{path}/".lstrip("/"), "pageToken": token}
        page = client.get(f"/storage/v1/b/{bucket}/o", params=query).raise_for_status().json()
        sizes |= {item["name"]: int(item["size"]) for item in page.get("items", [])}
        token = page.get("nextPageToken", "")
        if not token:
            return sizes
