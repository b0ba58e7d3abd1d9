"""Health probe of a deployed service, which `make up` sends before it prints "in service".

The outputs of a stack describe it as of its smoke checks. Since then a lease may have ended or an instance died, and a
run without changes repeats no check. Leaves the proof of a deployment to the smoke checks.
"""

import time
from collections.abc import Callable

import httpx

from bezel.diagnosis.client import error_text
from bezel.rest.transport import new_client

RESPONSE_SECONDS = 180.0
"""Time limit for one response: an instance may have to start for it, on this machine a real vLLM too."""
_RETRY_SECONDS = 15.0
_PAUSE_SECONDS = 1.0


def why_not_serving(
    url: str,
    token: Callable[[], str],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Request /health; return "" on a 200, else the last failure after 15 s of retries.

    Args:
        url: The service's address.
        token: Makes the identity token of the caller.
        clock: Monotonic clock in seconds.
        sleep: Waits that many seconds.

    Raises:
        RestError: No identity token can be obtained.
    """
    if not url:
        return "it has no address"
    until = clock() + _RETRY_SECONDS
    with new_client(RESPONSE_SECONDS) as client:
        while (failure := _probe(client, url, token())) and clock() < until:
            sleep(_PAUSE_SECONDS)
    return failure


def _probe(client: httpx.Client, url: str, token: str) -> str:
    try:
        response = client.get(f"{url.rstrip('/')}/health", headers={"Authorization": f"Bearer {token}"})
    except httpx.HTTPError as error:
        return f"no response ({type(error).__name__})"
    if response.status_code == 200:
        return ""
    return error_text(response)
