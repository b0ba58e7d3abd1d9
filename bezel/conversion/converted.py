"""A found server -> the settings of a stack: which stack, which hardware, and everything that is to be known. Pure.

Where the input names no hardware the cheapest is chosen on which the plan has no objection, and that is said. Leaves
the objections themselves, the text of the file and the prices to the modules above.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bezel.conversion.inputs.found_server import FoundServer, Remark, remark
from bezel.conversion.inputs.server_words import ServerOptions, read_server_options, server_words
from bezel.conversion.inputs.variable_expansion import OPEN
from bezel.conversion.settings import machine_settings as machine
from bezel.conversion.settings.image_settings import TPU_IMAGE, image_settings
from bezel.conversion.settings.model_settings import choose_model
from bezel.conversion.settings.option_settings import option_settings
from bezel.conversion.settings.variable_settings import variable_settings
from bezel.planner.base.hardware import LeasedHardware, find_leased_hardware, leased_hardware
from bezel.planner.base.money import Priced
from bezel.planner.base.names import PREFIX, SERVICE_LENGTH, resource_name
from bezel.planner.cost.service_cost import service_cost
from bezel.planner.vllm.loading import HUB
from bezel_base.text.redaction import redact_forms
from bezel_catalog import accelerators, vllm_options
from bezel_catalog.option_values import as_int

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_catalog import Accelerator

# Variables by which images and scripts of one's own choose the model; vLLM reads none of them.
_MODEL_VARIABLES = ("MODEL", "MODEL_ID", "MODEL_NAME", "HF_MODEL_ID", "VLLM_MODEL")
_STACK = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,40}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """The settings of a stack that serves what was server_options.

    Attributes:
        stack: Name of the stack.
        project: Id of the project that the input names; "" where it names none.
        settings: Of namespace `bezel`, as the planner reads them, in the order of a stack file.
        remarks: What has no counterpart, what was assumed, what changes.
        server: What was server_options.
    """

    stack: str
    project: str
    settings: dict[str, Any]
    remarks: tuple[Remark, ...]
    server: FoundServer = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller decides; "" for what the input says, or else an assumption.

    Attributes:
        model: The checkpoint that the input's folder or hub id is.
        environment: Of the stack, where no label of the input names it.
        labels: Those that the input has not.
    """

    stack: str = ""
    project: str = ""
    accelerator: str = ""
    region: str = ""
    model: str = ""
    environment: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


def candidates(server: FoundServer, wishes: Wishes) -> Iterator[Converted]:
    """The stack for each hardware that may be meant: one where input or caller name it, else the cheapest first.

    Raises:
        UserError: What was found serves no model of vLLM.
    """
    image, release, image_remarks = image_settings(server)
    server_options = read_server_options(server_words(server.tokens), vllm_options(release))
    base = [*server.remarks, *image_remarks, *server_options.remarks]
    if not (server_options.model or wishes.model):
        base += _model_of_a_variable(server, server_options)
    for accelerator, reason in _hardware(server, server_options, wishes):
        remarks = list(base)
        if reason:
            remarks.append(remark("assumed", "bezel:accelerator", accelerator, reason))
        yield _stack_of(server, server_options, release, image, accelerator, wishes, remarks)


def _model_of_a_variable(server: FoundServer, server_options: ServerOptions) -> Iterator[Remark]:
    """Take the model from a variable, as images of one's own read it where the command names none."""
    for name in _MODEL_VARIABLES:
        if (value := server.variables.get(name, "")) and not OPEN.search(value):
            server_options.model = value
            yield remark("assumed", "model", value, f"the command names none: it is that of the variable {name}.")
            return


def _hardware(server: FoundServer, server_options: ServerOptions, wishes: Wishes) -> list[tuple[str, str]]:
    """Ids of accelerators, each with the reason where it is an assumption."""
    if wishes.accelerator or server.gpu_type:
        return [(wishes.accelerator or server.gpu_type, "")]
    devices = as_int(server_options.options.get("tensor-parallel-size")) or 1
    is_tpu = TPU_IMAGE in server.image
    for hardware in leased_hardware().values():
        if (is_tpu or devices > 1) and hardware.chips == devices and (hardware.device == "tpu") == is_tpu:
            return [(hardware.id, f"the input serves on {devices} {'chips' if is_tpu else 'GPUs'}.")]
    offered_gpus = list(accelerators().values())
    if server.on_cloud_run and server.gpus:
        return [(offered_gpus[0].id, "the input names no type of GPU, which is this one on Cloud Run.")]
    reason = "the input names no hardware: it is the cheapest with the fewest objections."
    return [(each.id, reason) for each in sorted(offered_gpus, key=_usd_per_hour)]


def _usd_per_hour(gpu: Accelerator) -> float:
    return min((usd for region in gpu.regions if (usd := _usd(gpu, region)) is not None), default=float("inf"))


def _usd(gpu: Accelerator, region: str) -> float | None:
    """USD per hour of one instance with the accelerator's minimum; None without a price."""
    cost = service_cost(
        gpu.id, region=region, cpu=gpu.min_cpu, memory_gib=gpu.min_memory_gib, min_instances=0, max_instances=1
    )
    return float(cost.hourly.usd) if isinstance(cost.hourly, Priced) else None


def _stack_of(
    server: FoundServer,
    server_options: ServerOptions,
    release: str,
    image: dict[str, Any],
    accelerator: str,
    wishes: Wishes,
    remarks: list[Remark],
) -> Converted:
    gpu, leased = accelerators().get(accelerator), find_leased_hardware(accelerator)
    project = wishes.project or server.project
    region = _region(server, gpu, leased, wishes, remarks)
    served = server_options.options.get("served-model-name")
    choice = choose_model(server, server_options.model, served, project, name=wishes.model)
    remarks += choice.remarks
    stack = _stack_name(server, choice.name, wishes, remarks)
    resources = machine.resource_settings(server, gpu, remarks) if leased is None else {}
    memory = machine.gib_of(server.memory) or 0
    options, loading, option_remarks = option_settings(
        server_options.options,
        choice,
        server_options.model,
        vllm_options(release),
        memory_gib=max(int(memory), gpu.min_memory_gib if gpu else 0),
        leased=leased,
    )
    remarks += option_remarks
    weights = choice.weights | ({"loading": loading} if loading else {})
    variables, secrets = variable_settings(server, gpu, from_hub=weights.get("loading") == HUB.id, remarks=remarks)
    labels, environment = machine.label_settings(server, wishes.environment, remarks)
    labels |= _missing_labels(labels, wishes, remarks)
    machine.note_account(server, stack, remarks)
    if (server.gpus or 1) > 1 and leased is None:
        remarks.append(remark("not converted", "GPUs", server.gpus, "an instance of Cloud Run has one GPU."))
    settings: dict[str, Any] = {
        "environment": environment or wishes.environment,
        "model": choice.name,
        "accelerator": accelerator,
        "region": region,
        "service_name": _service_name(server, stack, leased),
        **image,
        "weights": weights,
        "vllm": options,
        "resources": resources,
        "scaling": machine.scaling_settings(server, remarks) if leased is None else {},
        "probe": machine.probe_settings(server, remarks) if leased is None else {},
        "access": machine.access_settings(server),
        "vpc": machine.vpc_settings(server) if leased is None else {},
        "variables": variables,
        "secrets": secrets,
        "lease": {"zones": [{"zone": zone} for zone in leased.zones if zone.startswith(f"{region}-")]}
        if leased
        else {},
        "network": {"nat": True} if leased and leased.device == "gpu" else {},
        "labels": labels,
    }
    kept = {
        key: value if key == "secrets" else _without_credentials(value, f"bezel:{key}", remarks)
        for key, value in settings.items()
    }
    kept = {key: value for key, value in kept.items() if value not in ("", None, {}, [])}
    return Converted(stack=stack, project=project, settings=kept, remarks=tuple(remarks), server=server)


def _without_credentials(value: Any, key: str, remarks: list[Remark]) -> Any:
    """A value without the texts in it that have the form of a credential, wherever an input has put one."""
    if isinstance(value, dict):
        kept = {name: _without_credentials(item, f"{key}.{name}", remarks) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item != "" or value[name] == ""}
    if isinstance(value, list):
        return [item for item in (_without_credentials(each, key, remarks) for each in value) if item != ""]
    if not isinstance(value, str) or redact_forms(value) == value:
        return value
    remarks.append(remark("not converted", key, None, "its value may be a secret.", hidden=True))
    return ""


def _missing_labels(labels: Mapping[str, str], wishes: Wishes, remarks: list[Remark]) -> dict[str, str]:
    missing = {name: value for name, value in wishes.labels.items() if name not in labels}
    if missing:
        shown = ", ".join(f"{name}: {value}" for name, value in missing.items())
        remarks.append(remark("assumed", "bezel:labels", shown, "the input has none of them, and the packs ask."))
    return missing


def _region(
    server: FoundServer,
    gpu: Accelerator | None,
    leased: LeasedHardware | None,
    wishes: Wishes,
    remarks: list[Remark],
) -> str:
    if named := wishes.region or server.region:
        return named
    if gpu is None:
        offered = [zone.rpartition("-")[0] for zone in leased.zones] if leased else []
        region = offered[0] if offered else ""
        reason = "the input names no region: the hardware is there."
    else:
        priced = [region for region in gpu.regions if _usd(gpu, region) is not None]
        region = min(priced or gpu.regions, key=lambda each: (_usd(gpu, each) or 0.0, each))
        reason = f"the input names no region: it is the cheapest of {gpu.title}."
    if region:
        remarks.append(remark("assumed", "bezel:region", region, reason))
    return region


def _stack_name(server: FoundServer, model_id: str, wishes: Wishes, remarks: list[Remark]) -> str:
    if wishes.stack:
        return wishes.stack
    for name in (server.name.removeprefix(f"{PREFIX}-"), re.sub(r"[^a-z0-9]+", "-", model_id.lower()).strip("-")):
        if _STACK.fullmatch(name):
            if not server.name:
                remarks.append(remark("assumed", "stack", name, "the input names no service."))
            return name
    return "converted"


def _service_name(server: FoundServer, stack: str, leased: LeasedHardware | None) -> str:
    """The service's name, where the stack's own is another one and the service is to be adopted."""
    if not server.on_cloud_run or leased is not None or not server.name:
        return ""
    return "" if server.name == resource_name(stack, length=SERVICE_LENGTH) else server.name


def with_settings(converted: Converted, **settings: Any) -> Converted:
    """The same with further settings; an empty one removes it."""
    merged = converted.settings | settings
    return replace(converted, settings={key: value for key, value in merged.items() if value not in ("", None, {})})
