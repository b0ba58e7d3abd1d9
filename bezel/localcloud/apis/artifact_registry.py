"""Artifact Registry v1: repositories, among them remote ones that mirror an upstream registry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.localcloud.api import Api
from bezel.localcloud.errors import ApiError, invalid
from bezel.localcloud.layout import PROJECT
from bezel.localcloud.policies import read_policy, write_policy
from bezel.localcloud.shapes import timestamp

if TYPE_CHECKING:
    from bezel.localcloud.api import Call
    from bezel.localcloud.shapes import Json

api = Api("artifactregistry.googleapis.com", "Artifact Registry API")
_LOCATION = "/artifactregistry/v1/projects/{project:id}/locations/{location:id}"
_ONE = _LOCATION + "/repositories/{repository:id}"
_NAME = "projects/{project}/locations/{location}/repositories/{repository}"
_TYPE = "type.googleapis.com/google.devtools.artifactregistry.v1.Repository"
_CREATE_SECONDS, _DELETE_SECONDS = 10.0, 5.0  # of the platform's time
_UPDATABLE = (
    "description",
    "labels",
    "cleanupPolicies",
    "cleanupPolicyDryRun",
    "remoteRepositoryConfig",
    "dockerConfig",
)


@api.route("POST", _LOCATION + "/repositories", needs="artifactregistry.repositories.create")
async def create(call: Call) -> Json:
    """Create a repository."""
    repository_id, body = call.query("repositoryId"), await call.message("artifactregistry.Repository", "repository")
    if not re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", repository_id):
        raise invalid(
            f"Invalid repository ID {repository_id!r}.", ("repository_id", "lower case letters, digits, hyphens")
        )
    if body.get("format") != "DOCKER":
        raise invalid(f"Format {body.get('format')!r} is not served here; use DOCKER.", ("repository.format", "DOCKER"))
    mode, remote = body.get("mode", "STANDARD_REPOSITORY"), body.get("remoteRepositoryConfig")
    if (mode == "REMOTE_REPOSITORY") != bool(remote):
        raise invalid(
            "A remote repository needs remote_repository_config, others must not have it.", ("repository.mode", mode)
        )
    location = call.param("location")
    name = f"projects/{PROJECT}/locations/{location}/repositories/{repository_id}"
    now = timestamp(call.cloud.pace.now())
    repository = {
        "name": name,
        "createTime": now,
        "updateTime": now,
        "registryUri": f"{location}-docker.pkg.dev/{PROJECT}/{repository_id}",
        "satisfiesPzi": True,
        "vulnerabilityScanningConfig": {
            "lastEnableTime": now,
            "enablementState": "SCANNING_DISABLED",
            "enablementStateReason": "API containerscanning.googleapis.com is not enabled.",
        },
    } | {key: value for key, value in body.items() if key != "name" and value not in ("", None, {}, [])}
    repository["mode"] = mode
    with call.cloud.store.transaction():
        if call.cloud.store.get("repository", name):
            raise ApiError("ALREADY_EXISTS", "the repository already exists")
        call.cloud.store.put("repository", name, repository)
        parent = f"projects/{PROJECT}/locations/{location}"
        return call.cloud.operations.timed(parent, {}, {"@type": _TYPE} | repository, _CREATE_SECONDS)


@api.route("GET", _LOCATION + "/repositories", needs="artifactregistry.repositories.list")
def list_repositories(call: Call) -> Json:
    """Repositories of a location."""
    prefix = call.name("projects/{project}/locations/{location}/repositories/")
    return call.page(call.cloud.store.rows("repository", prefix), "repositories", default=1000)


@api.route("GET", _ONE, needs="artifactregistry.repositories.get", on=_NAME)
def get(call: Call) -> Json:
    """One repository."""
    return _repository(call)


@api.route("PATCH", _ONE, needs="artifactregistry.repositories.update", on=_NAME)
async def patch(call: Call) -> Json:
    """Change what the mask names; answers with the repository, not with an operation."""
    body = await call.message("artifactregistry.Repository", "repository")
    mask = [path.partition(".")[0] for path in call.query("updateMask").split(",") if path] or list(_UPDATABLE)
    with call.cloud.store.transaction():
        repository = _repository(call)
        for path in mask:
            key = re.sub(r"_([a-z])", lambda match: match.group(1).upper(), path)
            if key not in _UPDATABLE:
                raise invalid(f"Field {path} cannot be updated.", ("update_mask", path))
            repository.pop(key, None)
            if body.get(key):
                repository[key] = body[key]
        repository["updateTime"] = timestamp(call.cloud.pace.now())
        call.cloud.store.put("repository", repository["name"], repository)
    return repository


@api.route("DELETE", _ONE, needs="artifactregistry.repositories.delete", on=_NAME)
def delete(call: Call) -> Json:
    """Delete a repository with all it holds."""
    with call.cloud.store.transaction():
        name = _repository(call)["name"]
        call.cloud.store.delete("repository", name)
        parent = call.name("projects/{project}/locations/{location}")
        empty = {"@type": "type.googleapis.com/google.protobuf.Empty"}
        return call.cloud.operations.timed(parent, {}, empty, _DELETE_SECONDS)


@api.route("GET", _ONE + ":getIamPolicy", needs="artifactregistry.repositories.getIamPolicy", on=_NAME)
def get_policy(call: Call) -> Json:
    """Policy of a repository."""
    return read_policy(call.cloud.store, _repository(call)["name"])


@api.route("POST", _ONE + ":setIamPolicy", needs="artifactregistry.repositories.setIamPolicy", on=_NAME)
async def set_policy(call: Call) -> Json:
    """Replace it."""
    body = await call.message("artifactregistry.SetIamPolicyRequest")
    return write_policy(call.cloud.store, _repository(call)["name"], body.get("policy"))


@api.route("GET", _LOCATION + "/operations/{operation:id}")
def get_operation(call: Call) -> Json:
    """An operation."""
    return call.cloud.operations.get(call.name("projects/{project}/locations/{location}/operations/{operation}"))


def _repository(call: Call) -> Json:
    name = call.name(_NAME)
    found = call.cloud.store.get("repository", name)
    if found is None:
        raise ApiError("NOT_FOUND", f"Requested entity was not found: {name}")
    return found
