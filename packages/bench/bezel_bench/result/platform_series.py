"""Series of a server's platform over a load, as its own monitoring has them: use of the GPU, and instances.

They are no figures of the benchmark: another party samples them, seldom, and they are kept as they were read.
"""

from typing import Literal, Self

from pydantic import BaseModel, model_validator

from bezel_bench.result.records import STRICT, Amount

Subject = Literal["gpu", "gpu_memory", "instances"]


class PlatformSeries(BaseModel):
    """One metric of the platform over a load.

    Attributes:
        of: `gpu` is the share of time in which the GPU worked, `gpu_memory` the used share of its memory, both 0 to 1
            and the mean of the instances' GPUs; `instances` is the number of instances.
        metric: Name of the metric at its source.
        source: Who sampled it, e.g. "Cloud Monitoring".
        at_seconds: Instants of the samples, from the load's start.
        values: One value for each of them.
        why: Why there is none; "" where there are some.
    """

    model_config = STRICT
    of: Subject
    metric: str
    source: str
    at_seconds: list[Amount] = []
    values: list[Amount] = []
    why: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.values) != len(self.at_seconds):
            raise ValueError("platform_series: another number of values than of at_seconds")
        if bool(self.values) == bool(self.why):
            raise ValueError("platform_series: a series has values, or the reason why it has none")
        return self
