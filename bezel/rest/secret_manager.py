"""Secrets of a project in Secret Manager: look-up, creation, and new versions. No function returns a value.

Owns the requests and the parsing of their responses. Leaves out reading values, which only servers and the copy of
weights do, and where a value comes from.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import google_crc32c

from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel_base.text.redaction import redact

MAX_BYTES = 65_536
"""Largest value of a version."""


@dataclass(frozen=True, slots=True)
class SecretVersion:
    """The newest version of a secret: its number, `ENABLED`, `DISABLED` or `DESTROYED`, and its creation, RFC 3339."""

    number: int
    state: str
    created: str


@dataclass(frozen=True, slots=True)
class SecretState:
    """A secret without its value.

    Attributes:
        created: RFC 3339.
        labels: Its labels.
        newest: Its newest version; None where it has none.
    """

    created: str
    labels: Mapping[str, str]
    newest: SecretVersion | None


def secret_of(client: GoogleClient, project: str, name: str) -> SecretState | None:
    """Return a secret of a project; None where there is none.

    Raises:
        RestError: A request failed.
    """
    secret = _get(client, _url(project, name))
    if secret is None:
        return None
    newest = _get(client, f"{_url(project, name)}/versions/latest")
    labels = {str(key): str(value) for key, value in (secret.get("labels") or {}).items()}
    return SecretState(str(secret.get("createTime") or ""), labels, _version(newest) if newest else None)


def create_secret(client: GoogleClient, project: str, name: str, labels: Mapping[str, str]) -> None:
    """Create a secret without a version, replicated by Google; one that was created meanwhile stays as it is.

    Raises:
        RestError: The request failed.
    """
    body = {"replication": {"automatic": {}}, "labels": dict(labels)}
    try:
        client.request("POST", _url(project), json=body, params={"secretId": name})
    except ApiError as error:
        if error.status != 409:
            raise


def add_version(client: GoogleClient, project: str, name: str, value: bytes) -> SecretVersion:
    """Add a version, which becomes the latest. Google compares its checksum.

    Raises:
        RestError: The request failed; its text does not hold the value. It is not repeated where it is unknown whether
            Google acted on it: a repeated one would add another version.
    """
    data, checksum = base64.b64encode(value).decode(), google_crc32c.value(value)
    body = {"payload": {"data": data, "dataCrc32c": str(checksum)}}
    try:
        return _version(client.request("POST", f"{_url(project, name)}:addVersion", json=body))
    except RestError as error:
        raise RestError(redact(str(error), value.decode(errors="replace"), data)) from None


def _get(client: GoogleClient, url: str) -> dict[str, Any] | None:
    try:
        return client.get(url)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def _version(row: Mapping[str, object]) -> SecretVersion:
    number = str(row.get("name") or "").rpartition("/")[2]
    return SecretVersion(
        int(number) if number.isdecimal() else 0, str(row.get("state") or ""), str(row.get("createTime") or "")
    )


def _url(project: str, name: str | None = None) -> str:
    url = f"{endpoint('SECRET_MANAGER')}projects/{project}/secrets"
    return url if name is None else f"{url}/{name}"
