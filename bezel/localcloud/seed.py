"""Prepare the project of a running localcloud, as a user would: over REST, with the deployer's key file."""

import contextlib
from collections.abc import Iterator, Mapping

import httpx

from bezel.errors import Problem, UserError
from bezel.localcloud.control import access_token
from bezel.localcloud.core.paths import Endpoint
from bezel.loopback.plain_http import NO_TLS


class SeedError(UserError):
    """An upload or a change that localcloud refused; the text holds its response."""


def seed(endpoint: Endpoint, bucket: str, path: str, files: Mapping[str, bytes]) -> int:
    """Upload files to gs://bucket/path/..., creating the bucket if it is missing.

    Files that exist with the same size are skipped, so that a second call costs one listing.

    Returns:
        How many files were uploaded.

    Raises:
        SeedError: If a call is refused, or the daemon does not respond.
    """
    with _client(endpoint, f"the weights cannot be uploaded to gs://{bucket}/{path}") as client:
        if client.get(f"/storage/v1/b/{bucket}").status_code == httpx.codes.NOT_FOUND:
            access = {"uniformBucketLevelAccess": {"enabled": True}}
            body = {"name": bucket, "location": "US", "iamConfiguration": access}
            response = client.post("/storage/v1/b", params={"project": endpoint.project}, json=body)
            if response.status_code != httpx.codes.CONFLICT:  # another client created it first
                response.raise_for_status()
        sizes = _sizes(client, bucket, path)
        names = {f"{path}/{name}".lstrip("/"): content for name, content in files.items()}
        missing = {name: content for name, content in names.items() if sizes.get(name) != len(content)}
        for name, content in missing.items():
            query = {"uploadType": "media", "name": name}
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
        text = f"does not respond ({type(error).__name__}: {error}): {failed}, so nothing was deployed."
        repair = f"read {endpoint.directory / 'logs'}, then run it again."
        raise SeedError(Problem(f"localcloud at {endpoint.base}", None, text, repair)) from None


def _message(response: httpx.Response) -> str:
    """The message of an error's body in Google's shape, else its status."""
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"localcloud responded {response.status_code} {response.reason_phrase}"


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
