"""The metadata server of one machine: its attributes, its account's tokens, and what it writes for others to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bezel.localcloud.layout import PROJECT, PROJECT_NUMBER
from bezel.localcloud.tokens import LIFETIME

if TYPE_CHECKING:
    from starlette.requests import Request

    from bezel.localcloud.node.spec import NodeSpec
    from bezel.localcloud.store import Store
    from bezel.localcloud.tokens import Tokens

_ROOT = "/computeMetadata/v1"
_HEADERS = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_ATTRIBUTES = "instance/attributes/"
_GUEST = "instance/guest-attributes/"
_ACCOUNT = "instance/service-accounts/default/"
_LARGEST = 256 * 1024  # bytes of a guest attribute


class Metadata:
    """What the server of one machine answers.

    Attributes:
        guest: What the machine wrote, by `namespace/key`.
    """

    def __init__(self, spec: NodeSpec, store: Store, tokens: Tokens) -> None:
        self.guest: dict[str, str] = {}
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

    def routes(self) -> list[Route]:
        """The server's routes."""
        return [
            Route(f"{_ROOT}/{{path:path}}", self._read, methods=["GET"]),
            Route(f"{_ROOT}/{_GUEST}{{path:path}}", self._write, methods=["PUT"]),
        ]

    async def _read(self, request: Request) -> Response:
        if refusal := _stranger(request):
            return refusal
        path = str(request.path_params["path"])
        if path == _ATTRIBUTES:
            if request.query_params.get("recursive", "").lower() == "true":
                return JSONResponse(dict(self._spec.metadata), headers=_HEADERS)
            return _text("".join(f"{name}\n" for name in sorted(self._spec.metadata)))
        if path.startswith(_ACCOUNT):
            return self._of_account(path.removeprefix(_ACCOUNT), request)
        if path.startswith(_ATTRIBUTES):
            return _text(self._spec.metadata.get(path.removeprefix(_ATTRIBUTES)))
        if path.startswith(_GUEST):
            return _text(self.guest.get(path.removeprefix(_GUEST))) if self._has_guest() else _disabled()
        return _text(self._fixed.get(path))

    def _of_account(self, what: str, request: Request) -> Response:
        email = self._spec.service_account
        account = self._store.get("account", email)
        if account is None or account.get("disabled"):
            return _text(None)
        if what == "token":
            token, _ = self._tokens.access_token(email, _SCOPE)
            answer = {"access_token": token, "expires_in": int(LIFETIME) - 1, "token_type": "Bearer"}
            return JSONResponse(answer, headers=_HEADERS)
        if what == "identity":
            audience = request.query_params.get("audience")
            if not audience:
                return _text("non-empty audience parameter required", 400)
            return _text(self._tokens.identity_token(email, audience))
        return _text({"email": email, "scopes": f"{_SCOPE}\n"}.get(what))

    async def _write(self, request: Request) -> Response:
        if refusal := _stranger(request):
            return refusal
        if not self._has_guest():
            return _disabled()
        namespace, _, key = str(request.path_params["path"]).partition("/")
        content = await request.body()
        if not namespace or not key or "/" in key or len(content) > _LARGEST:
            return _text("a guest attribute is namespace/key, with at most 256 KB", 400)
        self.guest[f"{namespace}/{key}"] = content.decode(errors="replace")
        return _text("")

    def _has_guest(self) -> bool:
        return self._spec.metadata.get("enable-guest-attributes", "").upper() == "TRUE"


def _stranger(request: Request) -> Response | None:
    """The refusal of a request that a browser or a proxy might have sent."""
    if request.headers.get("metadata-flavor") != "Google" or "x-forwarded-for" in request.headers:
        return _text("Missing Metadata-Flavor:Google header.", 403)
    return None


def _disabled() -> Response:
    return _text("Guest attributes endpoint access is disabled.", 403)


def _text(content: str | None, status: int = 200) -> Response:
    return PlainTextResponse(content or "", 404 if content is None else status, headers=_HEADERS)
