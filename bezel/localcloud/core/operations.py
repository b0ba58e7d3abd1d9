"""Long-running operations: begun, polled by name, ended with a response or a google.rpc.Status.

Of the operations that have ended, those of the last day can be asked for, a thousand at most; older ones are forgotten
when another one begins. One that has not ended is never forgotten.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

from bezel.localcloud.core.errors import ApiError

if TYPE_CHECKING:
    from bezel.localcloud.core.clock import PlatformClock
    from bezel.localcloud.core.json_types import Json
    from bezel.localcloud.core.store import Store


_KEPT_SECONDS = 86_400.0
_KEPT = 1000


class Operations:
    """Operations in the store; one that ends by itself needs no task, so a restart does not lose it."""

    def __init__(self, store: Store, pace: PlatformClock) -> None:
        self._store = store
        self._pace = pace

    def begin(self, parent: str, metadata: Json) -> str:
        """Open an operation under `parent` ("" or "projects/..."); `finish` ends it. Returns its name."""
        self._store.prune_operations(before=self._pace.now() - _KEPT_SECONDS, keep=_KEPT)
        name = f"{parent}/operations/{uuid.uuid4()}".lstrip("/")
        self._store.put_operation(name, {"name": name, "metadata": metadata}, None)
        return name

    def finish(self, name: str, *, response: Json | None = None, error: ApiError | None = None) -> None:
        """End an open operation; one that has ended or is unknown is left as it is."""
        found = self._store.operation(name)
        if found is None or found[1] is not None:
            return
        outcome = {"error": error.rpc_status()} if error else {"response": response or {}}
        self._store.put_operation(name, found[0] | outcome, self._pace.now())

    def timed(self, parent: str, metadata: Json, response: Json, simulated_seconds: float) -> Json:
        """An operation that succeeds after some seconds of the platform's time. Returns it as of now."""
        name = self.begin(parent, metadata)
        body = {"name": name, "metadata": metadata, "response": response}
        self._store.put_operation(name, body, self._pace.now() + self._pace.seconds(simulated_seconds))
        return self.get(name)

    def get(self, name: str) -> Json:
        """The operation as of now.

        Raises:
            ApiError: NOT_FOUND.
        """
        found = self._store.operation(name)
        if found is None:
            raise ApiError("NOT_FOUND", f"Requested entity was not found: operation {name}")
        body, ends = found
        if ends is not None and self._pace.now() >= ends:
            return {"done": True} | body
        return {"name": body["name"], "metadata": body["metadata"]}

    async def wait(self, name: str, timeout: float) -> Json:  # noqa: ASYNC109 - the API's own argument
        """The operation when done, or as it is after `timeout` real seconds."""
        deadline = self._pace.now() + timeout
        # Operations that end by the clock have nobody to tell it.
        while not (operation := self.get(name)).get("done") and self._pace.now() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        return operation
