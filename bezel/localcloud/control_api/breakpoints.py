"""Breakpoint routes of localcloud: stop one API call at its boundary, to rehearse a kill there.

`PUT /localcloud/hold {"method": "POST", "path": "/run/v2/*/services", "nth": 1, "when": "before" | "after"}` places a
hold, `GET ...?seconds=30` waits until a call has stopped at it, `DELETE` lets the call continue; `DELETE ...?drop=1`
drops it, as if its caller had died before it was sent.
"""

import asyncio
import contextlib

from bezel.localcloud.access.permissions import PROJECT_NAME
from bezel.localcloud.core.errors import invalid
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.http.breakpoints import Hold
from bezel.localcloud.routing.router import Api, Call

api = Api("", "localcloud")
_PATH = "/localcloud/hold"


@api.route("PUT", _PATH, needs="resourcemanager.projects.get", on=PROJECT_NAME)
async def place(call: Call) -> Json:
    """Place a hold in place of the previous one."""
    body = await call.json()
    method, path, nth, when = body.get("method"), body.get("path"), body.get("nth", 1), body.get("when")
    if not isinstance(method, str) or not isinstance(path, str) or not isinstance(nth, int) or nth < 1:
        raise invalid("A hold needs `method`, `path` and an `nth` of 1 or more.")
    if when not in {"before", "after"}:
        raise invalid(f"`when` is {when!r}: say before or after.")
    call.cloud.holds.place(Hold(method, path, nth, when))
    return {}


@api.route("GET", _PATH, needs="resourcemanager.projects.get", on=PROJECT_NAME)
async def reached(call: Call) -> Json:
    """Whether a call has stopped at the hold, after waiting for it for `seconds` at most."""
    hold = call.cloud.holds.hold
    if hold is None:
        raise invalid("There is no hold: place one first.")
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(hold.reached.wait(), call.number("seconds"))
    return {"reached": hold.reached.is_set()}


@api.route("DELETE", _PATH, needs="resourcemanager.projects.get", on=PROJECT_NAME)
def release(call: Call) -> Json:
    """Let the call continue, or drop it."""
    call.cloud.holds.place(None, drop=bool(call.number("drop")))
    return {}
