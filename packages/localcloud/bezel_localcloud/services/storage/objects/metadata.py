"""Metadata of objects: names that Google accepts, the fields that a caller may set, and objects as JSON."""

from urllib.parse import quote

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.http.update_mask import merge
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.encryption.customer_keys import reveal
from bezel_localcloud.services.storage.objects.retention import expiration

CLASSES = ("STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE", "MULTI_REGIONAL", "REGIONAL", "DURABLE_REDUCED_AVAILABILITY")
LONGEST_NAME = 1024  # bytes in UTF-8
_SETTABLE = frozenset(
    {"contentType", "metadata", "cacheControl", "contentEncoding", "contentDisposition", "contentLanguage",
     "customTime", "storageClass", "temporaryHold", "eventBasedHold", "retention", "contexts"}
)  # fmt: skip
_LARGEST_METADATA = 8192  # bytes of all keys and values
DEFAULT_TYPE = "application/octet-stream"


def check_name(name: str) -> str:
    """Return the name of an object to be written.

    Raises:
        ApiError: INVALID_ARGUMENT for a name that Google refuses.
    """
    if not name:
        raise invalid("Required parameter: name", ("name", "is required"))
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise invalid("Object name is not valid UTF-8.", ("name", "is not UTF-8")) from None
    if size > LONGEST_NAME:
        text = f"The specified object name is too long: {size} bytes; the maximum is {LONGEST_NAME} bytes in UTF-8."
        raise invalid(text, ("name", f"{size} bytes"))
    if "\n" in name or "\r" in name:
        raise invalid(f"Disallowed unicode characters present in object name {name!r}", ("name", "has a line break"))
    if name in {".", ".."} or name.startswith(".well-known/acme-challenge/"):
        raise invalid(f"Invalid object name: {name!r}", ("name", name))
    return name


def new_fields(sent: Json, bucket: Json) -> Json:
    """The fields of a new object that its writer sets.

    Raises:
        ApiError: A field has a wrong value, or localcloud does not support it.
    """
    fields = _check_fields(merge({}, {key: value for key, value in sent.items() if key in _SETTABLE}))
    defaults = {"contentType": DEFAULT_TYPE, "storageClass": bucket["storageClass"]}
    if bucket.get("defaultEventBasedHold") and "eventBasedHold" not in fields:
        defaults["eventBasedHold"] = True
    return defaults | {key: value for key, value in fields.items() if value not in ("", {})}


def changed_fields(row: Json, sent: Json, *, replaces: bool) -> Json:
    """An object after a PATCH, or with `replaces` after a PUT, which clears what it leaves out.

    Raises:
        ApiError: A field has a wrong value, cannot be changed so, or localcloud does not support it.
    """
    if (sent.get("kmsKeyName") or row.get("kmsKeyName")) != row.get("kmsKeyName"):
        text = "Cloud KMS key name cannot be changed."
        raise ApiError("INVALID_ARGUMENT", text, reason="cloudKmsCannotChangeKeyName")
    old = {key: value for key, value in row.items() if key in _SETTABLE}
    kept = {key: old[key] for key in ("storageClass", "contentType") if key in old} if replaces else old
    fields = _check_fields(merge(kept, {key: value for key, value in sent.items() if key in _SETTABLE}))
    if fields.get("storageClass", old["storageClass"]) != old["storageClass"]:
        text = "The storage class of an object cannot be changed by an update: rewrite the object."
        raise invalid(text, ("storageClass", fields["storageClass"]))
    if "customTime" in old and fields.get("customTime", "") < old["customTime"]:
        raise invalid("Custom time cannot be removed or set to an earlier time.", ("customTime", "is set already"))
    rest = {key: value for key, value in row.items() if key not in _SETTABLE}
    return rest | {"storageClass": old["storageClass"]} | {k: v for k, v in fields.items() if v not in ("", {})}


def _check_fields(fields: Json) -> Json:
    name = fields.get("storageClass")
    if name and name not in CLASSES:
        raise invalid(f"Invalid storage class {name!r}: use one of {', '.join(CLASSES)}.", ("storageClass", name))
    size = sum(len(f"{key}{value}".encode(errors="replace")) for key, value in (fields.get("metadata") or {}).items())
    if size > _LARGEST_METADATA:
        text = f"The custom metadata has {size} bytes; the maximum is {_LARGEST_METADATA} bytes."
        raise invalid(text, ("metadata", f"{size} bytes"))
    return fields


def object_json(call: Call, row: Json) -> Json:
    """JSON of an object, with links at the current address."""
    path = f"b/{row['bucket']}/o/{quote(row['name'], safe='')}"
    bucket = call.cloud.store.get("bucket", row["bucket"]) or {}
    readable = reveal(row, call.request.headers)
    shown = {key: value for key, value in readable.items() if not key.startswith("_")}
    if until := expiration(bucket, row):
        shown["retentionExpirationTime"] = until
    return shown | {
        "id": f"{row['bucket']}/{row['name']}/{row['generation']}",
        "selfLink": f"{call.base}/storage/v1/{path}",
        "mediaLink": f"{call.base}/download/storage/v1/{path}?generation={row['generation']}&alt=media",
    }


def no_such_object(bucket: str, name: str) -> ApiError:
    """404 of an object."""
    return ApiError("NOT_FOUND", f"No such object: {bucket}/{name}")
