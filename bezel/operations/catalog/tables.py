"""Sections of the catalogue as rows and as text tables, each row with its date and source."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from bezel_base.terminal.blocks import Line, Role, Table
from bezel_catalog import (
    accelerators,
    compared_machines,
    gpu_machines,
    models,
    prices,
    tpus,
    vllm_options,
    vllm_versions,
)
from bezel_catalog.checks.integrity_errors import Sourced
from bezel_catalog.measurements import measured_memory, measured_speed

Row = dict[str, object]
_BASIS = "as of, source"
_KINDS = {"shared": "without a cache"}


def table(name: str, rows: Sequence[Mapping[str, object]]) -> tuple[Line, Table]:
    """A section as a table; the last and longest column holds date and source."""
    return Line(f"{name}:", Role.HEADING), Table([*rows[0]], [[*row.values()] for row in rows], indent=2)


def _accelerators() -> Iterator[Row]:
    for gpu in accelerators().values():
        quota = f"quota {gpu.quota} or {gpu.quota_zonal_redundancy}, {gpu.quota_unit_per_gpu} a GPU"
        yield {
            "id": gpu.id,
            "memory GB": _giga(gpu.memory_bytes),
            "GB/s": _giga(gpu.bandwidth_bytes_per_s),
            "bf16 TFLOP/s": _tera(gpu.bf16_flops),
            "fp8 TFLOP/s": _tera(gpu.fp8_flops),
            "capability": gpu.compute_capability,
            "min CPU, GiB": f"{gpu.min_cpu}, {gpu.min_memory_gib}",
            "regions": " ".join((*gpu.regions, *(f"({region})" for region in gpu.regions_on_invitation))),
            _BASIS: f"{quota}; {_basis(gpu)}",
        }


def _tpus() -> Iterator[Row]:
    for tpu in tpus().values():
        yield {
            "id": tpu.id,
            "chips": tpu.chips,
            "topology": tpu.topology,
            "GiB a chip": f"{tpu.memory_bytes / 2**30:.2f}",
            "GB/s a chip": _giga(tpu.bandwidth_bytes_per_s),
            "bf16 TFLOP/s a chip": _tera(tpu.bf16_flops),
            "host CPU, GiB": f"{tpu.host_cpu}, {tpu.host_memory_gib}",
            "zones": " ".join(tpu.zones),
            _BASIS: f"refused in {' '.join(tpu.zones_refused)}; quota {tpu.quota_preemptible}; {_basis(tpu)}",
        }


def _machines() -> Iterator[Row]:
    for machine in gpu_machines().values():
        yield {
            "id": machine.id,
            "accelerators": f"{machine.gpus} x {machine.accelerator}",
            "host CPU, GiB": f"{machine.host_cpu}, {machine.host_memory_gib}",
            "zones": " ".join(machine.zones),
            _BASIS: f"quota {machine.quota} or {machine.quota_preemptible}; {_basis(machine)}",
        }


def _models() -> Iterator[Row]:
    for model in models().values():
        shape = model.architecture
        kinds: Counter[str] = Counter()
        for group in shape.cache:
            kinds[_KINDS.get(group.kind, group.kind)] += group.count
        yield {
            "id": model.id,
            "encoding": model.encoding,
            "weights GB": _giga(model.weight_bytes) + (" (derived)" if model.derived else ""),
            "parameters, active": f"{shape.parameters / 1e9:g}B, {shape.active_parameters / 1e9:g}B",
            "layers": " + ".join(f"{count} {kind}" for kind, count in kinds.items()),
            "hub id": model.hub_id or "(not published)",
            "assistant": model.assistant or "-",
            _BASIS: _basis(model) + "".join(f"; not on {machine}: {reason}" for machine, reason in model.not_on),
        }


def _prices() -> Iterator[Row]:
    for price in prices().values():
        yield {
            "service": price.service,
            "item": price.item,
            "region": price.region,
            "billing model": price.model,
            "USD": f"{price.usd_per_unit:f}",
            "per": price.unit,
            "kind": "derived" if price.is_derived else "list price",
            "SKU": price.sku or "-",
            _BASIS: _basis(price),
        }


def _comparison() -> Iterator[Row]:
    for machine in compared_machines().values():
        yield {
            "id": machine.id,
            "accelerators": f"{machine.count} x {machine.accelerator}",
            "region": machine.region or "-",
            "USD/h": "unpriced" if machine.usd_per_hour is None else f"{machine.usd_per_hour:f}",
            _BASIS: f"{machine.title}; {_basis(machine)}",
        }


def _measurements() -> Iterator[Row]:
    for case in measured_memory():
        text = f"{case.max_model_len} tokens {'start' if case.starts else 'do not start'}"
        text += f", {case.kv_tokens} tokens of cache" if case.kv_tokens else ""
        text += f", {case.kv_token_bytes} B a token" if case.kv_token_bytes else ""
        yield _measurement(case.case, case.model, case.machine, text, _basis(case, case.disputed))
    for load in measured_speed():
        text = f"{load.tokens_per_second:g} tokens/s with {load.users} users"
        text += f", {load.prompt_tokens} tokens in, {load.output_tokens} out"
        yield _measurement(load.case, load.model, load.machine, text, _basis(load))


def _measurement(case: str, model: str, machine: str, text: str, basis: str) -> Row:
    return {"case": case, "model": model, "machine": machine, "observation": text, _BASIS: basis}


def _vllm() -> Iterator[Row]:
    for release in map(vllm_options, vllm_versions()):
        yield {"release": release.version, "options": len(release.options), _BASIS: _basis(release)}


SECTIONS: dict[str, Callable[[], Iterator[Row]]] = {
    "accelerators": _accelerators,
    "tpus": _tpus,
    "machines": _machines,
    "models": _models,
    "prices": _prices,
    "vllm": _vllm,
    "comparison": _comparison,
    "measurements": _measurements,
}


def _basis(record: Sourced, remark: str = "") -> str:
    return f"{record.as_of}, {record.source}" + (f"; {remark}" if remark else "")


def _giga(number: int) -> str:
    return f"{number / 1e9:g}"


def _tera(number: int) -> str:
    return f"{number / 1e12:g}"
