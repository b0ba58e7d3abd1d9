"""Names in requests to the registry, and the permissions on what they name.

A request names its registry in one of three ways: by `?ns=REGISTRY`, as containerd does for a mirror; by the first part
of the name, `/v2/us-east4-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE/...`, for clients that know one host only; or not at
all, which means Docker Hub. Owns the look-up of repositories. Leaves out their contents (image_store.py).
"""

import re
from dataclasses import dataclass

from starlette.requests import Request

from bezel_localcloud.core.errors import service_disabled
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT, with_project_id
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.artifact_registry.errors import RegistryError
from bezel_localcloud.services.artifact_registry.image_store import Image, ImageStore

DOCKER_HUB = "docker.io"
GOOGLE = "-docker.pkg.dev"
SERVICE = "artifactregistry.googleapis.com"
READ, WRITE, DELETE = (f"artifactregistry.repositories.{what}Artifacts" for what in ("download", "upload", "delete"))
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_HUB_ADDRESSES = {"https://registry-1.docker.io", "https://docker.io", "https://index.docker.io"}


@dataclass(frozen=True)
class RegistryTarget:
    """What a request names.

    Attributes:
        registry: Host of the registry, e.g. "us-east4-docker.pkg.dev".
        name: Name of the image there, e.g. "bezel-local/tools/bezel-bench".
        shown: The name as the request spells it, for links in responses.
        query: The query that names the registry, "" or "?ns=...".
    """

    registry: str
    name: str
    shown: str
    query: str = ""

    @property
    def is_google(self) -> bool:
        """Whether it is in Artifact Registry."""
        return self.registry.endswith(GOOGLE)

    @property
    def image(self) -> Image:
        """The image, for a name in Artifact Registry.

        Raises:
            RegistryError: NAME_INVALID, the name has no repository or no image in it.
        """
        project, _, rest = self.name.partition("/")
        repository, _, path = rest.partition("/")
        if not repository or not path:
            raise RegistryError("NAME_INVALID", f"{self.name} is not PROJECT/REPOSITORY/IMAGE")
        location = self.registry.removesuffix(GOOGLE)
        parent = with_project_id(f"projects/{project}/locations/{location}")
        return Image(f"{parent}/repositories/{repository}", path)

    def link(self, rest: str) -> str:
        """A path below the image, as the same client would ask for it."""
        return f"/v2/{self.shown}/{rest}{self.query}"


def target_of(request: Request) -> RegistryTarget:
    """The registry and name that a request's path and query give.

    Raises:
        RegistryError: NAME_INVALID.
    """
    shown, registry = request.path_params["name"], request.query_params.get("ns", "")
    name, query = shown, f"?ns={registry}" if registry else ""
    if not registry:
        first, _, rest = shown.partition("/")
        elsewhere = "." in first or ":" in first or first == "localhost"
        registry, name = (first, rest) if elsewhere else (DOCKER_HUB, shown)
    check_name(name)
    return RegistryTarget(registry, name, shown, query)


def check_name(name: str) -> None:
    """Check an image's name.

    Raises:
        RegistryError: NAME_INVALID.
    """
    if len(name) > 255 or not _NAME.fullmatch(name):
        raise RegistryError("NAME_INVALID", name[:300])


def is_tag(text: str) -> bool:
    """Whether a text can be a tag."""
    return _TAG.fullmatch(text) is not None


def images_of(cloud: Context) -> ImageStore:
    """The contents of the repositories."""
    return ImageStore(cloud.store, cloud.blobs)


def check_allowed(cloud: Context, permission: str, repository: str, caller: str | None) -> None:
    """Check that a caller (None: unauthenticated) has a permission on a repository.

    Raises:
        RegistryError: DENIED.
    """
    if not cloud.is_enabled(SERVICE):
        raise RegistryError("DENIED", service_disabled(SERVICE, "Artifact Registry API", PROJECT).message)
    if not repository.startswith(f"projects/{PROJECT}/") or not cloud.access.allows(caller, permission, repository):
        raise RegistryError("DENIED", denial(permission, repository, caller))


def denial(permission: str, repository: str, caller: str | None) -> str:
    """Artifact Registry's text for a missing permission."""
    where = f'"{permission}" on resource "{repository}" (or it may not exist)'
    if caller is None:
        return f"Unauthenticated request. Unauthenticated requests do not have permission {where}"
    return f'Permission "{permission}" denied on resource "{repository}" (or it may not exist)'


def repository_of(cloud: Context, image: Image) -> Json:
    """The repository that an image is in.

    Raises:
        RegistryError: NAME_UNKNOWN.
    """
    row = cloud.store.get("repository", image.repository)
    if row is None:
        repository = image.repository.rpartition("/")[2]
        raise RegistryError("NAME_UNKNOWN", f'Repository "{repository}" not found')
    return row


def upstream_of(repository: Json) -> str:
    """Host that a remote repository mirrors; "" for a standard repository."""
    remote = repository.get("remoteRepositoryConfig")
    if not remote:
        return ""
    docker, common = remote.get("dockerRepository") or {}, remote.get("commonRepository") or {}
    address = ((docker.get("customRepository") or {}).get("uri") or common.get("uri") or "").rstrip("/")
    if docker.get("publicRepository") == "DOCKER_HUB" or address in _HUB_ADDRESSES:
        return DOCKER_HUB
    return str(address.partition("://")[2])
