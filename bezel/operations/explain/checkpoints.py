"""Checkpoints and hardware of the catalogue: what each is, what it runs on, and why not elsewhere."""

import json

from bezel.operations.explain.entry import Entry, facts, list_text
from bezel.operations.results import format_count
from bezel.planner.base.hardware import LeasedHardware, leased_hardware
from bezel.planner.base.problems import setting
from bezel.planner.vllm.model.pooling import planned_pooling
from bezel_catalog import Model, accelerators, models, unservable_form

_GIB = 1 << 30
# vLLM 0.32.0, config/model.py (get_diff_sampling_param): the fields that it takes.
_SAMPLING = ("repetition_penalty", "temperature", "top_k", "top_p", "min_p", "max_new_tokens")


def names() -> list[str]:
    """Ids of checkpoints and their names on the hub, and ids of hardware."""
    hub = [name for each in models().values() for name in (each.hub_id, each.assistant) if name]
    return list(dict.fromkeys((*models(), *hub, *accelerators(), *leased_hardware())))


def entries(subject: str) -> list[Entry]:
    """What the catalogue says about a checkpoint or hardware."""
    name = subject.strip().removeprefix("hf:")
    checkpoint_entries = [
        _checkpoint(each) for each in models().values() if name in (each.id, each.hub_id) or each.is_named(name)
    ]
    checkpoint_entries += [_draft(name)] if any(each.assistant == name for each in models().values()) else []
    if not checkpoint_entries and "/" in name and (reason := unservable_form(name)):
        why = (f"vLLM does not serve it: {reason}.",)
        checkpoint_entries = [
            Entry(kind="checkpoint", name=name, meaning="a form of weights", facts=(), why=why, source="catalogue")
        ]
    return [*checkpoint_entries, *_hardware(name)]


def _checkpoint(model: Model) -> Entry:
    shape, pooling = model.architecture, planned_pooling(model, {}, "")
    machines = [*accelerators(), *(each.id for each in leased_hardware().values())]
    refusals = {machine: model.refused_on(_refused_as(machine)) for machine in machines}
    reasons = dict.fromkeys(reason for reason in refusals.values() if reason)
    estimate = "arithmetic, not measured" if model.derived else "resident once it is loaded"
    rows = {
        "architecture": shape.id,
        "parameters": f"{shape.parameters / 1e9:.2f}B, of which {shape.active_parameters / 1e9:.2f}B active",
        "encoding": model.encoding,
        "weights": f"{model.weight_bytes / _GIB:.2f} GiB ({estimate})",
        "context": f"{shape.context} tokens at most",
        "modalities": list_text(shape.modalities),
        "hub id": model.hub_id or "not published: a stack names its own folder (bezel:weights.path)",
        "draft model": model.assistant,
        "commit": model.commit or None,
        "answers at": ", ".join(pooling.endpoints) if pooling else None,
        "sampling": None if pooling else _sampling(model),
        "chat template": _template(model, "a request with messages" if pooling else "/v1/chat/completions"),
        "parsers": None if pooling else _parsers(model),
        "not refused on": list_text(machine for machine, reason in refusals.items() if not reason),
        "written as": f"{setting('model')}: {model.id}",
    }
    return Entry(
        kind="checkpoint",
        name=model.id,
        meaning="whether it fits into memory depends on the options: `bezel plan` computes it",
        facts=facts(rows),
        why=tuple(
            f"not on {list_text(machine for machine, why in refusals.items() if why == reason)}: {reason}."
            for reason in reasons
        ),
        source=f"{model.source}, {model.as_of}",
    )


def _sampling(model: Model) -> str | None:
    """What the server samples by where a request says nothing, by the model's generation_config.json."""
    values = json.loads(model.files.generation) if model.files else {}
    texts = [f"{name} {values[name]}" for name in _SAMPLING if name in values]
    return f"{', '.join(texts)} (generation_config.json)" if texts else None


def _template(model: Model, needed_by: str) -> str | None:
    if model.files is None:
        return None
    return "its own" if model.files.chat_template else f"none: {needed_by} needs vllm: {{chat-template: ...}}"


def _parsers(model: Model) -> str | None:
    """The parsers that its row names, for the options of these names."""
    if model.files is None:
        return None
    named = {"tool-call-parser": model.files.tool_call_parser, "reasoning-parser": model.files.reasoning_parser}
    return list_text(f"{option} {parser}" for option, parser in named.items() if parser) or "none"


def _draft(name: str) -> Entry:
    users = [each for each in models().values() if each.assistant == name]
    rows = {"drafts for": list_text(each.id for each in users), "size": f"{users[0].assistant_bytes / _GIB:.2f} GiB"}
    return Entry(
        kind="checkpoint",
        name=name,
        meaning="a draft model for speculative decoding",
        facts=facts(rows),
        why=(),
        source=f"{users[0].source}, {users[0].as_of}",
    )


def _refused_as(machine: str) -> str:
    hardware = leased_hardware().get(machine)
    return hardware.refused_as if hardware else machine


def _hardware(name: str) -> list[Entry]:
    hardware_entries = []
    if gpu := accelerators().get(name):
        rows = {
            "runs on": "Cloud Run",
            "memory": f"{gpu.memory_bytes / _GIB:.1f} GiB",
            "GPUs of an instance": str(gpu.gpus_per_instance),
            "least CPU and memory": f"{gpu.min_cpu} vCPUs, {gpu.min_memory_gib} GiB",
            "regions": list_text(gpu.regions),
            "regions by invitation": list_text(gpu.regions_on_invitation),
            "quota": f"{gpu.quota}, {gpu.quota_unit_per_gpu} for a GPU",
            "with zonal redundancy": gpu.quota_zonal_redundancy,
            "written as": f"{setting('accelerator')}: {gpu.id}",
        }
        why = (f"its price is unknown: {gpu.unpriced}",) if gpu.unpriced else ()
        source = f"{gpu.source}, {gpu.as_of}"
        hardware_entries.append(
            Entry(kind="hardware", name=name, meaning=gpu.title, facts=facts(rows), why=why, source=source)
        )
    if hardware := leased_hardware().get(name):
        hardware_entries.append(_leased_entry(hardware))
    return hardware_entries


def _devices(hardware: LeasedHardware) -> str:
    devices = format_count(hardware.chips, "TPU chip" if hardware.device == "tpu" else "GPU")
    return devices if hardware.chips == 1 else f"{devices}, which share the model"


def _leased_entry(hardware: LeasedHardware) -> Entry:
    record = hardware.slice or hardware.gpu
    rows = {
        "leased by": list_text(hardware.back_ends),
        "devices": _devices(hardware),
        "memory of the host": f"{hardware.host_memory_gib} GiB",
        "zones": list_text(hardware.zones),
        "quotas": list_text(dict.fromkeys(quota.id for both in hardware.quotas.values() for quota in both)),
        "written as": f"{setting('accelerator')}: {hardware.id}, with {setting('lease')}",
    }
    refused = list_text(hardware.zones_refused)
    return Entry(
        kind="hardware",
        name=hardware.id,
        meaning="leased for a limited time",
        facts=facts(rows),
        why=(f"refused a flex-start request as unsupported: {refused}",) if refused else (),
        source=f"{record.source}, {record.as_of}" if record else "catalogue",
    )
