"""What a project may have of some quotas, and what uses them, before anything is declared.

Reads only, within seconds, in previews too. Leaves out what follows from it: the planner's.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from bezel.leases.fleet import back_end_of
from bezel.leases.observation import State
from bezel.quotas import Limit, quota_of
from bezel.rest import ApiError, GoogleClient, RestError, endpoint

_SECONDS = 10.0
_NEVER_USED = "has not been used in project"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Found:
    """What was found out.

    Attributes:
        allowed: What each quota allows, or in words why that is not known; in the order that they were asked for in.
        services: The Cloud Run services of the region, or in words why they are not known.
    """

    allowed: tuple[float | str, ...]
    services: list[dict[str, Any]] | str


def look_up(project: str, limits: Sequence[Limit], region: str | None = None) -> Found:
    """Ask for quotas, and where a region is given for its Cloud Run services; all at a time.

    No permission to ask is an answer too: nobody's deploy fails for want of a role that only reads.
    """
    with _client() as client, ThreadPoolExecutor(len(limits) + 1) as pool:
        allowed = [pool.submit(_told, lambda limit=limit: _allowed(client, project, limit)) for limit in limits]
        services = pool.submit(_told, lambda: _services(client, project, region) if region else [])
        return Found(tuple(each.result() for each in allowed), services.result())


def leases_there(back_end: str, project: str, names: Sequence[str], zones: Sequence[str]) -> bool:
    """Whether each of some leases is there in some zone, waiting, running or over: it holds its quota already."""
    with _client() as client:
        asked = back_end_of(back_end, client, project)
        try:
            return all(
                any(asked.look(zone, name).state not in {State.ABSENT, State.REFUSED} for zone in zones)
                for name in names
            )
        except RestError:
            return False


def _client() -> GoogleClient:
    return GoogleClient(timeout_seconds=_SECONDS, deadline_seconds=_SECONDS)


def _told(ask: Callable[[], _T]) -> _T | str:
    try:
        return ask()
    except ApiError as error:
        # Without the address: several quotas then have one reason.
        return f"{error.status} {error.reason}: {error.message}"
    except (RestError, ValueError) as error:
        return str(error)


def _allowed(client: GoogleClient, project: str, limit: Limit) -> float | str:
    found = quota_of(client, project, limit)
    return f"{limit.quota_id} tells no value for {limit.place}" if found is None else found


def _services(client: GoogleClient, project: str, region: str) -> list[dict[str, Any]]:
    url = f"{endpoint('CLOUD_RUN_V2')}projects/{project}/locations/{region}/services"
    try:
        return list(client.pages(url, "services"))
    except ApiError as error:
        # Where Cloud Run was never enabled there is no service either.
        if _NEVER_USED in error.message:
            return []
        raise
