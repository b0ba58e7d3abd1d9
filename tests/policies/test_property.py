"""No combination of plain inputs above a ceiling passes, and what passes costs no more than the ceiling."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_catalog import Price, accelerators, price, prices
from tests.support.policies.harness import INSTANCE, SERVICE, UNKNOWN, instance, service, violations

REGIONS = sorted({row.region for row in prices().values()} | {"moon-east1"})
COUNTS = st.one_of(st.none(), st.integers(0, 50).map(float), st.just(UNKNOWN), st.just("some"))


def independently_priced(gpu: str, region: str, cpu: int, memory: int, *, redundant: bool) -> Decimal | None:
    """USD per hour of one instance, straight from the price list."""
    item = f"gpu {gpu} {'zonal' if redundant else 'no zonal'} redundancy"
    parts = [(1, item), (cpu, "vcpu"), (memory, "memory")]
    rows = [(count, price("cloud-run", name, region, "instance-based")) for count, name in parts]
    priced_rows = [count * row.usd_per_unit * 3600 for count, row in rows if isinstance(row, Price)]
    return sum(priced_rows, Decimal(0)) if len(priced_rows) == len(rows) else None


@pytest.mark.slow
@settings(max_examples=60)
@given(
    gpu=st.sampled_from([*accelerators(), "nvidia-h100"]),
    region=st.sampled_from(REGIONS),
    cpu=st.integers(1, 44),
    memory=st.integers(1, 176),
    revision=COUNTS,
    of_service=COUNTS,
    redundancy=st.sampled_from([None, True, False, UNKNOWN]),
    environment=st.sampled_from(["dev", "prod", "staging", None, UNKNOWN]),
    limit=st.decimals("0.5", "200", places=4),
)
def test_nothing_above_a_ceiling_passes(
    gpu, region, cpu, memory, revision, of_service, redundancy, environment, limit
) -> None:
    inputs = service(
        {
            "template.nodeSelector.accelerator": gpu,
            "location": region,
            "template.containers.0.resources.limits.cpu": str(cpu),
            "template.containers.0.resources.limits.memory": f"{memory}Gi",
            "template.scaling.maxInstanceCount": revision,
            "scaling": {} if of_service is None else {"maxInstanceCount": of_service},
            "template.gpuZonalRedundancyDisabled": redundancy,
            "labels.environment": environment,
        }
    )
    ceiling = {"limits": {"dev": float(limit), "prod": 1e9}}
    hourly = not violations("hourly-ceiling", SERVICE, inputs, ceiling)
    monthly = not violations("monthly-ceiling", SERVICE, inputs, {"limits": {"dev": float(limit) * 730, "prod": 1e9}})
    are_numbers = all(not isinstance(count, str) for count in (revision, of_service)) and redundancy != UNKNOWN
    most = max((count or 0 for count in (revision, of_service) if not isinstance(count, str)), default=0)
    one = independently_priced(gpu, region, cpu, memory, redundant=redundancy is not True)
    judged = are_numbers and most > 0 and one is not None and environment in ("dev", "prod")
    within = judged and (environment == "prod" or (one or 0) * Decimal(most) <= limit)
    assert hourly == within
    assert monthly <= within or abs((one or 0) * Decimal(most) - limit) < Decimal("0.0001")


@pytest.mark.slow
@settings(max_examples=60)
@given(
    chips=st.sampled_from([1, 4, 8, 16]),
    region=st.sampled_from(REGIONS),
    model=st.sampled_from([None, "STANDARD", "FLEX_START", "SPOT", "RESERVATION_BOUND", UNKNOWN]),
    seconds=st.one_of(st.none(), st.integers(0, 800_000).map(float), st.just(UNKNOWN)),
    limit=st.decimals("0.5", "60", places=4),
    hours=st.integers(1, 200),
)
def test_no_tpu_above_a_ceiling_or_without_an_end_passes(chips, region, model, seconds, limit, hours) -> None:
    inputs = instance(
        {
            "machineType": f"ct6e-standard-{chips}t",
            "zone": f"{region}-b",
            "scheduling.provisioningModel": model,
            "scheduling.maxRunDuration.seconds": seconds,
        }
    )
    bought = {None: "on-demand", "STANDARD": "on-demand", "FLEX_START": "flex-start", "SPOT": "spot"}.get(model, "")
    row = price("tpu", "v6e chip", region, bought)
    hourly = row.usd_per_unit * chips if isinstance(row, Price) and chips != 16 else None
    ends = None if seconds in (None, 0, UNKNOWN) else Decimal(str(seconds)) / 3600
    lease = None if hourly is None else hourly * min(Decimal(730), ends or Decimal(730))
    readable = seconds != UNKNOWN and model != UNKNOWN

    def passes(policy: str, most: float) -> bool:
        return not violations(policy, INSTANCE, inputs, {"limits": {"dev": most}})

    assert passes("hourly-ceiling", float(limit)) == (readable and hourly is not None and hourly <= limit)
    assert passes("monthly-ceiling", float(limit)) == (readable and lease is not None and lease <= limit)
    assert passes("run-duration", hours) == (readable and ends is not None and ends <= hours)
