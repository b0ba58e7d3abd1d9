"""Schema of a result's manifest: model, engine, hardware, place and price of what was measured.

Owns its shape. Leaves collecting the values to bezel.bench.server.manifest.
"""

from __future__ import annotations

from pydantic import AwareDatetime, BaseModel

from bezel.bench.result.model_config import STRICT, Amount, Count


class _Record(BaseModel):
    model_config = STRICT


class ServedBy(_Record):
    """What answered."""

    image: str | None = None
    digest: str | None = None
    vllm_version: str | None = None
    arguments: list[str] | None = None
    max_model_len: Count | None = None
    max_num_seqs: Count | None = None
    kv_cache_dtype: str | None = None


class Platform(_Record):
    """What it ran on.

    Attributes:
        accelerator: A catalogue id: "nvidia-l4", "v6e-4".
        chips: Of one instance.
        revision: Of the service; ``lease`` where a machine was leased instead.
        instances: That answered behind the URL.
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
    """What all instances together cost while they run, and who said so when."""

    usd_per_hour: Amount | None = None
    as_of: str | None = None
    source: str | None = None


class Machine(_Record):
    """Where the load came from."""

    cores: Count
    cpu: str
    memory_bytes: Count | None
    kernel: str


class Client(_Record):
    """What sent the load."""

    bezel: str
    python: str
    machine: Machine
    workers: Count
    tls: bool


class Manifest(_Record):
    """What was run, with what, where, at what price. Nothing secret.

    Attributes:
        model: The served id that requests name.
        checkpoint: The catalogue's id of the model, where it is known: what the roofline is computed with.
        command: That made this document, to make it again.
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
