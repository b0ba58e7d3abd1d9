"""Errors in Compute Engine's words. Pure."""

from bezel_localcloud.core.errors import ApiError


def not_found(name: str) -> ApiError:
    """404 for a resource that does not exist."""
    return ApiError("NOT_FOUND", f"The resource '{name}' was not found")


def already_exists(name: str) -> ApiError:
    """409 for a name that is taken."""
    return ApiError("ALREADY_EXISTS", f"The resource '{name}' already exists", reason="alreadyExists")


def in_use(kind: str, name: str, user: str) -> ApiError:
    """400 for a resource that another one needs."""
    text = f"The {kind} resource '{name}' is already being used by '{user}'"
    return ApiError("FAILED_PRECONDITION", text, reason="resourceInUseByAnotherResource")


def wrong(field: str, value: object, why: str) -> ApiError:
    """400 for an invalid value."""
    text = f"Invalid value for field '{field}': '{value}'. {why}"
    return ApiError("INVALID_ARGUMENT", text)


def missing(field: str) -> ApiError:
    """400 for a missing field."""
    return ApiError("INVALID_ARGUMENT", f"Required field '{field}' not specified", reason="required")
