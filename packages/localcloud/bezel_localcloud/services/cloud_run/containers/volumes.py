"""Volumes of a container: mounted buckets and secrets, read from a template, and their validation. Pure.

Sources: the discovery document of run v2 (SecretVolumeSource, VersionToPath) and Cloud Run's page on secrets. Leaves
out whether bucket, secret and version exist (references.py), and volumes of other kinds.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from bezel_localcloud.core.json_types import Json

MODE = 0o444
_HIGHEST_MODE = 0o777
_SOURCES = ("secret", "cloudSqlInstance", "emptyDir", "nfs", "gcs")
_SYSTEM = ("/dev", "/proc", "/sys")


@dataclass(frozen=True)
class BucketMount:
    """A bucket mounted as a folder of the container."""

    volume: str
    path: str
    bucket: str
    only_dir: str


@dataclass(frozen=True)
class SecretFile:
    """A version of a secret as a file: its path in the volume, and its mode bits."""

    version: str
    path: str
    mode: int


@dataclass(frozen=True)
class SecretMount:
    """A secret mounted as a folder of the container.

    Attributes:
        secret: Its id, or its full name.
        sub_path: Part of the volume that the folder shows, "" for all.
    """

    volume: str
    path: str
    secret: str
    files: tuple[SecretFile, ...]
    sub_path: str = ""


def bucket_mounts(template: Json, container: Json) -> tuple[BucketMount, ...]:
    """The buckets that a container mounts."""
    mounts = []
    for entry, volume in _mounts_of(template, container):
        if (bucket := volume.get("gcs")) is not None:
            options = dict(option.partition("=")[::2] for option in bucket.get("mountOptions") or [])
            only_dir = "/".join(part for part in (options.get("only-dir", ""), entry.get("subPath", "")) if part)
            mounts.append(BucketMount(entry["name"], entry.get("mountPath", ""), bucket.get("bucket", ""), only_dir))
    return tuple(mounts)


def secret_mounts(template: Json, container: Json) -> tuple[SecretMount, ...]:
    """The secrets that a container mounts; a volume without items is one file with the secret's name."""
    mounts = []
    for entry, volume in _mounts_of(template, container):
        if (source := volume.get("secret")) is not None:
            secret, mode = str(source.get("secret", "")), int(source.get("defaultMode") or MODE)
            items = source.get("items") or [{"path": secret.rpartition("/")[2], "version": "latest"}]
            files = tuple(SecretFile(item["version"], item["path"], int(item.get("mode") or mode)) for item in items)
            path, sub_path = entry.get("mountPath", ""), entry.get("subPath", "")
            mounts.append(SecretMount(entry["name"], path, secret, files, sub_path))
    return tuple(mounts)


def volume_violations(template: Json) -> Iterator[tuple[str, str]]:
    """(field, text) of every violation of a template's volumes."""
    volumes = template.get("volumes") or []
    for index, volume in enumerate(volumes):
        field, name = f"service.template.volumes[{index}]", volume.get("name", "")
        if not name:
            yield f"{field}.name", "is required"
        if len([source for source in _SOURCES if volume.get(source) is not None]) != 1:
            yield field, f"volume '{name}' must have exactly one source"
        elif volume.get("secret") is not None:
            yield from _secret_violations(volume["secret"], f"{field}.secret")
    for name in _duplicates(volume.get("name", "") for volume in volumes):
        yield "service.template.volumes", f"the name '{name}' is given more than once"


def mount_violations(template: Json, container: Json, field: str) -> Iterator[tuple[str, str]]:
    """(field, text) of every violation of a container's mounts; `field` is the container's."""
    volumes = {volume.get("name"): volume for volume in template.get("volumes") or []}
    mounts, field = container.get("volumeMounts") or [], f"{field}.volume_mounts"
    for mount in mounts:
        path = str(mount.get("mountPath", ""))
        if mount.get("name") not in volumes:
            yield field, f"no volume is named '{mount.get('name')}'"
        elif volumes[mount["name"]].get("secret") is not None and _is_below(path, _SYSTEM):
            yield field, f"mount path '{path}': a secret cannot be mounted at or below {', '.join(_SYSTEM)}"
        if not path.startswith("/"):
            yield field, f"mount path '{path}' is not absolute"
    for path in _duplicates(str(mount.get("mountPath", "")).rstrip("/") for mount in mounts):
        yield field, f"mount path '{path}' is given more than once"


def _secret_violations(source: Json, field: str) -> Iterator[tuple[str, str]]:
    if not source.get("secret"):
        yield f"{field}.secret", "is required"
    items = source.get("items") or []
    modes = [("default_mode", source.get("defaultMode"))]
    for index, item in enumerate(items):
        place, path = f"items[{index}]", str(item.get("path", ""))
        modes.append((f"{place}.mode", item.get("mode")))
        for key in ("path", "version"):
            if not item.get(key):
                yield f"{field}.{place}.{key}", "is required"
        if path.startswith(("/", "..")) or ".." in PurePosixPath(path).parts:
            yield f"{field}.{place}.path", f"'{path}' must be a relative path without '..'"
    for name, mode in modes:
        if not 0 <= int(mode or 0) <= _HIGHEST_MODE:
            yield f"{field}.{name}", f"{mode} is not between 0 and {_HIGHEST_MODE} (0777)"
    for path in _duplicates(item.get("path", "") for item in items):
        yield f"{field}.items", f"the path '{path}' is given more than once"


def _mounts_of(template: Json, container: Json) -> Iterator[tuple[Json, Json]]:
    """(mount, volume) of a container."""
    volumes = {volume.get("name"): volume for volume in template.get("volumes") or []}
    for entry in container.get("volumeMounts") or []:
        yield entry, volumes.get(entry.get("name")) or {}


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)


def _duplicates(names: Iterator[str]) -> list[str]:
    return sorted(name for name, times in Counter(names).items() if name and times > 1)
