"""The same request sent twice: by its `requestId` it is known again, and answered with the operation it began."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from bezel.localcloud.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel.localcloud.api import Call


def once(call: Call, begin: Callable[[], str]) -> str:
    """Name of the operation that `begin` starts, or of the one that the same request has started before.

    Raises:
        ApiError: INVALID_ARGUMENT for an id that is no UUID.
    """
    store, given = call.cloud.store, call.query("requestId")
    if not given:
        return begin()
    try:
        key = f"request {call.request.method} {call.request.url.path} {uuid.UUID(given)}"
    except ValueError:
        text = f"Invalid value for field 'requestId': '{given}'. Must be a UUID."
        raise ApiError("INVALID_ARGUMENT", text) from None
    earlier = store.setting(key)
    if earlier is None or store.operation(earlier) is None:
        earlier = begin()
        store.set_setting(key, earlier)
    return earlier
