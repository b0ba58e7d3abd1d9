"""The latest use of a door's keys: a door that is asked whether it is ready writes what it has counted so far.

An instance of the door has a processor only while it serves, so it writes its last seconds with the next request. One
of several instances answers; the others write theirs as ever.
"""

from bezel.rest.transport import new_client, reason_of
from bezel_door.calls.routes import PROBE_PATH

_SECONDS = 10.0  # a door without an instance starts one


def ask_for_latest_use(door_url: str) -> str:
    """Ask a door to write what it has counted; why it did not, or "". One without a recorded address is not asked."""
    import httpx

    if not door_url:
        return ""
    with new_client(_SECONDS, connections=1) as client:
        try:
            status = client.get(f"{door_url}{PROBE_PATH}").status_code
        except httpx.HTTPError as error:
            return reason_of(error)
    return "" if status == 200 else f"HTTP {status}"
