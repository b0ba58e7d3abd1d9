"""Artifact Registry v1, contents of repositories: docker images, packages, versions, tags and files.

What the registry protocol pushed, as Google's clients list and delete it. A package is an image's name with its slashes
escaped, a version a manifest's digest, a file a blob.
"""

import binascii
from urllib.parse import quote, unquote

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.files.blobs import is_digest
from bezel_localcloud.core.json_types import Json, b64, timestamp
from bezel_localcloud.core.operations import EMPTY
from bezel_localcloud.core.regions import regions
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.artifact_registry.errors import RegistryError
from bezel_localcloud.services.artifact_registry.image_store import Image, ImageStore
from bezel_localcloud.services.artifact_registry.names import images_of, is_tag

api = Api("artifactregistry.googleapis.com", "Artifact Registry API", locations=regions() | {"us", "europe", "asia"})
_PARENT = "projects/{project}/locations/{location}"
_NAME = _PARENT + "/repositories/{repository}"
_ONE = "/artifactregistry/v1/projects/{project:id}/locations/{location:id}/repositories/{repository:id}"
_PACKAGE = _ONE + "/packages/{package:path}"
_VERSIONS, _TAGS = _PACKAGE + "/versions", _PACKAGE + "/tags"
_PAGES = "pageSize pageToken"
_METADATA = {"@type": "type.googleapis.com/google.devtools.artifactregistry.v1.OperationMetadata"}
_DELETE_SECONDS = 2.0  # of the platform's time


def _needs(resource: str, action: str) -> str:
    return f"artifactregistry.{resource}.{action}"


@api.route("GET", _ONE + "/dockerImages", needs=_needs("dockerimages", "list"), on=_NAME, query=_PAGES)
def list_images(call: Call) -> Json:
    """Manifests of all images."""
    store, repository = _contents(call)
    images = [
        (f"{path}@{digest}", _docker_image(store, Image(repository, path), digest, row))
        for path in store.images(repository)
        for digest, row in store.manifests(Image(repository, path))
    ]
    return call.page(sorted(images), "dockerImages")


@api.route("GET", _ONE + "/dockerImages/{image:path}", needs=_needs("dockerimages", "get"), on=_NAME)
def get_image(call: Call) -> Json:
    """One manifest by `IMAGE@DIGEST`, or by `IMAGE:TAG`."""
    store, repository = _contents(call)
    text = unquote(call.param("image"))
    sign = "@" if "@" in text else ":"
    path, _, reference = text.partition(sign)
    image = Image(repository, path)
    version = store.resolve(image, reference)
    if version is None:
        raise _missing(f"{repository}/dockerImages/{call.param('image')}")
    return _docker_image(store, image, *version)


@api.route("GET", _VERSIONS, needs=_needs("versions", "list"), on=_NAME, query=f"view {_PAGES}")
def list_versions(call: Call) -> Json:
    """Manifests of an image."""
    store, image = _image(call)
    rows = [(digest, _version(call, store, image, digest, row)) for digest, row in store.manifests(image)]
    return call.page(rows, "versions")


@api.route("GET", _VERSIONS + "/{version}", needs=_needs("versions", "get"), on=_NAME, query="view")
def get_version(call: Call) -> Json:
    """One manifest."""
    store, image = _image(call)
    return _version(call, store, image, *_find_version(store, image, call.param("version")))


@api.route("DELETE", _VERSIONS + "/{version}", needs=_needs("versions", "delete"), on=_NAME, query="force")
def delete_version(call: Call) -> Json:
    """Delete a manifest; one that has tags only with `force`, which deletes them too."""
    store, image = _image(call)
    _delete(call, store, image, call.param("version"), force=call.flag("force"))
    return _begin_delete(call)


@api.route("POST", _VERSIONS + ":batchDelete", needs=_needs("versions", "delete"), on=_NAME)
def delete_versions(call: Call) -> Json:
    """Delete manifests with their tags, in the given order."""
    store, image = _image(call)
    names = [str(name) for name in call.body.get("names") or []]
    prefix = f"{_package_name(image)}/versions/"
    if not names or not all(name.startswith(prefix) for name in names):
        raise invalid("names must be versions of this package.", ("names", f"must begin with {prefix}"))
    for name in names:
        _find_version(store, image, name.removeprefix(prefix))
    for name in names if not call.body.get("validateOnly") else ():
        _delete(call, store, image, name.removeprefix(prefix), force=True)
    return _begin_delete(call)


@api.route("GET", _TAGS, needs=_needs("tags", "list"), on=_NAME, query=_PAGES)
def list_tags(call: Call) -> Json:
    """Tags of an image."""
    store, image = _image(call)
    return call.page([(tag, _tag(image, tag, digest)) for tag, digest in store.tags(image).items()], "tags")


@api.route("GET", _TAGS + "/{tag}", needs=_needs("tags", "get"), on=_NAME)
def get_tag(call: Call) -> Json:
    """One tag."""
    store, image = _image(call)
    return _tag(image, call.param("tag"), _digest_of_tag(store, image, call.param("tag")))


@api.route("POST", _TAGS, needs=_needs("tags", "create"), on=_NAME, query="tagId", body="tag")
def create_tag(call: Call) -> Json:
    """Point a new tag to a manifest."""
    store, image = _image(call)
    tag = call.query("tagId")
    if not is_tag(tag):
        raise invalid(f"Invalid tag ID {tag!r}.", ("tag_id", "up to 128 letters, digits, '_', '.' and '-'"))
    if tag in store.tags(image):
        raise ApiError("ALREADY_EXISTS", "the tag already exists")
    return _point(call, store, image, tag)


@api.route("PATCH", _TAGS + "/{tag}", needs=_needs("tags", "update"), on=_NAME, query="updateMask", body="tag")
def move_tag(call: Call) -> Json:
    """Point an existing tag to another manifest."""
    store, image = _image(call)
    if _digest_of_tag(store, image, call.param("tag")) != str(call.body.get("version", "")).rpartition("/")[2]:
        _check_mutable(call, image)
    return _point(call, store, image, call.param("tag"))


@api.route("DELETE", _TAGS + "/{tag}", needs=_needs("tags", "delete"), on=_NAME)
def delete_tag(call: Call) -> Json:
    """Delete a tag; its manifest stays."""
    store, image = _image(call)
    _digest_of_tag(store, image, call.param("tag"))
    _check_mutable(call, image)
    store.delete_tag(image, call.param("tag"))
    return {}


@api.route("GET", _ONE + "/packages", needs=_needs("packages", "list"), on=_NAME, query=_PAGES)
def list_packages(call: Call) -> Json:
    """Images by name."""
    store, repository = _contents(call)
    packages = [(path, _package(store, Image(repository, path))) for path in store.images(repository)]
    return call.page(packages, "packages")


@api.route("GET", _PACKAGE, needs=_needs("packages", "get"), on=_NAME)
def get_package(call: Call) -> Json:
    """One image."""
    return _package(*_image(call))


@api.route("DELETE", _PACKAGE, needs=_needs("packages", "delete"), on=_NAME)
def delete_package(call: Call) -> Json:
    """Delete an image with all manifests and tags."""
    store, image = _image(call)
    if store.tags(image):
        _check_mutable(call, image)
    store.drop_image(image)
    return _begin_delete(call)


@api.route("GET", _ONE + "/files", needs=_needs("files", "list"), on=_NAME, query=_PAGES)
def list_files(call: Call) -> Json:
    """Blobs and manifests of all images."""
    store, repository = _contents(call)
    files = _files(store, repository)
    return call.page(sorted(files.items()), "files")


@api.route("GET", _ONE + "/files/{file}", needs=_needs("files", "get"), on=_NAME)
def get_file(call: Call) -> Json:
    """One blob or manifest."""
    store, repository = _contents(call)
    file = _files(store, repository).get(call.param("file"))
    if file is None:
        raise _missing(f"{repository}/files/{call.param('file')}")
    return file


def _contents(call: Call) -> tuple[ImageStore, str]:
    """The store, and the name of the repository of the path.

    Raises:
        ApiError: NOT_FOUND.
    """
    name = call.name(_NAME)
    call.row_of("repository", name, f"Requested entity was not found: {name}")
    return images_of(call.cloud), name


def _image(call: Call) -> tuple[ImageStore, Image]:
    """The store, and the image that is the package of the path.

    Raises:
        ApiError: NOT_FOUND.
    """
    store, repository = _contents(call)
    image = Image(repository, unquote(call.param("package")))
    if not store.manifests(image):
        raise _missing(_package_name(image))
    return store, image


def _find_version(store: ImageStore, image: Image, digest: str) -> tuple[str, Json]:
    version = store.resolve(image, digest) if is_digest(digest) else None
    if version is None:
        raise _missing(f"{_package_name(image)}/versions/{digest}")
    return version


def _digest_of_tag(store: ImageStore, image: Image, tag: str) -> str:
    digest = store.tags(image).get(tag)
    if digest is None:
        raise _missing(f"{_package_name(image)}/tags/{tag}")
    return digest


def _point(call: Call, store: ImageStore, image: Image, tag: str) -> Json:
    """Point a tag to the version that the body names."""
    prefix, version = f"{_package_name(image)}/versions/", str(call.body.get("version", ""))
    if not version.startswith(prefix):
        raise invalid(f"Invalid version {version!r}.", ("tag.version", f"must begin with {prefix}"))
    digest, _ = _find_version(store, image, version.removeprefix(prefix))
    store.put_tag(image, tag, digest)
    return _tag(image, tag, digest)


def _delete(call: Call, store: ImageStore, image: Image, digest: str, *, force: bool) -> None:
    _find_version(store, image, digest)
    if tags := store.tags_of(image, digest):
        if not force:
            text = f"Failed to delete version {digest}: it is tagged ({', '.join(tags)}). Set force to delete the tags."
            raise ApiError("FAILED_PRECONDITION", text)
        _check_mutable(call, image)
    try:
        store.delete_manifest(image, digest, call.cloud.pace.now())
    except RegistryError as error:
        raise ApiError("FAILED_PRECONDITION", error.message) from None


def _check_mutable(call: Call, image: Image) -> None:
    repository = call.cloud.store.get("repository", image.repository) or {}
    if (repository.get("dockerConfig") or {}).get("immutableTags"):
        text = "The repository has enabled tag immutability: its tags can neither be moved nor deleted."
        raise ApiError("FAILED_PRECONDITION", text)


def _begin_delete(call: Call) -> Json:
    return call.cloud.operations.begin_timed(call.name(_PARENT), _METADATA, EMPTY, _DELETE_SECONDS)


def _missing(name: str) -> ApiError:
    return ApiError("NOT_FOUND", f"Requested entity was not found: {name}")


def _package_name(image: Image) -> str:
    return f"{image.repository}/packages/{quote(image.path, safe='')}"


def _package(store: ImageStore, image: Image) -> Json:
    rows = [row for _, row in store.manifests(image)]
    return {
        "name": _package_name(image),
        "createTime": min(row["uploadTime"] for row in rows),
        "updateTime": max(row["updateTime"] for row in rows),
    }


def _tag(image: Image, tag: str, digest: str) -> Json:
    name = _package_name(image)
    return {"name": f"{name}/tags/{tag}", "version": f"{name}/versions/{digest}"}


def _version(call: Call, store: ImageStore, image: Image, digest: str, row: Json) -> Json:
    shown = {
        "name": f"{_package_name(image)}/versions/{digest}",
        "createTime": row["uploadTime"],
        "updateTime": row["updateTime"],
        "metadata": _metadata(image, digest, row),
    }
    tags = store.tags_of(image, digest)
    if call.query("view") == "FULL" and tags:
        shown["relatedTags"] = [_tag(image, tag, digest) for tag in tags]
    return shown


def _metadata(image: Image, digest: str, row: Json) -> Json:
    metadata = {
        "name": f"{image.repository}/dockerImages/{quote(image.path, safe='')}@{digest}",
        "imageSizeBytes": str(row["imageSizeBytes"]),
        "mediaType": row["mediaType"],
        "artifactType": row["artifactType"] if row["subject"] else "",
        "buildTime": row["buildTime"],
    }
    return {key: value for key, value in metadata.items() if value}


def _docker_image(store: ImageStore, image: Image, digest: str, row: Json) -> Json:
    project, location, repository = image.repository.split("/")[1::2]
    manifests = [
        {"digest": child["digest"], "mediaType": child["mediaType"]}
        | {key: value for key, value in _platform(child).items() if value}
        for child in row["children"]
    ]
    shown = _metadata(image, digest, row) | {
        "uri": f"{location}-docker.pkg.dev/{project}/{repository}/{image.path}@{digest}",
        "tags": store.tags_of(image, digest),
        "uploadTime": row["uploadTime"],
        "updateTime": row["updateTime"],
        "imageManifests": manifests,
    }
    return {key: value for key, value in shown.items() if value}


def _platform(child: Json) -> Json:
    platform = child.get("platform") or {}
    names = {"architecture": "architecture", "os": "os", "variant": "variant", "osVersion": "os.version"}
    return {name: str(platform.get(key) or "") for name, key in names.items()}


def _files(store: ImageStore, repository: str) -> dict[str, Json]:
    """Files by digest: blobs, and manifests with the version that they are."""
    files = {
        digest: _file(repository, digest, row["size"], timestamp(row["time"]), "")
        for digest, row in store.links(repository).items()
    }
    for path in store.images(repository):
        image = Image(repository, path)
        for digest, row in store.manifests(image):
            owner = f"{_package_name(image)}/versions/{digest}"
            files[digest] = _file(repository, digest, row["size"], row["uploadTime"], owner)
    return files


def _file(repository: str, digest: str, size: int, moment: str, owner: str) -> Json:
    algorithm, _, value = digest.partition(":")
    file = {
        "name": f"{repository}/files/{digest}",
        "sizeBytes": str(size),
        "hashes": [{"type": algorithm.upper(), "value": b64(binascii.unhexlify(value))}],
        "createTime": moment,
        "updateTime": moment,
    }
    return file | ({"owner": owner} if owner else {})
