"""Requests for other quota values: the QuotaPreferences of a project, read, created and changed.

Owns the requests and the parsing of their responses, and the state of a request. Leaves out the values in force
(`bezel.rest.cloud_quotas`) and when a request is sent.

Source: google/api/cloudquotas/v1 (googleapis, 2026): a quota has one preference for each set of dimensions;
`reconciling` until Google has decided, `grantedValue` is the value that is granted, -1 is no limit.
"""

from dataclasses import dataclass
from typing import Any, Literal

from bezel.rest import GoogleClient, endpoint
from bezel.rest.cloud_quotas import Limit

RequestState = Literal["pending", "granted", "denied", "unknown"]


@dataclass(frozen=True, slots=True)
class QuotaPreference:
    """A request for another value.

    Attributes:
        name: Its resource name.
        service, quota_id: The quota.
        dimensions: The dimensions that it applies to, its place among them.
        preferred: The requested value in the quota's unit; -1 is no limit.
        granted: The granted value; None where the API states none.
        state: `pending` until it is decided; then `granted` if the granted value is the requested one.
        detail: What Google says about the state.
        etag: The version of the request, for a change.
        updated: RFC 3339.
    """

    name: str
    service: str
    quota_id: str
    dimensions: tuple[tuple[str, str], ...]
    preferred: int
    granted: int | None
    state: RequestState
    detail: str
    etag: str
    updated: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> "QuotaPreference":
        """Reads the API's description.

        Raises:
            ValueError: It holds something else than a preference.
        """
        try:
            config = row.get("quotaConfig") or {}
            granted = None if config.get("grantedValue") is None else int(config["grantedValue"])
            preferred = int(config.get("preferredValue") or 0)
            return cls(
                name=str(row["name"]),
                service=str(row["service"]),
                quota_id=str(row["quotaId"]),
                dimensions=tuple(
                    sorted((str(key), str(value)) for key, value in (row.get("dimensions") or {}).items())
                ),
                preferred=preferred,
                granted=granted,
                state=_state(preferred, granted, is_reconciling=bool(row.get("reconciling"))),
                detail=str(config.get("stateDetail") or ""),
                etag=str(row.get("etag") or ""),
                updated=str(row.get("updateTime") or ""),
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError("an answer of another form") from error


def _state(preferred: int, granted: int | None, *, is_reconciling: bool) -> RequestState:
    if is_reconciling:
        return "pending"
    if granted is None:
        return "unknown"
    return "granted" if granted == preferred else "denied"


def preferences_of(client: GoogleClient, project: str) -> list[QuotaPreference]:
    """Return all requests of a project.

    Raises:
        RestError: The request failed.
        ValueError: The response holds something else.
    """
    return [QuotaPreference.of(row) for row in client.pages(_url(project), "quotaPreferences")]


def dimensions_of(limit: Limit) -> tuple[tuple[str, str], ...]:
    """The dimensions of a quota in a place: a zone has two hyphens, a region one."""
    place = ("zone" if limit.place.count("-") > 1 else "region", limit.place)
    return tuple(sorted((place, *limit.dimensions)))


def request_value(
    client: GoogleClient,
    project: str,
    limit: Limit,
    value: int,
    *,
    existing: QuotaPreference | None,
    email: str = "",
    justification: str = "",
) -> QuotaPreference:
    """Request a value of a quota in a place.

    Args:
        client: The client that sends the request.
        project: Id of the project.
        limit: The quota in its place.
        value: The requested value, in the quota's unit.
        existing: The request of the same quota and place, if there is one: it is changed, unless it has changed since.
        email: Address for Google's questions; without it Google denies what it has a question about.
        justification: The reason, for Google.

    Raises:
        RestError: The request failed, or `existing` is not the present one.
        ValueError: The response holds something else.
    """
    body: dict[str, Any] = {"quotaConfig": {"preferredValue": str(value)}}
    body |= {"contactEmail": email} if email else {}
    body |= {"justification": justification} if justification else {}
    if existing is not None:
        mask = ["quotaConfig.preferredValue", *(name for name in ("justification", "contactEmail") if name in body)]
        url = f"{endpoint('CLOUD_QUOTAS')}{existing.name}"
        sent = body | {"etag": existing.etag}
        return QuotaPreference.of(client.request("PATCH", url, json=sent, params={"updateMask": ",".join(mask)}))
    target = {"service": limit.service, "quotaId": limit.quota_id, "dimensions": dict(dimensions_of(limit))}
    return QuotaPreference.of(client.post(_url(project), json=body | target))


def _url(project: str) -> str:
    return f"{endpoint('CLOUD_QUOTAS')}projects/{project}/locations/global/quotaPreferences"
