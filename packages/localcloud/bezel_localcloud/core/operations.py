"""Long-running operations: begun, polled by name, ended with a response or a google.rpc.Status.

Ended operations can be read for a day, the last thousand at most; older ones are forgotten when another one begins. An
open operation is never forgotten.
"""

import asyncio
import uuid

from bezel_localcloud.core.clock import PlatformClock
from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.store import Store

EMPTY = {"@type": "type.googleapis.com/google.protobuf.Empty"}
"""Response of an operation without a result."""
_KEPT_SECONDS = 86_400.0
_KEPT = 1000


class Operations:
    """Operations in the store; one that ends at a set time needs no task, so a restart does not lose it."""

    def __init__(self, store: Store, pace: PlatformClock) -> None:
        self._store = store
        self._pace = pace

    def begin(self, parent: str, metadata: Json) -> str:
        """Open an operation under `parent` ("" or "projects/...") until `finish` ends it. Return its name."""
        self._store.prune_operations(before=self._pace.now() - _KEPT_SECONDS, keep=_KEPT)
        name = f"{parent}/operations/{uuid.uuid4()}".lstrip("/")
        self._store.put_operation(name, {"name": name, "metadata": metadata}, None)
        return name

    def finish(self, name: str, *, response: Json | None = None, error: ApiError | None = None) -> None:
        """End an open operation; one that has ended or is unknown is left unchanged."""
        stored = self._store.operation(name)
        if stored is None or stored[1] is not None:
            return
        outcome = {"error": error.rpc_status()} if error else {"response": response or {}}
        self._store.put_operation(name, stored[0] | outcome, self._pace.now())

    def begin_timed(self, parent: str, metadata: Json, response: Json, simulated_seconds: float) -> Json:
        """Begin an operation that succeeds after some seconds of the platform's time. Return its current state."""
        name = self.begin(parent, metadata)
        body = {"name": name, "metadata": metadata, "response": response}
        self._store.put_operation(name, body, self._pace.now() + self._pace.seconds(simulated_seconds))
        return self.get(name)

    def get(self, name: str) -> Json:
        """Return the current state of an operation.

        Raises:
            ApiError: NOT_FOUND.
        """
        stored = self._store.operation(name)
        if stored is None:
            raise ApiError("NOT_FOUND", f"Requested entity was not found: operation {name}")
        body, ends = stored
        if ends is not None and self._pace.now() >= ends:
            return {"done": True} | body
        return {"name": body["name"], "metadata": body["metadata"]}

    async def wait(self, name: str, timeout: float) -> Json:  # noqa: ASYNC109 - the API's own argument
        """Return the operation when it is done, or its state after `timeout` real seconds."""
        deadline = self._pace.now() + timeout
        # Nothing signals the end of an operation that ends at a set time, so this polls.
        while not (operation := self.get(name)).get("done") and self._pace.now() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        return operation
