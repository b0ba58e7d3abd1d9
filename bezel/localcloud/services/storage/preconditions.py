"""Preconditions of Cloud Storage: the generations that a caller expects."""

from bezel.localcloud.core.errors import ApiError
from bezel.localcloud.core.json_types import Json

# Query parameters of a handler that calls `check_preconditions`, for buckets and for objects.
OF_BUCKETS = "ifMetagenerationMatch ifMetagenerationNotMatch"
OF_OBJECTS = f"ifGenerationMatch ifGenerationNotMatch {OF_BUCKETS}"


def stale() -> ApiError:
    """412: the caller's condition does not hold."""
    return ApiError("FAILED_PRECONDITION", "At least one of the pre-conditions you specified did not hold.", status=412)


def conditions_of(arguments: dict[str, str]) -> dict[str, str]:
    """The preconditions among some query arguments."""
    return {name: arguments[name] for name in OF_OBJECTS.split() if arguments.get(name)}


def check_preconditions(conditions: dict[str, str], current: Json | None, *, reads: bool = False) -> None:
    """Check the conditions against a bucket or an object.

    Args:
        conditions: From `conditions_of`.
        current: The current row, None for a missing one, whose generation is 0.
        reads: Whether the call only reads: "not match" then gives a 304.

    Raises:
        ApiError: 412, or 304.
    """
    for kind in ("generation", "metageneration"):
        name, found = f"if{kind.capitalize()}", (current or {}).get(kind, "0")
        if conditions.get(f"{name}Match", found) != found:
            raise stale()
        if conditions.get(f"{name}NotMatch") == found:
            raise ApiError("FAILED_PRECONDITION", "Not modified.", status=304) if reads else stale()
