"""Whether a deployed service answers at this moment: what `make up` asks before it says "in service".

The outputs of a stack tell how it was when it was checked. Since then a lease may have ended or an instance died, and a
run without a change checks nothing again. Leaves what a deploy proves to the smoke checks.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

ANSWER_SECONDS = 180.0
"""For one answer: an instance may have to start for it, on this machine a real vLLM too."""
_PATIENCE_SECONDS = 15.0
_PAUSE_SECONDS = 1.0


def why_not_serving(
    url: str,
    token: Callable[[], str],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Ask for /health; "" where it is answered with 200, else what came instead after 15 s of trying again.

    Args:
        url: The service's address.
        token: Makes the identity token of the caller.
        clock: Seconds that only go forward.
        sleep: Waits that many seconds.

    Raises:
        RestError: No identity token can be had.
    """
    from bezel.rest.transport import new_client  # late: a run that fails asks nothing

    if not url:
        return "it has no address"
    until = clock() + _PATIENCE_SECONDS
    with new_client(ANSWER_SECONDS) as client:
        while (found := _asked(client, url, token())) and clock() < until:
            sleep(_PAUSE_SECONDS)
    return found


def _asked(client: httpx.Client, url: str, token: str) -> str:
    import httpx

    try:
        answer = client.get(f"{url.rstrip('/')}/health", headers={"Authorization": f"Bearer {token}"})
    except httpx.HTTPError as error:
        return f"no answer ({type(error).__name__})"
    if answer.status_code == 200:
        return ""
    try:
        error_part = answer.json()["error"]
        said = f": {error_part['message']}"
    except (ValueError, LookupError, TypeError):
        said = ""
    return f"HTTP {answer.status_code}{said}"
