"""Prepare the project of a running localcloud, as a user would: over REST, with the deployer's key file."""

import contextlib
from collections.abc import Iterator, Mapping

import httpx

from bezel.errors import UserError
from bezel.localcloud.control import access_token
from bezel.localcloud.core.paths import Endpoint
from bezel.loopback.plain_http import NO_TLS


class SeedError(UserError):
    """An upload or a change that localcloud refused; the text holds its response."""


def seed(endpoint: Endpoint, bucket: str, path: str, files: Mapping[str, bytes]) -> int:
    """Upload files to gs://bucket/path/..., making the bucket if it is missing.

    Files that exist with the same size are skipped, so that a second call costs one listing.

    Returns:
        How many files were uploaded.

    Raises:
        SeedError: If a call is refused, or the daemon does not respond.
    """
    with _client(endpoint, f"the weights cannot be put into gs://{bucket}/{path}") as client:
        if client.get(f"/storage/v1/b/{bucket}").status_code == httpx.codes.NOT_FOUND:
            body = {
                "name": bucket,
                "location": "US",
                "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
            }
            made = client.post("/storage/v1/b", params={"project": endpoint.project}, json=body)
            if made.status_code != httpx.codes.CONFLICT:  # another client created it first
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
        SeedError: If the call is refused, or the daemon does not respond.
    """
    with _client(endpoint, f"{api} cannot be enabled") as client:
        client.post(f"/serviceusage/v1/projects/{endpoint.project}/services/{api}:enable").raise_for_status()


@contextlib.contextmanager
def _client(endpoint: Endpoint, failed: str) -> Iterator[httpx.Client]:
    """A client of the deployer; a refusal is raised as `failed` with localcloud's message."""
    headers = {"Authorization": f"Bearer {access_token(endpoint)}"}
    try:
        with httpx.Client(
            base_url=endpoint.base, headers=headers, timeout=60, trust_env=False, verify=NO_TLS
        ) as client:
            yield client
    except httpx.HTTPStatusError as error:
        raise SeedError(f"{failed}, so nothing was deployed: {_message(error.response)}") from None
    except httpx.TransportError as error:
        raise SeedError(
            f"{failed}, so nothing was deployed: localcloud at {endpoint.base} does not answer "
            f"({type(error).__name__}: {error}). See {endpoint.directory / 'logs'}, then run it again."
        ) from None


def _message(answer: httpx.Response) -> str:
    """The message of an error's body in Google's shape, else its status."""
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"localcloud answered {answer.status_code} {answer.reason_phrase}"


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
