"""Prepare the project of a running localcloud, as a user would: over REST, with the deployer's key file."""

import contextlib
import mimetypes
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

from bezel_base.errors import Problem, UserError, WrongValueError
from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud.control import access_token
from bezel_localcloud.core.paths import Endpoint


class SeedError(UserError):
    """An upload or a change that localcloud refused; the text holds its response."""


def seed(endpoint: Endpoint, bucket: str, path: str, files: Mapping[str, bytes], location: str = "US") -> int:
    """Upload files to gs://bucket/path/..., creating the bucket in a location if it is missing.

    Files that exist with the same size are skipped, so that a second call costs one listing.

    Returns:
        How many files were uploaded.

    Raises:
        SeedError: If a call is refused, or the daemon does not respond.
    """
    with _client(endpoint, f"the weights cannot be uploaded to gs://{bucket}/{path}") as client:
        _create_bucket(client, endpoint, bucket, location)
        sizes = _sizes(client, bucket, path)
        names = {f"{path}/{name}".lstrip("/"): content for name, content in files.items()}
        missing = {name: content for name, content in names.items() if sizes.get(name) != len(content)}
        for name, content in missing.items():
            query = {"uploadType": "media", "name": name}
            client.post(f"/upload/storage/v1/b/{bucket}/o", params=query, content=content).raise_for_status()
    return len(missing)


def copy_folder(endpoint: Endpoint, folder: Path) -> int:
    """Make each folder below `folder` a bucket, and the files below that its objects.

    What exists already stays as it is.

    Returns:
        How many files were uploaded.

    Raises:
        WrongValueError: There is no such folder, or a file is in no bucket.
        SeedError: A call is refused, or the daemon does not respond.
        OSError: A file cannot be read.
    """
    uploaded = 0
    for bucket in bucket_folders(folder):
        with _client(endpoint, f"{bucket} cannot be copied to gs://{bucket.name}") as client:
            _create_bucket(client, endpoint, bucket.name)
            present = _sizes(client, bucket.name)
            for file in sorted(path for path in bucket.rglob("*") if path.is_file()):
                name = file.relative_to(bucket).as_posix()
                if name in present:
                    continue
                query, kind = {"uploadType": "media", "name": name}, mimetypes.guess_type(name)[0]
                headers = {"Content-Type": kind or "application/octet-stream"}
                with file.open("rb") as content:
                    response = client.post(
                        f"/upload/storage/v1/b/{bucket.name}/o", params=query, headers=headers, content=content
                    )
                response.raise_for_status()
                uploaded += 1
    return uploaded


def bucket_folders(folder: Path) -> list[Path]:
    """The folders below a folder, each of which becomes a bucket.

    Raises:
        WrongValueError: There is no such folder, or a file in it would be in no bucket.
    """
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    loose = [entry.name for entry in entries if not entry.is_dir()]
    if not folder.is_dir() or loose:
        why = f"{', '.join(loose)} would be in no bucket" if loose else "there is no such folder"
        repair = "name a folder of folders: each is a bucket, and the files in it are its objects."
        raise WrongValueError(Problem("--seed", str(folder), f"{why}, so localcloud was not started.", repair))
    return entries


def enable(endpoint: Endpoint, api: str) -> None:
    """Enable an API of the project.

    Raises:
        SeedError: If the call is refused, or the daemon does not respond.
    """
    with _client(endpoint, f"{api} cannot be enabled") as client:
        client.post(f"/serviceusage/v1/projects/{endpoint.project}/services/{api}:enable").raise_for_status()


def _create_bucket(client: httpx.Client, endpoint: Endpoint, bucket: str, location: str = "US") -> None:
    if client.get(f"/storage/v1/b/{bucket}").status_code == httpx.codes.NOT_FOUND:
        access = {"uniformBucketLevelAccess": {"enabled": True}}
        body = {"name": bucket, "location": location, "iamConfiguration": access}
        response = client.post("/storage/v1/b", params={"project": endpoint.project}, json=body)
        if response.status_code != httpx.codes.CONFLICT:  # another client created it first
            response.raise_for_status()


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


def _sizes(client: httpx.Client, bucket: str, path: str = "") -> dict[str, int]:
    sizes: dict[str, int] = {}
    token = ""
    while True:
        query = {"prefix": f"{path}/" if path else "", "pageToken": token}
        page = client.get(f"/storage/v1/b/{bucket}/o", params=query).raise_for_status().json()
        sizes |= {item["name"]: int(item["size"]) for item in page.get("items", [])}
        token = page.get("nextPageToken", "")
        if not token:
            return sizes
