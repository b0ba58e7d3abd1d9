"""Records of a result: its figures, and its manifest (model, engine, hardware, location and price of the server).

Owns their shape: finite numbers only, no null without a reason, no unknown field. Leaves collecting the manifest's
values to bezel_bench.server.manifest, and the whole document to bezel_bench.result.document.
"""

from typing import Annotated, Any, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]
# No unknown field, no change, no NaN or infinity.
STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)


class _Record(BaseModel):
    model_config = STRICT


class Metric(_Record):
    """One figure.

    Attributes:
        value: Null where it cannot be measured; then `why` names the missing value.
        unit: Unit of value, low and high.
        low: Lower end of the confidence interval, and `high` its upper end, where there is an interval.
        n: Number of requests (or repeats, where `how` says so) behind the figure.
        confidence: Confidence of the interval.
        how: Method of the interval.
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
            raise ValueError("a figure needs a value, or the reason why it has none")
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two ends")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError("an interval's low end is not above its high end")
        return self


class Histogram(_Record):
    """Counts of the values in [edges[i], edges[i + 1]); the last bin includes both edges."""

    edges: list[float]
    counts: list[Count]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.edges) != len(self.counts) + 1 or sorted(set(self.edges)) != self.edges:
            raise ValueError("a histogram needs one more edge than counts, in rising order")
        return self


class Distribution(_Record):
    """All values of one kind. A percentile without a value above it is null: p99 needs 100 values."""

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
            raise ValueError("the counts of a histogram must add up to n")
        return self


class ServedBy(_Record):
    """Model server that responded."""

    image: str | None = None
    digest: str | None = None
    vllm_version: str | None = None
    arguments: list[str] | None = None
    max_model_len: Count | None = None
    max_num_seqs: Count | None = None
    kv_cache_dtype: str | None = None


class Platform(_Record):
    """Hardware and location of the server.

    Attributes:
        accelerator: Id of the catalogue: "nvidia-l4", "v6e-4".
        chips: Accelerators of one instance.
        revision: Revision of the service; for a leased machine the `lease` is set instead.
        instances: Instances behind the URL.
        concurrency: Requests that the platform sends to one instance at once.
    """

    accelerator: str | None = None
    chips: Count | None = None
    revision: str | None = None
    lease: str | None = None
    instances: Count | None = None
    concurrency: Count | None = None
    region: str | None = None


class PriceBasis(_Record):
    """Price of all instances together while they run, with its date and source."""

    usd_per_hour: Amount | None = None
    as_of: str | None = None
    source: str | None = None


class Machine(_Record):
    """Machine that sent the load."""

    cores: Count
    cpu: str
    memory_bytes: Count | None
    kernel: str


class Client(_Record):
    """Program and machine that sent the load."""

    bezel: str
    python: str
    machine: Machine
    workers: Count
    tls: bool


class Manifest(_Record):
    """Measured server, its hardware, location and price, and the client. Without secrets.

    Attributes:
        model: Served id in the requests.
        checkpoint: Catalogue id of the model, for the roofline; null where unknown.
        command: Command line that created this document.
        options: Its options that differ from their defaults, by name, those of a file and of the environment included;
            without headers. `--config` takes them again.
    """

    title: str
    url: str
    model: str
    checkpoint: str | None = None
    served_by: ServedBy = ServedBy()
    platform: Platform = Platform()
    price: PriceBasis = PriceBasis()
    client: Client
    started_at: AwareDatetime
    seed: int
    command: list[str] = []
    options: dict[str, Any] = {}
