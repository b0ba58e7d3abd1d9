"""Metadata servers of containers: their location, and the tokens of the account that they run as."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bezel_base.loopback.listeners import listen_on_loopback
from bezel_localcloud.access.account_metadata import ACCOUNTS, HEADERS, ROOT, answer_of_account, stranger, text
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.http.serving import HttpServer
from bezel_localcloud.routing.context import Context


class ContainerMetadata(HttpServer):
    """One server for all containers of an account in a region, at a port of 127.0.0.1 of its own."""

    def __init__(self, cloud: Context, region: str, service_account: str) -> None:
        self._cloud = cloud
        self._account = service_account
        self._fixed = {
            "project/project-id": PROJECT,
            "project/numeric-project-id": PROJECT_NUMBER,
            "instance/region": f"projects/{PROJECT_NUMBER}/regions/{region}",
        }
        routes = [Route("/", self._root), Route(f"{ROOT}/{{path:path}}", self._read)]
        super().__init__(Starlette(routes=routes), listen_on_loopback(), lambda _: 0)

    def environment(self) -> dict[str, str]:
        """Variables by which Google's libraries find it, in place of the fixed address that Google's has."""
        return {"GCE_METADATA_HOST": self.address, "GCE_METADATA_IP": self.address}

    async def _root(self, _: Request) -> Response:
        """Response by which a library detects the server."""
        return Response("computeMetadata/\n", headers=HEADERS)

    async def _read(self, request: Request) -> Response:
        if refusal := stranger(request):
            return refusal
        path = str(request.path_params["path"])
        if path.startswith(ACCOUNTS):
            account = path.removeprefix(ACCOUNTS)
            return answer_of_account(account, request, self._account, self._cloud.store, self._cloud.tokens)
        return text(self._fixed.get(path))


class MetadataServers:
    """The metadata servers of services, each made with the first instance that needs it."""

    def __init__(self, cloud: Context) -> None:
        self._cloud = cloud
        self._servers: dict[tuple[str, str], ContainerMetadata] = {}

    async def environment(self, region: str, service_account: str) -> dict[str, str]:
        """Variables by which the containers of an account in a region find theirs."""
        key = region, service_account
        if key not in self._servers:
            self._servers[key] = server = ContainerMetadata(self._cloud, *key)
            await server.start()
        return self._servers[key].environment()

    async def close(self) -> None:
        """End all of them."""
        for server in self._servers.values():
            await server.close()
