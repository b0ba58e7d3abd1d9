"""Requests for other quota values as results: state, amounts in things, and what Google says. Pure."""

from collections.abc import Iterable, Mapping

from pydantic import Field

from bezel.operations.quota.known import KnownQuota
from bezel.operations.quota.places import is_in
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.planner.base.hardware import Quota
from bezel.rest.quota_preferences import QuotaPreference, RequestState

_LONGEST = 300


class QuotaRequest(Result):
    """A request for another value of a quota."""

    quota: str = Field(description="id of the quota")
    place: str = Field(description="region or zone; `all` for a request of every place")
    thing: str
    preferred: float | None = Field(description="requested amount in things; null for no limit")
    granted: float | None = Field(description="granted amount in things; null if Google states none, or no limit")
    state: RequestState = Field(description="pending until Google has decided")
    detail: str = Field(description="what Google says about the state")
    updated: str = Field(description="time of the last change, RFC 3339")

    @property
    def line(self) -> str:
        """The request in one line."""
        preferred = "no limit" if self.preferred is None else Quota("", "", self.thing).things(self.preferred)
        granted = "" if self.granted is None or self.state == "granted" else f", {self.granted:g} in force"
        detail = f" ({self.detail})" if self.detail else ""
        return f"request: {self.quota} in {self.place}: {preferred} {self.state}{granted}{detail}"


def request_of(made: QuotaPreference, known_quota: KnownQuota) -> QuotaRequest:
    """One request, in things."""

    def things(amount: int | None) -> float | None:
        return None if amount is None or amount < 0 else amount / known_quota.quota.unit

    return QuotaRequest(
        quota=made.quota_id,
        place=dict(made.dimensions).get(known_quota.kind, "all"),
        thing=known_quota.quota.thing,
        preferred=things(made.preferred),
        granted=things(made.granted),
        state=made.state,
        detail=clean_text(made.detail, _LONGEST),
        updated=made.updated,
    )


def requests_of(
    made: Iterable[QuotaPreference],
    known_quotas: Mapping[tuple[str, str], KnownQuota],
    region: str | None = None,
    zone: str | None = None,
) -> tuple[QuotaRequest, ...]:
    """The requests of some quotas in some places, newest first."""
    requests = [
        request_of(each, known_quotas[key]) for each in made if (key := (each.service, each.quota_id)) in known_quotas
    ]
    there = [each for each in requests if each.place == "all" or is_in(each.place, region, zone)]
    return tuple(sorted(there, key=lambda each: each.updated, reverse=True))
