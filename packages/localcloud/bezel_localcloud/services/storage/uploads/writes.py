"""Writes of objects: permission, conditions and checksums of an upload before it becomes an object's content."""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.files.checksums import Upload
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import resource_of
from bezel_localcloud.services.storage.conditions import check_preconditions
from bezel_localcloud.services.storage.encryption.kms_keys import version_for
from bezel_localcloud.services.storage.objects.contexts import with_contexts
from bezel_localcloud.services.storage.objects.generations import Generations, Placed
from bezel_localcloud.services.storage.objects.metadata import check_name, new_fields
from bezel_localcloud.services.storage.objects.retention import check_retention

_FIELDS = {"crc32c": "crc32c", "md5": "md5Hash"}
_SHOWN = {"crc32c": "CRC32C", "md5": "MD5"}


def check_permitted(call: Call, bucket: Json, name: str) -> None:
    """Check that the caller may write an object: to overwrite one takes the permission to delete it.

    Raises:
        ApiError: It may not, or the name is not one of an object.
    """
    resource = resource_of(bucket["name"], check_name(name))
    call.require("storage.objects.create", resource)
    if call.cloud.store.has("object", f"{bucket['name']}/{name}"):
        call.require("storage.objects.delete", resource)


def announced_sums(headers: Mapping[str, str], metadata: Json) -> dict[str, str]:
    """The checksums that the writer announced, in `x-goog-hash`, in `content-md5` or in the metadata."""
    pairs = [part.strip().partition("=") for part in headers.get("x-goog-hash", "").split(",") if part.strip()]
    sums = {kind.strip(): value for kind, _, value in pairs}
    if md5 := headers.get("content-md5"):
        sums["md5"] = md5
    return {kind: str(metadata[field]) for kind, field in _FIELDS.items() if metadata.get(field)} | sums


def check_sums(announced: Mapping[str, str], upload: Upload) -> None:
    """Compare the announced checksums with those of the bytes.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    for kind, computed in (("crc32c", upload.crc32c), ("md5", upload.md5)):
        if kind in announced and _bytes(announced[kind]) != _bytes(computed):
            text = (
                f'Provided {_SHOWN[kind]} hash "{announced[kind]}" doesn\'t match calculated {_SHOWN[kind]} hash '
                f'"{computed}".'
            )
            raise invalid(text, (_FIELDS[kind], announced[kind]))


def place_object(
    call: Call,
    bucket: Json,
    name: str,
    placed: Placed,
    conditions: Mapping[str, str],
    *,
    deletes: Iterable[Json] = (),
    sums: Mapping[str, str] | None = None,
    then: Callable[[Json], None] = lambda _: None,
) -> Json:
    """Make an upload an object of a bucket, under the caller's conditions, and return its row.

    Args:
        call: The request.
        bucket: The bucket.
        name: Name of the object.
        placed: Bytes and fields.
        conditions: Preconditions, as query arguments.
        deletes: Objects of the bucket that are deleted in the same step.
        sums: Announced checksums.
        then: Called with the row in the same transaction.

    Raises:
        ApiError: The caller may not write it, a condition does not hold, a field is wrong, or the checksums differ.
    """
    generations, upload = Generations(call.cloud, bucket), placed.upload
    removed = list(deletes)
    try:
        with generations.changing(name, *(row["name"] for row in removed)) as dropped:
            check_permitted(call, bucket, name)
            check_preconditions(conditions, generations.live(name))
            check_sums(sums or {}, upload)
            fields, needed = with_contexts({}, new_fields(placed.fields, bucket), timestamp(call.cloud.pace.now()))
            for permission in needed:
                call.require(permission, resource_of(bucket["name"], name))
            wanted = str(placed.fields.get("kmsKeyName") or "")
            if version := version_for(call.cloud, bucket, wanted, locked=placed.lock is not None):
                fields["kmsKeyName"] = version
            check_retention(
                bucket, {"bucket": bucket["name"], "name": name}, fields, call.cloud.pace.now(), override=False
            )
            for row in removed:
                generations.delete(row, dropped, exactly=False)
            row = generations.place(name, placed._replace(fields=fields), dropped)
            then(row)
    except BaseException:
        upload.path.unlink(missing_ok=True)
        raise
    return row


def _bytes(checksum: str) -> bytes:
    try:
        return base64.b64decode(checksum + "=" * (-len(checksum) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ApiError("INVALID_ARGUMENT", f"Invalid checksum {checksum!r}: it is not base64.") from None
