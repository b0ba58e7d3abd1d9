"""Lookup of a project's quotas and their use before anything is declared.

Reads only, within seconds, in previews too. Leaves the conclusions to the planner.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, TypeVar

from bezel.planner.assemble.quota import Unread
from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel.rest.cloud_quotas import Counted, Limit, counted_of, quota_of
from bezel.rest.run_services import services_of

_SECONDS = 10.0
_T = TypeVar("_T")


@dataclass(frozen=True)
class QuotaState:
    """Limits and use of some quotas.

    Attributes:
        allowed: Value of each quota, or the reason why it is unknown; in the order of the request.
        counted: Use of each by Cloud Monitoring, or the reason why it is unknown; in the same order.
        services: The Cloud Run services of the region, or the reason why they are unknown.
        read_at: Time of the answers, from which the age of each counted use is reckoned.
    """

    allowed: tuple[float | Unread, ...]
    counted: tuple[Counted | Unread, ...]
    services: list[dict[str, Any]] | Unread
    read_at: datetime


def look_up(project: str, limits: Sequence[Limit], region: str | None = None, *, use: bool = True) -> QuotaState:
    """Read quotas, their use if `use` is set, and the Cloud Run services of `region` if it is given.

    A missing permission is a result too: no deploy fails for want of a role that only reads.
    """
    with _client() as client, ThreadPoolExecutor(len(limits) + 1) as pool:
        quotas = [pool.submit(_quota, client, project, limit, use=use) for limit in limits]
        services = pool.submit(
            _value_or_reason, lambda: services_of(client, endpoint("CLOUD_RUN_V2"), project, region) if region else []
        )
        allowed, counted = zip(*(quota.result() for quota in quotas), strict=True)
        return QuotaState(allowed, counted, services.result(), datetime.now(UTC))


def leases_there(back_end: str, project: str, names: Sequence[str], zones: Sequence[str]) -> bool:
    """Whether each of some leases exists in some zone, waiting, running or over: it holds its quota already."""
    from bezel.leases.inventory import back_end_of

    with _client() as client:
        api = back_end_of(back_end, client, project)
        try:
            return all(any(api.observe(zone, name).exists for zone in zones) for name in names)
        except RestError:
            return False


def _client() -> GoogleClient:
    return GoogleClient(timeout_seconds=_SECONDS, deadline_seconds=_SECONDS)


def _value_or_reason(ask: Callable[[], _T]) -> _T | Unread:
    try:
        return ask()
    except ApiError as error:
        # Without the URL, so that several quotas share one reason.
        return Unread(f"{error.status} {error.reason}: {error.message}", is_denied=error.status == HTTPStatus.FORBIDDEN)
    except (RestError, ValueError) as error:
        return Unread(str(error))


def _quota(client: GoogleClient, project: str, limit: Limit, *, use: bool) -> tuple[float | Unread, Counted | Unread]:
    """The quota's value and its use; the use is the second request, for the metric that the first response names."""
    value = _value_or_reason(lambda: quota_of(client, project, limit))
    if value is None:
        value = Unread(f"{limit.quota_id} has no value for {limit.place}")
    if isinstance(value, Unread):
        return value, value
    if not use:
        return value.value, Unread("it was not requested")
    return value.value, _value_or_reason(lambda: _count_use(client, project, limit, value.metric))


def _count_use(client: GoogleClient, project: str, limit: Limit, metric: str) -> Counted | Unread:
    if limit.dimensions:
        return Unread(f"Cloud Monitoring does not count it by {', '.join(name for name, _ in limit.dimensions)}")
    return counted_of(client, project, limit, metric, datetime.now(UTC)) or Unread("it has no value of the last day")
