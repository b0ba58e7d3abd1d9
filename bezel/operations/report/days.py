"""Days of a report, from midnight to midnight UTC. Pure."""

from datetime import UTC, date, datetime

from pydantic import BaseModel, ConfigDict, Field

from bezel.operations.vllm_metrics.course import traffic_of
from bezel.operations.vllm_metrics.served import Served


class Day(BaseModel):
    """What a stack's servers did on a day; the first and the last one may be parts of it. Null is unknown."""

    model_config = ConfigDict(frozen=True)

    day: date = Field(description="UTC")
    requests: int | None = Field(description="calls of the model that ended")
    failed: int | None = Field(description="those of them that the server failed")
    prompt_tokens: int | None
    generated_tokens: int | None
    ttft_p50: float | None = Field(description="seconds")
    ttft_p99: float | None = Field(description="seconds")
    servers: int = Field(description="most servers that were sampled in one window")


def days_of(served: Served) -> tuple[Day, ...]:
    """The days of what the servers did, the oldest first."""
    dates = [datetime.fromtimestamp(begin, UTC).date() for begin in served.when.begins]
    firsts = [place for place, day in enumerate(dates) if place == 0 or dates[place - 1] != day]
    ends = [*firsts[1:], len(dates)]
    return tuple(_day(served, dates[first], slice(first, end)) for first, end in zip(firsts, ends, strict=True))


def _day(served: Served, day: date, windows: slice) -> Day:
    return Day(day=day, servers=max(served.servers[windows], default=0), **traffic_of(served, windows))
