"""Preconditions of Cloud Storage: generations and metagenerations in the query, etags in headers."""

from collections.abc import Mapping

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json


def stale() -> ApiError:
    """412: the caller's condition does not hold."""
    return ApiError("FAILED_PRECONDITION", "At least one of the pre-conditions you specified did not hold.", status=412)


def unchanged_error() -> ApiError:
    """304: the caller has what it would read."""
    return ApiError("FAILED_PRECONDITION", "Not modified.", status=304)


def check_preconditions(conditions: Mapping[str, str], current: Json | None, *, reads: bool = False) -> None:
    """Check the conditions against a bucket or an object.

    Args:
        conditions: Query arguments, or those kept from an earlier call.
        current: The current row, None for a missing one, whose generation is 0.
        reads: Whether the call only reads: "not match" then gives a 304.

    Raises:
        ApiError: 412, or 304.
    """
    for kind in ("generation", "metageneration"):
        name, value = f"if{kind.capitalize()}", (current or {}).get(kind, "0")
        if conditions.get(f"{name}Match") not in {None, "", value}:
            raise stale()
        if conditions.get(f"{name}NotMatch") == value:
            raise unchanged_error() if reads else stale()


def of_sources(conditions: Mapping[str, str]) -> dict[str, str]:
    """The conditions of a copy that are about its source, under the names of those about an object."""
    return {name.replace("ifSource", "if", 1): value for name, value in conditions.items() if "ifSource" in name}


def check_etags(headers: Mapping[str, str], etag: str, *, reads: bool) -> None:
    """Check `If-Match` and `If-None-Match` against the etag of a bucket or an object; "" where it does not exist.

    Raises:
        ApiError: 412, or 304.
    """
    if (tags := headers.get("if-match")) is not None and not _names(tags, etag):
        raise stale()
    if (tags := headers.get("if-none-match")) is not None and _names(tags, etag):
        raise unchanged_error() if reads else stale()


def _names(header: str, etag: str) -> bool:
    tags = {tag.strip().removeprefix("W/").strip('"') for tag in header.split(",")}
    return bool(etag) and ("*" in tags or etag in tags)
