"""Text tables of `bezel catalog show`: the catalogue's records, each row with its date and source.

Pure: records in, text out. Leaves the reading of files to bezel.catalog.
"""

from collections.abc import Callable, Iterable, Sequence

from bezel.catalog import (
    Price,
    accelerators,
    compared_machines,
    gpu_machines,
    models,
    prices,
    tpus,
    vllm_options,
    vllm_versions,
)
from bezel.catalog.checks.integrity_errors import Sourced
from bezel.catalog.measurements import measured_memory, measured_speed

Table = tuple[Sequence[str], Iterable[Sequence[object]]]


def _accelerators() -> Table:
    header = (
        "id",
        "memory GB",
        "GB/s",
        "bf16 TFLOP/s",
        "fp8 TFLOP/s",
        "capability",
        "least CPU, GiB",
        "regions",
        "as of, source",
    )
    return header, (
        (
            gpu.id,
            _giga(gpu.memory_bytes),
            _giga(gpu.bandwidth_bytes_per_s),
            _tera(gpu.bf16_flops),
            _tera(gpu.fp8_flops),
            gpu.compute_capability,
            f"{gpu.min_cpu}, {gpu.min_memory_gib}",
            " ".join((*gpu.regions, *(f"({region})" for region in gpu.regions_on_invitation))),
            f"quota {gpu.quota} or {gpu.quota_zonal_redundancy}, {gpu.quota_unit_per_gpu} a GPU; {_read(gpu)}",
        )
        for gpu in accelerators().values()
    )


def _tpus() -> Table:
    header = (
        "id",
        "chips",
        "topology",
        "GiB a chip",
        "GB/s a chip",
        "bf16 TFLOP/s a chip",
        "host CPU, GiB",
        "zones",
        "as of, source",
    )
    return header, (
        (
            each.id,
            each.chips,
            each.topology,
            f"{each.memory_bytes / 2**30:.2f}",
            _giga(each.bandwidth_bytes_per_s),
            _tera(each.bf16_flops),
            f"{each.host_cpu}, {each.host_memory_gib}",
            " ".join(each.zones),
            f"refused in {' '.join(each.zones_refused)}; quota {each.quota_preemptible}; {_read(each)}",
        )
        for each in tpus().values()
    )


def _machines() -> Table:
    header = ("id", "accelerators", "host CPU, GiB", "zones", "as of, source")
    return header, (
        (
            each.id,
            f"{each.gpus} x {each.accelerator}",
            f"{each.host_cpu}, {each.host_memory_gib}",
            " ".join(each.zones),
            f"quota {each.quota} or {each.quota_preemptible}; {_read(each)}",
        )
        for each in gpu_machines().values()
    )


def _models() -> Table:
    header = ("id", "encoding", "weights GB", "parameters, active", "layers", "hub id", "assistant", "as of, source")
    rows = []
    for model in models().values():
        shape = model.architecture
        layers = f"{shape.sliding_layers} sliding + {shape.full_layers} full"
        layers += f" + {shape.shared_kv_layers} without a cache" if shape.shared_kv_layers else ""
        refused = "".join(f"; not on {machine}: {reason}" for machine, reason in model.not_on)
        rows.append(
            (
                model.id,
                model.encoding,
                _giga(model.weight_bytes) + (" (derived)" if model.derived else ""),
                f"{shape.parameters / 1e9:g}B, {shape.active_parameters / 1e9:g}B",
                layers,
                model.hub_id or "(nobody publishes it)",
                model.assistant or "-",
                _read(model) + refused,
            )
        )
    return header, rows


def _prices() -> Table:
    header = ("service", "item", "region", "billing model", "USD", "per", "kind", "SKU", "as of, source")
    return header, (
        (
            row.service,
            row.item,
            row.region,
            row.model,
            f"{row.usd_per_unit:f}",
            row.unit,
            _kind(row),
            row.sku or "-",
            _read(row),
        )
        for row in prices().values()
    )


def _comparison() -> Table:
    header = ("id", "accelerators", "region", "USD/h", "as of, source")
    return header, (
        (
            each.id,
            f"{each.count} x {each.accelerator}",
            each.region or "-",
            "unpriced" if each.usd_per_hour is None else f"{each.usd_per_hour:f}",
            f"{each.title}; {_read(each)}",
        )
        for each in compared_machines().values()
    )


def _measurements() -> Table:
    header = ("case", "model", "machine", "what was seen", "as of, source")
    rows: list[tuple[object, ...]] = []
    for case in measured_memory():
        seen = f"{case.max_model_len} tokens {'start' if case.starts else 'do not start'}"
        seen += f", {case.kv_tokens} tokens of cache" if case.kv_tokens else ""
        seen += f", {case.kv_token_bytes} B a token" if case.kv_token_bytes else ""
        rows.append(
            (case.case, case.model, case.machine, seen, _read(case) + (f"; {case.disputed}" if case.disputed else ""))
        )
    for load in measured_speed():
        seen = (
            f"{load.tokens_per_second:g} tokens/s for {load.users} of {load.prompt_tokens} in, {load.output_tokens} out"
        )
        rows.append((load.case, load.model, load.machine, seen, _read(load)))
    return header, rows


def _vllm() -> Table:
    header = ("release", "options", "as of, source")
    found = [vllm_options(version) for version in vllm_versions()]
    return header, ((each.version, len(each.options), _read(each)) for each in found)


SECTIONS: dict[str, Callable[[], Table]] = {
    "accelerators": _accelerators,
    "tpus": _tpus,
    "machines": _machines,
    "models": _models,
    "prices": _prices,
    "vllm": _vllm,
    "comparison": _comparison,
    "measurements": _measurements,
}


def section(name: str) -> str:
    """Render one section as an aligned table; the last and longest column holds date and source."""
    header, rows = SECTIONS[name]()
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header) - 1)]
    lines = [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1])).rstrip()
        for row in cells
    ]
    return "\n".join((f"{name}:", *(f"  {line}" for line in lines)))


def _kind(row: Price) -> str:
    return "derived" if row.derived else "list price"


def _read(record: Sourced) -> str:
    return f"{record.as_of}, {record.source}"


def _giga(number: int) -> str:
    return f"{number / 1e9:g}"


def _tera(number: int) -> str:
    return f"{number / 1e12:g}"
