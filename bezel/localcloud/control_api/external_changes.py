"""Changes of another user to the deployed services, made through the public API."""

import httpx

from bezel.localcloud.core.paths import DEPLOYER
from bezel.localcloud.routing.router import Call

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


async def change_services(call: Call, max_instances: int) -> list[str]:
    """Set another maximum number of instances on every service and return the services' names.

    Raises:
        httpx.HTTPStatusError: The API refused it.
    """
    changed = []
    async with _client(call) as client:
        for name, _ in call.cloud.store.rows("service"):
            service = (await client.get(f"/run/v2/{name}")).raise_for_status().json()
            service["template"]["scaling"] = service["template"].get("scaling", {}) | {
                "maxInstanceCount": max_instances
            }
            (await client.patch(f"/run/v2/{name}", json=service)).raise_for_status()
            changed.append(name)
    return changed


async def delete_services(call: Call) -> list[str]:
    """Delete every service and return their names.

    Raises:
        httpx.HTTPStatusError: The API refused it.
    """
    names = [name for name, _ in call.cloud.store.rows("service")]
    async with _client(call) as client:
        for name in names:
            (await client.delete(f"/run/v2/{name}")).raise_for_status()
    return names


def _client(call: Call) -> httpx.AsyncClient:
    # Calls the application directly, past the layers that inject faults and log the wire.
    transport = httpx.ASGITransport(call.request.app)
    token, _ = call.cloud.tokens.access_token(DEPLOYER, _SCOPE)
    return httpx.AsyncClient(
        transport=transport, base_url="http://localcloud", headers={"Authorization": f"Bearer {token}"}
    )
