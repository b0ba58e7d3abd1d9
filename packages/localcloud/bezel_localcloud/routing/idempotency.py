"""Idempotency by `requestId`: a repeated request gets the operation that the first one began."""

import uuid
from collections.abc import Callable

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.routing.router import Call


def once(call: Call, begin: Callable[[], str]) -> str:
    """Return the name of the operation that `begin` starts, or of the one that the same request started before.

    The rows of `begin` and the request's id are stored together or not at all. `begin` returns "" for a request that is
    stored although its caller gets no operation.

    Raises:
        ApiError: INVALID_ARGUMENT for an id that is no UUID; DEADLINE_EXCEEDED where `begin` returns "".
    """
    store, key = call.cloud.store, _key(call)
    with store.transaction():
        operation = store.setting(key) if key else None
        if operation is None or store.operation(operation) is None:
            operation = begin()
            if key and operation:
                store.set_setting(key, operation)
    if not operation:
        raise ApiError("DEADLINE_EXCEEDED", "Deadline expired before operation could complete.")
    return operation


def _key(call: Call) -> str:
    request_id = call.query("requestId")
    if not request_id:
        return ""
    try:
        return f"request {call.request.method} {call.request.url.path} {uuid.UUID(request_id)}"
    except ValueError:
        text = f"Invalid value for field 'requestId': '{request_id}'. Must be a UUID."
        raise ApiError("INVALID_ARGUMENT", text) from None
