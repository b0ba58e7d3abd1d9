"""Revisions of a service whose logs are read: those with traffic, and the newest one, which may have failed. Pure."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from bezel.operations.status.verdict import revisions_of, short_name


class ReadRevision(BaseModel):
    """A revision, and its part in the service."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    percent: int = Field(description="share of the traffic, 0 to 100")
    is_newest: bool = Field(description="whether it was created last, ready or not")
    is_ready: bool = Field(True, description="false for the newest one while an older one is the newest that was ready")
    region: str | None = Field(None, description="its region, where several are read")

    @property
    def part(self) -> str:
        """Its part in words."""
        region = [self.region] if self.region else []
        newest = ["the newest one" + ("" if self.is_ready else ", which did not become ready")] * self.is_newest
        return ", ".join([*region, *newest, f"{self.percent} % of the traffic" if self.percent else "no traffic"])


def read_revisions(live: Mapping[str, Any], region: str | None = None) -> tuple[ReadRevision, ...]:
    """The revisions with traffic, the largest share first, then the newest one where it has none.

    Args:
        live: The service as Cloud Run describes it; {} where it is gone.
        region: Its region, where several are read.
    """
    newest, ready = (short_name(live.get(key)) for key in ("latestCreatedRevision", "latestReadyRevision"))
    shares: dict[str, int] = {}
    for each in revisions_of(live):
        shares[each.name] = shares.get(each.name, 0) + each.percent
    shares = dict(sorted(shares.items(), key=lambda item: -item[1]))
    if newest:
        shares.setdefault(newest, 0)
    return tuple(
        ReadRevision(
            name=name,
            percent=percent,
            is_newest=name == newest,
            is_ready=name != newest or name == ready,
            region=region,
        )
        for name, percent in shares.items()
    )
