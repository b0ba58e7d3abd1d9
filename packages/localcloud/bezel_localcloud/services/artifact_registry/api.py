"""Artifact Registry v1: repositories, among them remote ones that mirror an upstream registry."""

import re

from bezel_localcloud.core.errors import NotServedError, invalid, refuse_unserved
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.operations import EMPTY
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.regions import regions
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.iam_policies import serve_policy
from bezel_localcloud.routing.operations_api import serve_operations
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.artifact_registry.names import images_of

api = Api("artifactregistry.googleapis.com", "Artifact Registry API", locations=regions() | {"us", "europe", "asia"})
_LOCATION = "/artifactregistry/v1/projects/{project:id}/locations/{location:id}"
_ONE = _LOCATION + "/repositories/{repository:id}"
_PARENT = "projects/{project}/locations/{location}"
_NAME = _PARENT + "/repositories/{repository}"
_NEEDS = "artifactregistry.repositories"  # prefix of the permissions
_TYPE = "type.googleapis.com/google.devtools.artifactregistry.v1.Repository"
_CREATE_SECONDS, _DELETE_SECONDS = 10.0, 5.0  # of the platform's time
_UPDATABLE = frozenset(
    {"description", "labels", "cleanupPolicies", "cleanupPolicyDryRun", "remoteRepositoryConfig", "dockerConfig"}
)
_KEPT = _UPDATABLE | {"format", "mode", "disallowUnspecifiedMode"}
# Fields that localcloud does not support.
_UNSERVED = frozenset({"kmsKeyName", "mavenConfig", "platformLogsConfig", "virtualRepositoryConfig"})
_METADATA = {"@type": "type.googleapis.com/google.devtools.artifactregistry.v1.OperationMetadata"}


@api.route("POST", _LOCATION + "/repositories", needs=_NEEDS + ".create", query="repositoryId", body="repository")
def create(call: Call) -> Json:
    """Create a repository."""
    repository_id, body = call.query("repositoryId"), call.body
    if not re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", repository_id):
        why = "lower case letters, digits, hyphens"
        raise invalid(f"Invalid repository ID {repository_id!r}.", ("repository_id", why))
    mode, remote = body.get("mode", "MODE_UNSPECIFIED"), body.get("remoteRepositoryConfig")
    mode = "STANDARD_REPOSITORY" if mode == "MODE_UNSPECIFIED" else mode
    _refuse_unserved(body, mode)
    if not body.get("format"):
        raise invalid("Repository format is required.", ("repository.format", "DOCKER"))
    if (mode == "REMOTE_REPOSITORY") != bool(remote):
        text = "A remote repository needs remote_repository_config, others must not have it."
        raise invalid(text, ("repository.mode", mode))
    name, now = f"{call.name(_PARENT)}/repositories/{repository_id}", timestamp(call.cloud.pace.now())
    repository = {
        "name": name,
        "createTime": now,
        "updateTime": now,
        "registryUri": f"{call.param('location')}-docker.pkg.dev/{PROJECT}/{repository_id}",
        "satisfiesPzi": True,
        "vulnerabilityScanningConfig": {
            "lastEnableTime": now,
            "enablementState": "SCANNING_DISABLED",
            "enablementStateReason": "API containerscanning.googleapis.com is not enabled.",
        },
    } | {key: value for key, value in body.items() if key in _KEPT and value not in ("", False, {}, [])}
    repository["mode"] = mode
    with call.cloud.store.transaction():
        call.check_absent("repository", name, "the repository already exists")
        call.cloud.store.put("repository", name, repository)
        response = {"@type": _TYPE} | repository
        return call.cloud.operations.begin_timed(call.name(_PARENT), _METADATA, response, _CREATE_SECONDS)


@api.route("GET", _LOCATION + "/repositories", needs=_NEEDS + ".list", query="pageSize pageToken")
def list_repositories(call: Call) -> Json:
    """Repositories of a location."""
    return call.page(call.cloud.store.rows("repository", call.name(_PARENT + "/repositories/")), "repositories")


@api.route("GET", _ONE, needs=_NEEDS + ".get", on=_NAME)
def get(call: Call) -> Json:
    """One repository."""
    return _repository(call)


@api.route("PATCH", _ONE, needs=_NEEDS + ".update", on=_NAME, query="updateMask", body="repository")
def patch(call: Call) -> Json:
    """Change the fields that the mask names (without one, all that can be changed) and return the repository."""
    _refuse_unserved(call.body)
    with call.cloud.store.transaction():
        old = _repository(call)
        changed = apply_mask(old, call.body, call.mask() or ["*"], "artifactregistry.Repository", _UPDATABLE)
        repository = {key: value for key, value in old.items() if key not in _UPDATABLE}
        repository |= {key: value for key, value in changed.items() if value}
        if (old["mode"] == "REMOTE_REPOSITORY") != bool(repository.get("remoteRepositoryConfig")):
            text = "A remote repository keeps its remote_repository_config, others must not have it."
            raise invalid(text, ("repository.remote_repository_config", old["mode"]))
        repository["updateTime"] = timestamp(call.cloud.pace.now())
        call.cloud.store.put("repository", repository["name"], repository)
    return repository


@api.route("DELETE", _ONE, needs=_NEEDS + ".delete", on=_NAME)
def delete(call: Call) -> Json:
    """Delete a repository with its contents."""
    with call.cloud.store.transaction():
        name = _repository(call)["name"]
        call.cloud.store.delete("repository", name)
        call.cloud.store.delete_policy(name)
        images_of(call.cloud).drop_repository(name)
        return call.cloud.operations.begin_timed(call.name(_PARENT), _METADATA, EMPTY, _DELETE_SECONDS)


serve_policy(api, _ONE, _NAME, _NEEDS, lambda call: str(_repository(call)["name"]))


serve_operations(api, _LOCATION, _PARENT, "get cancel")


def _refuse_unserved(body: Json, mode: str = "STANDARD_REPOSITORY") -> None:
    refuse_unserved(body, _UNSERVED, "a repository")
    if body.get("format", "DOCKER") != "DOCKER" or mode not in {"STANDARD_REPOSITORY", "REMOTE_REPOSITORY"}:
        text = f"localcloud serves standard and remote repositories of format DOCKER, not {body.get('format')} {mode}."
        raise NotServedError(text)


def _repository(call: Call) -> Json:
    name = call.name(_NAME)
    return call.row_of("repository", name, f"Requested entity was not found: {name}")
