"""Metadata server of one machine: its attributes, its account's tokens, and the guest attributes that it writes.

A reader may wait for a change (`wait_for_change`, `last_etag`, `timeout_sec`), as with Google's; only the attributes
change here. Source: Compute Engine's page on querying metadata.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bezel_localcloud.access.account_metadata import ACCOUNTS, HEADERS, ROOT, answer_of_account, stranger, text
from bezel_localcloud.access.credentials.tokens import Tokens
from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.core.store import Store
from bezel_localcloud.machines.node_spec import NodeSpec

_ATTRIBUTES = "instance/attributes/"
_GUEST = "instance/guest-attributes/"
_LARGEST = 256 * 1024  # bytes of a guest attribute
_SHORTEST_WAIT = 2.0  # real seconds: a machine that waits again and again would keep this computer busy


class Metadata:
    """Metadata of one machine.

    Attributes:
        guest: Guest attributes that the machine wrote, by `namespace/key`.
    """

    def __init__(self, spec: NodeSpec, store: Store, tokens: Tokens, speed: float = 1.0) -> None:
        self.guest: dict[str, str] = {}
        self._attributes = dict(spec.metadata)
        self._changed = asyncio.Event()
        self._is_closed = False
        self._speed = speed
        self._spec = spec
        self._store = store
        self._tokens = tokens
        zone = spec.name.split("/")[3]
        self._fixed = {
            "project/project-id": PROJECT,
            "project/numeric-project-id": PROJECT_NUMBER,
            "instance/zone": f"projects/{PROJECT_NUMBER}/zones/{zone}",
            "instance/name": spec.id,
            "instance/network-interfaces/0/ip": spec.address,
        }

    def replace(self, attributes: Mapping[str, str]) -> None:
        """Replace the attributes, and answer the readers that wait for that."""
        self._attributes = dict(attributes)
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Answer every reader that waits: the machine ends."""
        self._is_closed = True
        self._changed.set()

    def routes(self) -> list[Route]:
        """The server's routes."""
        return [
            Route(f"{ROOT}/{{path:path}}", self._read, methods=["GET"]),
            Route(f"{ROOT}/{_GUEST}{{path:path}}", self._write, methods=["PUT"]),
        ]

    async def _read(self, request: Request) -> Response:
        if refusal := stranger(request):
            return refusal
        path = str(request.path_params["path"])
        if path.startswith(_ATTRIBUTES):
            return await self._attributes_at(path.removeprefix(_ATTRIBUTES), request)
        if path.startswith(ACCOUNTS):
            account = path.removeprefix(ACCOUNTS)
            return answer_of_account(account, request, self._spec.service_account, self._store, self._tokens)
        if path.startswith(_GUEST):
            return text(self.guest.get(path.removeprefix(_GUEST))) if self._has_guest() else _disabled_response()
        return text(self._fixed.get(path))

    async def _attributes_at(self, name: str, request: Request) -> Response:
        """One attribute, or all of them for ""; at once, or once they differ from those of `last_etag`."""
        query = request.query_params
        if query.get("wait_for_change", "").lower() == "true":
            seconds = query.get("timeout_sec", "")
            if seconds and decimal(seconds) is None:
                return text("timeout_sec is a number of seconds", 400)
            await self._change(name, query.get("last_etag", ""), float(seconds) if seconds else None)
        if name:
            response = text(self._attributes.get(name))
        elif query.get("recursive", "").lower() == "true":
            response = JSONResponse(self._attributes, headers=HEADERS)
        else:
            response = text("".join(f"{each}\n" for each in sorted(self._attributes)))
        response.headers["ETag"] = self._etag(name)
        return response

    async def _change(self, name: str, etag: str, seconds: float | None) -> None:
        """Wait until the attributes differ from those that the reader knows, at most for a time of the platform."""
        etag = etag or self._etag(name)
        limit = None if seconds is None else max(seconds / self._speed, min(seconds, _SHORTEST_WAIT))
        try:
            async with asyncio.timeout(limit):
                while etag == self._etag(name) and not self._is_closed:
                    await self._changed.wait()
        except TimeoutError:
            pass

    def _etag(self, name: str) -> str:
        """What differs where an attribute, or with "" any of them, differs."""
        seen = self._attributes.get(name) if name else self._attributes
        return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:16]

    async def _write(self, request: Request) -> Response:
        if refusal := stranger(request):
            return refusal
        if not self._has_guest():
            return _disabled_response()
        namespace, _, key = str(request.path_params["path"]).partition("/")
        content = await request.body()
        if not namespace or not key or "/" in key or len(content) > _LARGEST:
            return text("a guest attribute is namespace/key, with at most 256 KB", 400)
        self.guest[f"{namespace}/{key}"] = content.decode(errors="replace")
        return text("")

    def _has_guest(self) -> bool:
        return self._attributes.get("enable-guest-attributes", "").upper() == "TRUE"


def _disabled_response() -> Response:
    return text("Guest attributes endpoint access is disabled.", 403)
