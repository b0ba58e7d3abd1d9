"""Limits of Cloud Run: probe windows, minima of the accelerator, regions, callers, secrets, labels.

Owns the platform's limits as rules over plain values. Leaves vLLM, memory and money to the modules beside it. Source of
the limits of labels: Resource Manager's requirements for labels, read in 2026-11.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.planner.base.members import member_problem
from bezel.planner.base.names import is_own_label
from bezel.planner.base.problems import setting
from bezel.planner.base.repairs import to_number
from bezel.planner.vllm.option_checks import refused_key
from bezel_base.errors import NOT_SHOWN, Problem, format_value
from bezel_catalog import closest
from bezel_catalog.quantities import memory_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.planner.base.settings import Access, ProbeSettings, Resources, Scaling
    from bezel_catalog import Accelerator

GPU_PROBE_WINDOW_SECONDS = 1800
PROBE_DELAY_SECONDS = 240
PROBE_PERIOD_SECONDS = 240
BOOSTED_CPU = 8  # of startup CPU boost with four vCPUs or more (its table, November 2026)
# Cloud Run's table of the maximum memory for a number of vCPUs. Only an accelerator that needs more vCPUs than the
# table has gets more; that maximum is not known here.
MEMORY_OF_CPU = {1: 4, 2: 8, 4: 16, 6: 24, 8: 32}
MAX_LABELS = 64  # of one resource, Bezel's own included

_SECRET_ID = re.compile(r"[A-Za-z0-9_-]{1,255}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
API_KEY = "VLLM_API_KEY"
# Variables by which the image finds its programs: a value replaces the image's. Those that load code are risks.
OF_THE_IMAGE = frozenset({"PATH", "VIRTUAL_ENV"})
RESERVED = ("PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION")


def check_probe(probe: ProbeSettings) -> Iterator[Problem]:
    """Check the startup probe: threshold x period at most 1800 s with a GPU, delay and period at most 240 s."""
    period, failures = probe.period_seconds, probe.failure_threshold
    if period * failures > GPU_PROBE_WINDOW_SECONDS:
        enough = f", e.g. failure_threshold: {GPU_PROBE_WINDOW_SECONDS // period}"
        yield Problem(
            setting("probe"),
            f"period_seconds={period} with failure_threshold={failures}",
            f"it waits {period * failures} s; Cloud Run stops at {GPU_PROBE_WINDOW_SECONDS} s with a GPU and refuses "
            "it.",
            f"lower one of them{enough if period <= PROBE_PERIOD_SECONDS else ''}.",
        )
    limits = (
        (
            "initial_delay_seconds",
            PROBE_DELAY_SECONDS,
            f"Cloud Run refuses a startup probe that begins later than {PROBE_DELAY_SECONDS} s.",
            "failed probes cost nothing while the model loads",
        ),
        (
            "period_seconds",
            PROBE_PERIOD_SECONDS,
            f"Cloud Run refuses a period above {PROBE_PERIOD_SECONDS} s.",
            "e.g. 10",
        ),
        (
            "timeout_seconds",
            period,
            f"it is above period_seconds={period}; Cloud Run refuses such a probe.",
            "or raise the period",
        ),
    )
    yield from (
        Problem(setting(f"probe.{name}"), getattr(probe, name), consequence, f"set it to {limit} or less, {hint}.")
        for name, limit, consequence, hint in limits
        if getattr(probe, name) > limit
    )


def check_resources(resources: Resources, accelerator: Accelerator) -> Iterator[Problem]:
    """Check CPU, memory and startup CPU boost against the accelerator's minima and the platform's table."""
    cpu, memory = resources.cpu or accelerator.min_cpu, resources.memory
    key, min_cpu = setting("resources.cpu"), accelerator.min_cpu
    if cpu < min_cpu:
        consequence = f"Cloud Run refuses {accelerator.id} with fewer than {min_cpu} vCPUs."
        yield Problem(key, cpu, consequence, f"set it to {min_cpu}, or leave it out.")
    elif min_cpu <= max(MEMORY_OF_CPU) and cpu not in MEMORY_OF_CPU:
        sizes = ", ".join(str(size) for size in MEMORY_OF_CPU if size >= min_cpu)
        yield Problem(key, cpu, "Cloud Run offers no instance with this number of vCPUs.", f"choose one of {sizes}.")
    key, smallest = setting("resources.memory"), memory_text(accelerator.min_memory_gib)
    if memory is not None and memory < accelerator.min_memory_gib:
        consequence = f"Cloud Run refuses {accelerator.id} with less than {smallest}."
        yield Problem(key, memory_text(memory), consequence, f"set it to {smallest}, or leave it out.")
    elif memory is not None and memory > MEMORY_OF_CPU.get(cpu, memory):
        largest = memory_text(MEMORY_OF_CPU[cpu])
        enough = next((size for size, limit in MEMORY_OF_CPU.items() if limit >= memory), None)
        repair = f"set {setting('resources.cpu')} to {enough}." if enough else f"set it to {largest} or less."
        yield Problem(key, memory_text(memory), f"Cloud Run gives {cpu} vCPUs at most {largest}.", repair)
    if resources.cpu_boost and not boost_vcpus(accelerator, resources):
        consequence = f"an instance with {cpu} vCPUs gets no more while it starts: it would have no effect."
        yield Problem(setting("resources.cpu_boost"), True, consequence, "remove it.")


def boost_vcpus(accelerator: Accelerator, resources: Resources) -> int:
    """VCPUs that startup CPU boost adds to an instance while it starts; 0 without it."""
    cpu = resources.cpu or accelerator.min_cpu
    return max(0, BOOSTED_CPU - cpu) if resources.cpu_boost else 0


def check_region(region: str, accelerator: Accelerator, key: str = "region") -> Iterator[Problem]:
    """Check that the region offers the accelerator, to everyone or on invitation; `key` is the setting's."""
    offered = (*accelerator.regions, *accelerator.regions_on_invitation)
    if region not in offered:
        near = closest(region, offered, likeness=0.85)  # a typing error, not a neighbouring region
        yield Problem(
            setting(key),
            region,
            f"Cloud Run does not offer {accelerator.id} there.",
            (f"did you mean {near}? " if near else "")
            + f"choose one of {', '.join(accelerator.regions)}; "
            + f"on invitation also {', '.join(accelerator.regions_on_invitation)}.",
        )


def check_scaling(scaling: Scaling) -> Iterator[Problem]:
    """Refuse a minimum of instances above the maximum."""
    if scaling.min_instances > scaling.max_instances:
        yield Problem(
            setting("scaling.min_instances"),
            scaling.min_instances,
            f"it is above max_instances={scaling.max_instances}; Cloud Run refuses it.",
            f"{to_number('lower', 'scaling.min_instances', scaling.max_instances)}, or "
            f"{to_number('raise', 'scaling.max_instances', scaling.min_instances)}.",
        )


def check_access(access: Access) -> Iterator[Problem]:
    """Check that callers are IAM members; access for everyone needs its own setting."""
    for number, member in enumerate(access.invokers):
        key = setting(f"access.invokers.{number}")
        if member in ("allUsers", "allAuthenticatedUsers"):
            yield Problem(
                key,
                member,
                "it would open the service to everyone, and only this list would show it.",
                "name the callers" + ("." if access.keys else f", or write `{setting('access')}: {{public: true}}`."),
            )
        elif refusal := member_problem(member):
            yield Problem(key, member, *refusal)


def check_secrets(secrets: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[Problem]:
    """Check that secrets are names, never values, and that their variables belong to neither platform nor plan."""
    for variable, name in secrets.items():
        key = setting(f"secrets.{format_value(variable)}")
        if variable == API_KEY:
            yield refused_key(key)
            continue
        if why := _refused_variable(variable, environment):
            plain = f"write it under {setting('variables')} with its value, or " if variable.startswith("VLLM_") else ""
            yield Problem(key, variable, why, f"{plain}choose another variable, e.g. HF_TOKEN.")
        if not _SECRET_ID.fullmatch(name) or format_value(name) == NOT_SHOWN:
            yield Problem(
                key,
                NOT_SHOWN,
                "it is not the name of a secret; a value written here would be in the stack file and the state.",
                "put the value into Secret Manager (`bezel secret set NAME` asks for it) and write NAME here.",
            )


def _refused_variable(variable: str, environment: Mapping[str, str]) -> str | None:
    if variable in environment:
        return "the plan sets it itself."
    if not VARIABLE.fullmatch(variable) or variable in RESERVED:
        return "Cloud Run refuses such a variable."
    if variable in OF_THE_IMAGE:
        return "it replaces the image's own value, by which vLLM and its libraries are found: it may not start."
    if variable.startswith("VLLM_"):
        return (
            "it decides how vLLM runs, and no plan sees a secret's value; one that vLLM does not know ends the start."
        )
    return None


def check_labels(labels: Mapping[str, str]) -> Iterator[Problem]:
    """Check that labels are valid for Google Cloud, and none of those that mark a stack's own resources."""
    for key, value in labels.items():
        if is_own_label(key):
            if key.lower().startswith("goog"):
                consequence = "Google reserves this label, and refuses it or sets it itself."
                yield Problem(setting(f"labels.{key}"), value, consequence, "choose a key of your own, e.g. team.")
                continue
            change = f"set `{setting('environment')}`" if key.lower() == "environment" else "remove it"
            yield Problem(
                setting(f"labels.{key}"),
                value,
                "this label marks the owner of a resource: with another value, limits and clean-up of another stack "
                "would apply to it.",
                f"{change}, or choose a key of your own, e.g. `team: speech`.",
            )
        elif not (_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            yield Problem(
                setting(f"labels.{key}"),
                value,
                "Google Cloud refuses it: keys begin with a lower case letter, both have lower case letters, "
                "digits, hyphens and underscores only, at most 63.",
                "rewrite it, e.g. `team: speech`.",
            )


def check_label_count(labels: Mapping[str, str], all_labels: Mapping[str, str]) -> Iterator[Problem]:
    """Check the number of a resource's labels.

    Args:
        labels: of the stack file.
        all_labels: all labels of a resource, those of the stack file among them.
    """
    if len(all_labels) > MAX_LABELS:
        yield Problem(
            setting("labels"),
            f"{len(labels)} labels",
            f"with {len(all_labels) - len(labels)} of the stack's own a resource has more than its maximum of "
            f"{MAX_LABELS}.",
            f"remove {len(all_labels) - MAX_LABELS} of them.",
        )
