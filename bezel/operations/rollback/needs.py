"""Parts that a revision needs to start, and whether they still exist: image, secrets, weights, service account.

A revision that served once may have lost any of them since. What is gone refuses a rollback; what may not be read, or
is held by another registry, is not judged. Reads only.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from bezel.operations.context import Context
from bezel.rest import ApiError, RestError
from bezel_base.errors import one_line

_IMAGE = re.compile(r"([a-z0-9-]+)-docker\.pkg\.dev/([^/@]+)/([^/@]+)/([^@]+)@(sha256:[0-9a-f]{64})")
_SECRET = re.compile(r"(?:projects/([^/]+)/secrets/)?([^/]+)")
_OBJECTS = re.compile(r"gs://([^/\s]+)/?(.*)")
_REMOTE = "REMOTE_REPOSITORY"

_Ask = Callable[[], str | None]


@dataclass(frozen=True)
class Needs:
    """What was found of everything that a revision needs.

    Attributes:
        existing: What exists.
        gone: What does not, as a sentence without a full stop: it cannot start.
        not_judged: What could not be read, with the reason.
    """

    existing: tuple[str, ...]
    gone: tuple[str, ...]
    not_judged: tuple[str, ...]


class _NotJudgedError(Exception):
    """It cannot be judged; the text says why."""


def needs_of(context: Context, revision: Mapping[str, Any]) -> Needs:
    """Look for everything that a revision needs to start.

    Args:
        context: The context.
        revision: The revision in run v2's description.
    """
    existing: list[str] = []
    gone: list[str] = []
    not_judged: list[str] = []
    for what, ask in dict(_questions(context, revision)).items():
        try:
            answer = ask()
        except ApiError as error:
            if error.status == 404:
                gone.append(f"{what} does not exist any more")
            else:
                not_judged.append(f"{what}: not judged, {error.because}")
        except (RestError, _NotJudgedError) as error:
            not_judged.append(f"{what}: not judged, {one_line(error)}")
        else:
            (existing if answer is None else gone).append(what if answer is None else f"{what} {answer}")
    return Needs(tuple(existing), tuple(gone), tuple(not_judged))


def _questions(context: Context, revision: Mapping[str, Any]) -> Iterator[tuple[str, _Ask]]:
    """What it needs, and the question whether that exists, whose answer is what is wrong with it."""
    project = str(revision.get("name") or "").split("/")[1]
    containers = revision.get("containers") or ()
    for container in containers:
        if image := str(container.get("image") or ""):
            yield f"its image {image}", partial(_image, context, image)
        for variable in container.get("env") or ():
            if reference := (variable.get("valueSource") or {}).get("secretKeyRef"):
                yield from _secret(context, project, reference.get("secret"), reference.get("version"))
    for volume in revision.get("volumes") or ():
        if secret := volume.get("secret"):
            items: list[dict[str, Any]] = secret.get("items") or [{}]
            for item in items:
                yield from _secret(context, project, secret.get("secret"), item.get("version"))
    for bucket, folder in dict.fromkeys(_weights(revision)):
        what = f"its files gs://{bucket}/{folder}" if folder else f"its bucket gs://{bucket}"
        yield what, partial(_files, context, bucket, folder)
    if account := str(revision.get("serviceAccount") or ""):
        yield f"its service account {account}", partial(_account, context, project, account)


def _image(context: Context, image: str) -> str | None:
    parts = _IMAGE.fullmatch(image)
    if parts is None:
        raise _NotJudgedError("it is in no repository of Artifact Registry by a digest")
    region, project, repository, path, digest = parts.groups()
    base = f"{context.address('ARTIFACT_REGISTRY')}projects/{project}/locations/{region}/repositories/{repository}"
    repository_record = context.google.get(base)
    try:
        context.google.get(f"{base}/dockerImages/{quote(path, safe='')}@{digest}")
    except ApiError as error:
        if error.status == 404 and repository_record.get("mode") == _REMOTE:
            raise _NotJudgedError("its repository holds no copy now, and pulls it from upstream again") from None
        raise
    return None


def _secret(context: Context, project: str, secret: object, version: object) -> Iterator[tuple[str, _Ask]]:
    parts = _SECRET.fullmatch(str(secret or ""))
    if parts is None:
        return
    number = str(version or "latest")
    name = f"projects/{parts[1] or project}/secrets/{parts[2]}/versions/{number}"

    def ask() -> str | None:
        state = str(context.google.get(f"{context.address('SECRET_MANAGER')}{name}").get("state") or "ENABLED")
        return None if state == "ENABLED" else f"is {state.lower()}"

    yield f"version {number} of its secret {parts[2]}", ask


def _weights(revision: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(bucket, folder) of everything that it reads: its mounted buckets, and addresses among its arguments."""
    buckets = {
        str(volume.get("name")): str(volume["gcs"].get("bucket") or "")
        for volume in revision.get("volumes") or ()
        if volume.get("gcs")
    }
    for container in revision.get("containers") or ():
        values = [part for value in container.get("args") or () for part in str(value).split("=")]
        for mount in container.get("volumeMounts") or ():
            bucket, path = buckets.get(str(mount.get("name"))), f"{str(mount.get('mountPath') or '').rstrip('/')}/"
            if bucket:
                folders = [value.removeprefix(path).strip("/") for value in values if value.startswith(path)]
                yield from ((bucket, folder) for folder in folders or ("",))
        for value in values:
            if address := _OBJECTS.fullmatch(value):
                yield address[1], address[2].strip("/")


def _files(context: Context, bucket: str, folder: str) -> str | None:
    base = f"{context.address('STORAGE')}b/{quote(bucket, safe='')}"
    if not folder:
        context.google.get(base, params={"fields": "name"})
        return None
    listed = context.google.get(f"{base}/o", params={"prefix": f"{folder}/", "maxResults": 1, "fields": "items(name)"})
    return None if listed.get("items") else "are gone: the folder is empty"


def _account(context: Context, project: str, account: str) -> str | None:
    name = f"projects/{project}/serviceAccounts/{quote(account, safe='@')}"
    record = context.google.get(f"{context.address('IAM_BETA')}{name}")
    return "is disabled" if record.get("disabled") else None
