"""Shape of one figure and of a distribution: finite numbers only, and no null without a reason."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from bezel.bench.result.model_config import STRICT, Count


class _Record(BaseModel):
    model_config = STRICT


class Metric(_Record):
    """One figure.

    Attributes:
        value: null where it cannot be measured; then ``why`` says what is missing.
        unit: Of value, low and high.
        low: With ``high`` the confidence interval, where there is one.
        n: How many requests (or repeats, where ``how`` says so) it rests on.
        confidence: Of the interval.
        how: The interval's method.
    """

    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None
    n: Count = 0
    confidence: float | None = Field(default=None, gt=0, lt=1)
    how: str = ""
    why: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.value is None) == (not self.why):
            raise ValueError("a figure is null and says why, or has a value and no reason for lacking one")
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two ends")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError("an interval's low end is not above its high end")
        return self


class Histogram(_Record):
    """How often a value fell in [edges[i], edges[i + 1]), the last bin with both edges."""

    edges: list[float]
    counts: list[Count]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.edges) != len(self.counts) + 1 or sorted(set(self.edges)) != self.edges:
            raise ValueError("a histogram has one more edge than counts, and its edges rise")
        return self


class Distribution(_Record):
    """All values of one kind. A percentile that less than one value lies above is null: p99 needs 100 values."""

    unit: str
    n: Annotated[int, Field(ge=1)]
    mean: float
    min: float
    max: float
    p50: float
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    histogram: Histogram

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if sum(self.histogram.counts) != self.n:
            raise ValueError("a histogram's counts make up n")
        return self
