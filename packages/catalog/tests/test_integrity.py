"""The data files hold together, and each rule that says so notices the error that it is there for."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import pytest

from bezel_catalog.checks.integrity import check_catalogue, read_catalogue
from bezel_catalog.checks.prices import unpriced_places
from bezel_catalog.prices import format_prices, parse_prices

GOOD = read_catalogue()
L4, RTX = "nvidia-l4", "nvidia-rtx-pro-6000"
QAT, E2B, MOE = "gemma-4-12b-it-qat-w4a16", "gemma-4-e2b-it", "gemma-4-26b-a4b-it-w4a16"
DEAR = "gpu nvidia-l4 no zonal redundancy"


def with_record(table, name, **changes):
    """The catalogue with fields of one record changed."""
    records = dict(getattr(GOOD, table))
    records[name] = dataclasses.replace(records[name], **changes)
    return dataclasses.replace(GOOD, **{table: records})


def with_shape(name, **changes):
    """The catalogue with the architecture of one model changed."""
    shape = dataclasses.replace(GOOD.models[name].architecture, **changes)
    return dataclasses.replace(GOOD, models={name: dataclasses.replace(GOOD.models[name], architecture=shape)})


def with_layers(name, **changes):
    """The catalogue with groups of layers of one model changed, by their kind."""
    groups = GOOD.models[name].architecture.cache
    return with_shape(name, cache=tuple(dataclasses.replace(group, **changes.get(group.kind, {})) for group in groups))


def with_price(item, region, model, /, **changes):
    """The catalogue with one price row changed."""
    matches = [row for row in GOOD.prices if (row.item, row.region, row.model) == (item, region, model)]
    assert len(matches) == 1
    rows = tuple(dataclasses.replace(row, **changes) if row is matches[0] else row for row in GOOD.prices)
    return dataclasses.replace(GOOD, prices=rows)


def with_prices(keep):
    """The catalogue with some price rows only."""
    return dataclasses.replace(GOOD, prices=tuple(row for row in GOOD.prices if keep(row)))


def with_measured(table, **changes):
    """The catalogue with the first measurement of memory or of speed changed."""
    first, *others = getattr(GOOD, table)
    return dataclasses.replace(GOOD, **{table: (dataclasses.replace(first, **changes), *others)})


def with_rule(**changes):
    """The catalogue with its first SKU rule changed."""
    return dataclasses.replace(GOOD, rules=(dataclasses.replace(GOOD.rules[0], **changes), *GOOD.rules[1:]))


def with_options(**changes):
    """The catalogue with one recorded release changed."""
    return dataclasses.replace(GOOD, vllm={"0.32.0": dataclasses.replace(GOOD.vllm["0.32.0"], **changes)})


def test_the_committed_catalogue_has_no_integrity_error():
    assert check_catalogue(GOOD) == ()


# what is changed -> row and words of the integrity error
INCONSISTENT = {
    "no date": (lambda: with_record("models", QAT, as_of="November"), QAT, "as_of = November"),
    "no source": (lambda: with_record("accelerators", L4, source=" "), L4, 'source = ""'),
    "a month that is none": (
        lambda: with_price("vcpu", "us-east4", "instance-based", as_of="2026-13"),
        "vcpu",
        "2026-13",
    ),
    "a part for nothing": (
        lambda: with_price(DEAR, "us-east4", "instance-based", usd_per_unit=Decimal(0)),
        "us-east4",
        "usd_per_unit = 0",
    ),
    "a negative price": (
        lambda: with_price("memory", "us-east4", "request-based", usd_per_unit=Decimal("-0.0000025")),
        "memory",
        "usd_per_unit = -0.0000025",
    ),
    "no number": (
        lambda: with_price("vcpu", "us-east4", "request-based", usd_per_unit=Decimal("NaN")),
        "vcpu",
        "usd_per_unit = NaN",
    ),
    "a price by the hour in a row by the second": (
        lambda: with_price(DEAR, "us-east4", "instance-based", usd_per_unit=Decimal("0.67212")),
        "us-east4",
        "between 0.00005 and 0.01",
    ),
    "a unit of another item": (
        lambda: with_price("memory", "us-east4", "instance-based", unit="vcpu-second"),
        "memory",
        "skus.toml prices it per gib-second",
    ),
    "a unit that is unknown": (
        lambda: with_price("memory", "us-east4", "instance-based", unit="mib-second"),
        "memory",
        "no plan multiplies",
    ),
    "two rows of one name": (
        lambda: dataclasses.replace(GOOD, prices=(*GOOD.prices, GOOD.prices[0])),
        "us-central1",
        "rows = 2",
    ),
    "a misspelt region": (
        lambda: with_price("v6e chip", "us-west1", "on-demand", region="us-wset1"),
        "us-wset1",
        "no such",
    ),
    "a GPU where it is not offered": (
        lambda: with_price(DEAR, "us-east4", "instance-based", region="us-east1"),
        "us-east1",
        "does not offer nvidia-l4",
    ),
    "a GPU that is not known": (
        lambda: with_price(DEAR, "us-east4", "instance-based", item="gpu nvidia-l5 no zonal redundancy"),
        "nvidia-l5",
        "the accelerator does not exist",
    ),
    "an unknown billing model": (
        lambda: with_price("v6e chip", "us-west1", "on-demand", model="calendar"),
        "calendar",
        "no plan looks for such a row",
    ),
    "a chip that no slice has": (
        lambda: with_price("v6e chip", "us-west1", "on-demand", item="v7x chip"),
        "v7x",
        "no slice",
    ),
    "a computed price shown as read": (
        lambda: with_price(DEAR, "us-east4", "instance-based", source="L4 list price, derived for the region"),
        "us-east4",
        "begin the source with `derived`",
    ),
    "a GPU without a priced vCPU": (
        lambda: with_prices(lambda row: (row.item, row.region, row.model) != ("vcpu", "us-east4", "instance-based")),
        "us-east4",
        "vcpu = (not set)",
    ),
    "a request price left out": (
        lambda: with_prices(lambda row: (row.item, row.region) != ("requests", "us-east5")),
        "us-east5",
        "requests = (not set)",
    ),
    "one billing model only": (
        lambda: with_prices(lambda row: row.model != "spot"),
        "prices.csv",
        "tpu, spot = (not set)",
    ),
    "an accelerator without any price": (
        lambda: with_prices(lambda row: RTX not in row.item),
        RTX,
        "refused as unpriced",
    ),
    "a chip without any price": (
        lambda: with_prices(lambda row: row.model != "flex-start"),
        "v6e-4",
        "refused as unpriced",
    ),
    "priced and unpriced": (lambda: with_record("accelerators", L4, unpriced="not listed"), L4, "remove `unpriced`"),
    "memory in GiB": (lambda: with_record("accelerators", L4, memory_bytes=24), L4, "memory_bytes = 24"),
    "bandwidth in GB/s": (
        lambda: with_record("accelerators", L4, bandwidth_bytes_per_s=300),
        L4,
        "bandwidth_bytes_per_s / memory_bytes",
    ),
    "no bandwidth": (lambda: with_record("accelerators", L4, bandwidth_bytes_per_s=0), L4, "bandwidth_bytes_per_s = 0"),
    "sparse FLOP/s for dense ones": (
        lambda: with_record("accelerators", L4, bf16_flops=10**15, fp8_flops=2 * 10**15),
        L4,
        "bf16_flops / bandwidth",
    ),
    "fp8 slower than bf16": (lambda: with_record("accelerators", L4, fp8_flops=1), L4, "fp8_flops = 1"),
    "no capability": (lambda: with_record("accelerators", L4, compute_capability="sm89"), L4, "sm89"),
    "no minimum": (lambda: with_record("accelerators", L4, min_cpu=0), L4, "min_cpu = 0"),
    "a quota unit of nothing": (
        lambda: with_record("accelerators", RTX, quota_unit_per_gpu=0),
        RTX,
        "quota_unit_per_gpu = 0",
    ),
    "a quota of another API": (lambda: with_record("accelerators", L4, quota="NVIDIA_L4_GPUS"), L4, "NVIDIA_L4_GPUS"),
    "an accelerator nowhere": (
        lambda: with_record("accelerators", L4, regions=(), regions_on_invitation=()),
        L4,
        "regions = (not set)",
    ),
    "open and by invitation": (
        lambda: with_record("accelerators", L4, regions_on_invitation=("us-east4",)),
        L4,
        "regions_on_invitation = us-east4",
    ),
    "a list that is not sorted": (
        lambda: with_record(
            "accelerators", L4, regions=("us-east4", "europe-west1", "europe-west4", "asia-southeast1")
        ),
        L4,
        "sort the list",
    ),
    "a region that does not exist": (
        lambda: with_record("accelerators", L4, regions=("europe-west5", "us-east4")),
        L4,
        "region = europe-west5",
    ),
    "slices of one chip that differ": (
        lambda: with_record("tpus", "v6e-8", memory_bytes=32 * 10**9),
        "v6e-8",
        "same rates",
    ),
    "a slice without a date": (lambda: with_record("tpus", "v6e-1", as_of=""), "v6e-1", 'as_of = ""'),
    "a chip's memory in GiB": (lambda: with_record("tpus", "v6e-1", memory_bytes=31), "v6e-1", "memory_bytes = 31"),
    "a zone of no region": (lambda: with_record("tpus", "v6e-1", zones=("us-east9-a",)), "v6e-1", "region = us-east9"),
    "a topology of other chips": (lambda: with_record("tpus", "v6e-8", topology="2x2"), "v6e-8", "topology = 2x2"),
    "a region for a zone": (lambda: with_record("tpus", "v6e-4", zones=("us-east5",)), "v6e-4", "us-east5-a"),
    "taken and refused": (
        lambda: with_record("tpus", "v6e-4", zones_refused=("us-east5-a",)),
        "v6e-4",
        "zones_refused = us-east5-a",
    ),
    "a slice nowhere": (
        lambda: with_record("tpus", "v6e-4", zones=(), unpriced="no zone"),
        "v6e-4",
        "zones = (not set)",
    ),
    "weights in GB": (lambda: with_record("models", QAT, weight_bytes=8), QAT, "weight_bytes as bits"),
    "weights of another encoding": (lambda: with_record("models", QAT, encoding="bf16"), QAT, "between 15.5 and 17"),
    "an encoding that is not known": (lambda: with_record("models", QAT, encoding="int8"), QAT, "encoding = int8"),
    "a file as a hub id": (lambda: with_record("models", QAT, hub_id="gemma.safetensors"), QAT, "OWNER/NAME"),
    "two models of one hub id": (
        lambda: with_record("models", QAT, hub_id="google/gemma-4-12B-it"),
        "models.toml",
        "google/gemma-4-12B-it\n   2 rows",
    ),
    "a form that vLLM does not serve": (
        lambda: with_record("models", QAT, hub_id="google/gemma-gguf"),
        QAT,
        "llama.cpp",
    ),
    "computed and not marked": (
        lambda: with_record("models", MOE, source="derived from bf16"),
        MOE,
        "derived = false",
    ),
    "marked and measured": (lambda: with_record("models", MOE, derived=True), MOE, "derived = true"),
    "an assistant without a size": (lambda: with_record("models", QAT, assistant_bytes=0), QAT, "write both, or none"),
    "an assistant as large as a model": (
        lambda: with_record("models", QAT, assistant_bytes=8 * 10**9),
        QAT,
        "a tenth of its model",
    ),
    "an assistant that is none": (
        lambda: with_record("models", QAT, assistant="google/gemma-4-E2B-it"),
        QAT,
        "-assistant",
    ),
    "a machine that is not known": (lambda: with_record("models", QAT, not_on=(("npu", "x"),)), QAT, "not_on = npu"),
    "a refusal without a reason": (lambda: with_record("models", QAT, not_on=(("tpu", ""),)), QAT, "write the reason"),
    "a cache other than the measured one": (
        lambda: with_layers(E2B, sliding={"count": 28}, full={"count": 7}),
        "E2B bf16, 1 chip",
        "the layers of gemma-4-e2b-it make 43008 B",
    ),
    "a measurement without a source": (lambda: with_measured("memory", source=""), "12B bf16, 4 chips", 'source = ""'),
    "a measurement of an unknown model": (
        lambda: with_measured("speed", model="gemma"),
        "measurements",
        "model = gemma",
    ),
    "a measurement of no machine": (lambda: with_measured("speed", machine="v5e-1"), "measurements", "machine = v5e-1"),
    "a cache below one request": (
        lambda: with_measured("memory", kv_tokens=100),
        "12B bf16, 4 chips",
        "kv_tokens = 100",
    ),
    "a speed of nothing": (lambda: with_measured("speed", tokens_per_second=0.0), "measurements", "_second = 0"),
    "layers that make no pattern": (lambda: with_layers(QAT, sliding={"count": 41}), "12b", "41 sliding and 8 full"),
    "heads that share no cache evenly": (lambda: with_shape(QAT, attention_heads=12), "12b", "attention_heads = 12"),
    "no heads": (lambda: with_shape(QAT, attention_heads=0), "12b", "attention_heads = 0"),
    "no heads of the cache": (lambda: with_layers(QAT, full={"kv_heads": 0}), "12b", "full_kv_heads = 0"),
    "active parameters of nothing": (lambda: with_shape(QAT, active_parameters=10**9), "12b", "active_parameters"),
    "a vocabulary beyond the parameters": (lambda: with_shape(QAT, vocabulary=4 * 10**6), "12b", "embeddings alone"),
    "no window": (lambda: with_layers(QAT, sliding={"window": 0}), "12b", "window = 0"),
    "no text": (lambda: with_shape(QAT, modalities=("image",)), "12b", "add text"),
    "a size without a date": (lambda: with_shape(QAT, as_of="2026"), "architecture", "as_of = 2026"),
    "a comparison without a source": (
        lambda: with_record("machines", "ec2-g6-xlarge", source=""),
        "ec2-g6-xlarge",
        'source = ""',
    ),
    "a comparison with nothing": (
        lambda: with_record("machines", "azure-l4", accelerator="nvidia-t4"),
        "azure-l4",
        "nvidia-t4",
    ),
    "a comparison for nothing": (
        lambda: with_record("machines", "ec2-g6-xlarge", usd_per_hour=Decimal(0)),
        "ec2-g6-xlarge",
        "usd_per_hour = 0",
    ),
    "unpriced without a reason": (
        lambda: with_record("machines", "ec2-g6-xlarge", usd_per_hour=None),
        "ec2-g6-xlarge",
        "usd_per_hour = (not set)",
    ),
    "no accelerators": (lambda: with_record("machines", "azure-l4", count=0), "azure-l4", "count = 0"),
    "a rule that does not compile": (lambda: with_rule(description="L4 ("), "skus.toml", "no SKU can match"),
    "a rule without a date": (lambda: with_rule(as_of="today"), "skus.toml", "as_of = today"),
    "a list without a source": (lambda: with_options(source=""), "0.32.0", 'source = ""'),
    "a row without a rule": (lambda: dataclasses.replace(GOOD, rules=GOOD.rules[:-1]), "spot", "no rule in skus.toml"),
    "a list that was cut off": (
        lambda: with_options(options=GOOD.vllm["0.32.0"].options[:50]),
        "0.32.0",
        "options = 50",
    ),
    "variables that were cut off": (
        lambda: with_options(variables=dict(list(GOOD.vllm["0.32.0"].variables.items())[:9])),
        "0.32.0",
        "variables = 9",
    ),
    "values of an option that there is not": (
        lambda: with_options(values={**GOOD.vllm["0.32.0"].values, "no_such": {}}),
        "0.32.0",
        "of unknown options: no_such",
    ),
    "variables of TPUs without a source": (
        lambda: dataclasses.replace(GOOD, tpu_inference=dataclasses.replace(GOOD.tpu_inference, source="")),
        "tpu_inference.json",
        'source = ""',
    ),
    "a list of another release": (lambda: with_options(version="0.31.0"), "0.32.0", "version = 0.31.0"),
}


@pytest.mark.parametrize(("change", "row", "message"), INCONSISTENT.values(), ids=INCONSISTENT)
def test_an_integrity_error_is_noticed_and_reported_with_its_repair(change, row, message):
    errors = check_catalogue(change())
    assert [error for error in errors if row in error.key and message in str(error)], errors
    assert all(error.consequence and error.repair for error in errors)


def test_a_place_without_a_price_is_named_and_one_with_a_price_is_not():
    named = unpriced_places(GOOD.prices, GOOD.accelerators, GOOD.tpus)
    assert "nvidia-l4 in asia-southeast1" in named
    assert "v6e in southamerica-west1" in named
    assert "nvidia-l4 in us-east4" not in named
    fewer = tuple(row for row in GOOD.prices if (row.item, row.region) != (DEAR, "us-east4"))
    assert set(unpriced_places(fewer, GOOD.accelerators, GOOD.tpus)) - set(named) == {"nvidia-l4 in us-east4"}


def test_the_price_file_is_written_as_it_is_read():
    assert parse_prices(format_prices(GOOD.prices)) == GOOD.prices


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("service,item\n", "the columns are service, item, region"),
        (format_prices(GOOD.prices[:1]) + "cloud-run,vcpu\n", "line 3 = cloud-run,vcpu"),
        (format_prices(GOOD.prices[:1]).replace("0.0001867", "cheap"), "line 2"),
        ("", "the columns are"),
    ],
)
def test_a_wrong_price_file_is_refused_with_its_line(text, message):
    with pytest.raises(ValueError, match=message):
        parse_prices(text)
