"""Limits of Cloud Run: probe windows, minima of the accelerator, regions, callers, secrets, labels.

Owns the platform's limits as rules over plain values. Leaves vLLM, memory and money to the modules beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.catalog import closest
from bezel.errors import NOT_SHOWN, Problem, shown
from bezel.planner.base.members import member_fault
from bezel.planner.base.names import is_own_label
from bezel.planner.base.problems import setting
from bezel.planner.vllm.option_checks import refused_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.catalog import Accelerator
    from bezel.planner.base.settings import Access, ProbeSettings, Resources, Scaling

GPU_PROBE_WINDOW_SECONDS = 1800
PROBE_DELAY_SECONDS = 240
PROBE_PERIOD_SECONDS = 240
BOOSTED_CPU = 8  # of startup CPU boost with four vCPUs or more (its table, November 2026)
# Cloud Run's table of the maximum memory for a number of vCPUs. Only an accelerator that needs more vCPUs than the
# table has gets more; that maximum is not known here.
MEMORY_OF_CPU = {1: 4, 2: 8, 4: 16, 6: 24, 8: 32}

_MEMORY = re.compile(r"(\d+)(Gi|Mi)")
_SECRET_ID = re.compile(r"[A-Za-z0-9_-]{1,255}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
API_KEY = "VLLM_API_KEY"
RESERVED = ("PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION")


def parse_memory(text: str) -> int | None:
    """GiB of a text such as `16Gi` or `16384Mi`; None for any other text, and for no whole number of GiB."""
    found = _MEMORY.fullmatch(text)
    if found is None:
        return None
    number = int(found[1])
    if found[2] == "Gi":
        return number
    return number // 1024 if number % 1024 == 0 else None


def probe_window(probe: ProbeSettings) -> int:
    """Seconds from the container's start until the startup probe gives up."""
    return probe.initial_delay_seconds + probe.period_seconds * probe.failure_threshold


def check_probe(probe: ProbeSettings) -> list[Problem]:
    """Check the startup probe: threshold x period at most 1800 s with a GPU, delay and period at most 240 s."""
    problems = []
    period, failures = probe.period_seconds, probe.failure_threshold
    window = period * failures
    if window > GPU_PROBE_WINDOW_SECONDS:
        problems.append(
            Problem(
                setting("probe"),
                f"period_seconds={period} with failure_threshold={failures}",
                f"it waits {window} s; Cloud Run stops at {GPU_PROBE_WINDOW_SECONDS} s with a GPU and refuses it.",
                "lower one of them"
                + (
                    f", e.g. failure_threshold: {GPU_PROBE_WINDOW_SECONDS // period}."
                    if period <= PROBE_PERIOD_SECONDS
                    else "."
                ),
            )
        )
    if probe.initial_delay_seconds > PROBE_DELAY_SECONDS:
        problems.append(
            Problem(
                setting("probe.initial_delay_seconds"),
                str(probe.initial_delay_seconds),
                f"Cloud Run refuses a startup probe that begins later than {PROBE_DELAY_SECONDS} s.",
                f"set it to {PROBE_DELAY_SECONDS} or less; failed probes cost nothing while the model loads.",
            )
        )
    if period > PROBE_PERIOD_SECONDS:
        problems.append(
            Problem(
                setting("probe.period_seconds"),
                str(period),
                f"Cloud Run refuses a period above {PROBE_PERIOD_SECONDS} s.",
                f"set it to {PROBE_PERIOD_SECONDS} or less, e.g. 10.",
            )
        )
    if probe.timeout_seconds > period:
        problems.append(
            Problem(
                setting("probe.timeout_seconds"),
                str(probe.timeout_seconds),
                f"it is above period_seconds={period}; Cloud Run refuses such a probe.",
                f"set it to {period} or less, or raise the period.",
            )
        )
    return problems


def check_resources(resources: Resources, accelerator: Accelerator) -> list[Problem]:
    """Check CPU and memory against the accelerator's minima and the platform's table."""
    problems = []
    cpu = accelerator.min_cpu if resources.cpu is None else resources.cpu
    if cpu < accelerator.min_cpu:
        problems.append(
            Problem(
                setting("resources.cpu"),
                str(cpu),
                f"Cloud Run refuses {accelerator.id} with fewer than {accelerator.min_cpu} vCPUs.",
                f"set it to {accelerator.min_cpu}, or leave it out.",
            )
        )
    elif accelerator.min_cpu <= max(MEMORY_OF_CPU) and cpu not in MEMORY_OF_CPU:
        problems.append(
            Problem(
                setting("resources.cpu"),
                str(cpu),
                "Cloud Run offers no instance with this number of vCPUs.",
                f"choose one of {', '.join(str(size) for size in MEMORY_OF_CPU if size >= accelerator.min_cpu)}.",
            )
        )
    if resources.memory is None:
        return problems
    memory = parse_memory(resources.memory)
    if memory is None:
        problems.append(
            Problem(
                setting("resources.memory"),
                shown(resources.memory),
                "it is no whole number of GiB.",
                f"write it as e.g. {accelerator.min_memory_gib}Gi.",
            )
        )
    elif memory < accelerator.min_memory_gib:
        problems.append(
            Problem(
                setting("resources.memory"),
                resources.memory,
                f"Cloud Run refuses {accelerator.id} with less than {accelerator.min_memory_gib}Gi.",
                f"set it to {accelerator.min_memory_gib}Gi, or leave it out.",
            )
        )
    elif memory > MEMORY_OF_CPU.get(cpu, memory):
        enough = next((size for size, most in MEMORY_OF_CPU.items() if most >= memory), None)
        problems.append(
            Problem(
                setting("resources.memory"),
                resources.memory,
                f"Cloud Run gives {cpu} vCPUs at most {MEMORY_OF_CPU[cpu]}Gi.",
                f"set {setting('resources.cpu')} to {enough}."
                if enough
                else f"set it to {MEMORY_OF_CPU[cpu]}Gi or less.",
            )
        )
    return problems


def boosted(accelerator: Accelerator, resources: Resources) -> int:
    """VCPUs that startup CPU boost adds to an instance while it starts; 0 without it."""
    cpu = accelerator.min_cpu if resources.cpu is None else resources.cpu
    return max(0, BOOSTED_CPU - cpu) if resources.cpu_boost else 0


def check_boost(resources: Resources, accelerator: Accelerator) -> list[Problem]:
    """Refuse startup CPU boost without effect: it raises four or six vCPUs to eight, larger instances not."""
    if not resources.cpu_boost or boosted(accelerator, resources):
        return []
    cpu = accelerator.min_cpu if resources.cpu is None else resources.cpu
    return [
        Problem(
            setting("resources.cpu_boost"),
            "true",
            f"an instance with {cpu} vCPUs gets no more while it starts: it would have no effect.",
            "remove it.",
        )
    ]


def check_region(region: str, accelerator: Accelerator) -> list[Problem]:
    """Check that the region offers the accelerator, to everyone or on invitation."""
    offered = (*accelerator.regions, *accelerator.regions_on_invitation)
    if region in offered:
        return []
    near = closest(region, offered, likeness=0.85)  # a typing error, not a neighbouring region
    return [
        Problem(
            setting("region"),
            shown(region),
            f"Cloud Run does not offer {accelerator.id} there.",
            (f"did you mean {near}? " if near else "")
            + f"choose one of {', '.join(accelerator.regions)}; "
            + f"on invitation also {', '.join(accelerator.regions_on_invitation)}.",
        )
    ]


def check_scaling(scaling: Scaling) -> list[Problem]:
    """Refuse a minimum of instances above the maximum."""
    if scaling.min_instances <= scaling.max_instances:
        return []
    return [
        Problem(
            setting("scaling.min_instances"),
            str(scaling.min_instances),
            f"it is above max_instances={scaling.max_instances}; Cloud Run refuses it.",
            f"set it to {scaling.max_instances} or less, or raise max_instances.",
        )
    ]


def check_access(access: Access) -> list[Problem]:
    """Check that callers are IAM members; access for everyone needs its own setting."""
    problems = []
    for number, member in enumerate(access.invokers):
        key = setting(f"access.invokers.{number}")
        if member in ("allUsers", "allAuthenticatedUsers"):
            problems.append(
                Problem(
                    key,
                    member,
                    "it would open the service to everyone with this list as the only sign of it.",
                    f"name the callers, or say so with `{setting('access')}: {{public: true}}`.",
                )
            )
        elif fault := member_fault(member):
            problems.append(Problem(key, shown(member), *fault))
    return problems


def check_secrets(secrets: Mapping[str, str], environment: Mapping[str, str]) -> list[Problem]:
    """Check that secrets are names, never values, and that their variables belong to neither platform nor plan."""
    problems = []
    for variable, name in secrets.items():
        key = setting(f"secrets.{shown(variable)}")
        if variable == API_KEY:
            problems.append(refused_key(key))
            continue
        why = _refused_variable(variable, environment)
        if why:
            plain = f"write it under {setting('variables')} with its value, or " if variable.startswith("VLLM_") else ""
            problems.append(Problem(key, shown(variable), why, f"{plain}choose another variable, e.g. HF_TOKEN."))
        if not _SECRET_ID.fullmatch(name) or shown(name) == NOT_SHOWN:
            problems.append(
                Problem(
                    key,
                    NOT_SHOWN,
                    "it is not the name of a secret; a value written here would lie in the stack file and the state.",
                    "put the value into Secret Manager "
                    "(`gcloud secrets create NAME --data-file=-`) and write NAME here.",
                )
            )
    return problems


def _refused_variable(variable: str, environment: Mapping[str, str]) -> str | None:
    if variable in environment:
        return "the plan sets it itself."
    if not VARIABLE.fullmatch(variable) or variable in RESERVED:
        return "Cloud Run refuses such a variable."
    if variable.startswith("VLLM_"):
        return "vLLM reads no secret from it, and exits on a VLLM_ variable that it does not know."
    return None


def check_labels(labels: Mapping[str, str]) -> list[Problem]:
    """Check that labels are valid for Google Cloud, and none of those that mark a stack's own resources."""
    problems = []
    for key, value in labels.items():
        where = setting(f"labels.{key}")
        if is_own_label(key):
            by = f"set `{setting('environment')}`" if key.lower() == "environment" else "remove it"
            problems.append(
                Problem(
                    where,
                    shown(value),
                    "this label says whose a resource is: with another value, limits and clean-up of another stack "
                    "would hold for it.",
                    f"{by}, or choose a key of your own, e.g. `team: speech`.",
                )
            )
        elif not (_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            problems.append(
                Problem(
                    where,
                    shown(value),
                    "Google Cloud refuses it: keys begin with a lower case letter, both hold lower case letters, "
                    "digits, hyphens and underscores only, at most 63.",
                    "rewrite it, e.g. `team: speech`.",
                )
            )
    return problems
