"""Metadata server of one machine: its attributes, its account's tokens, and the guest attributes that it writes."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bezel.localcloud.access.account_metadata import ACCOUNTS, HEADERS, ROOT, answer_of_account, stranger, text
from bezel.localcloud.access.tokens import Tokens
from bezel.localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel.localcloud.core.store import Store
from bezel.localcloud.machines.node_spec import NodeSpec

_ATTRIBUTES = "instance/attributes/"
_GUEST = "instance/guest-attributes/"
_LARGEST = 256 * 1024  # bytes of a guest attribute


class Metadata:
    """Metadata of one machine.

    Attributes:
        guest: Guest attributes that the machine wrote, by `namespace/key`.
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
            Route(f"{ROOT}/{{path:path}}", self._read, methods=["GET"]),
            Route(f"{ROOT}/{_GUEST}{{path:path}}", self._write, methods=["PUT"]),
        ]

    async def _read(self, request: Request) -> Response:
        if refusal := stranger(request):
            return refusal
        path = str(request.path_params["path"])
        if path == _ATTRIBUTES:
            if request.query_params.get("recursive", "").lower() == "true":
                return JSONResponse(dict(self._spec.metadata), headers=HEADERS)
            return text("".join(f"{name}\n" for name in sorted(self._spec.metadata)))
        if path.startswith(ACCOUNTS):
            account = path.removeprefix(ACCOUNTS)
            return answer_of_account(account, request, self._spec.service_account, self._store, self._tokens)
        if path.startswith(_ATTRIBUTES):
            return text(self._spec.metadata.get(path.removeprefix(_ATTRIBUTES)))
        if path.startswith(_GUEST):
            return text(self.guest.get(path.removeprefix(_GUEST))) if self._has_guest() else _disabled()
        return text(self._fixed.get(path))

    async def _write(self, request: Request) -> Response:
        if refusal := stranger(request):
            return refusal
        if not self._has_guest():
            return _disabled()
        namespace, _, key = str(request.path_params["path"]).partition("/")
        content = await request.body()
        if not namespace or not key or "/" in key or len(content) > _LARGEST:
            return text("a guest attribute is namespace/key, with at most 256 KB", 400)
        self.guest[f"{namespace}/{key}"] = content.decode(errors="replace")
        return text("")

    def _has_guest(self) -> bool:
        return self._spec.metadata.get("enable-guest-attributes", "").upper() == "TRUE"


def _disabled() -> Response:
    return text("Guest attributes endpoint access is disabled.", 403)
