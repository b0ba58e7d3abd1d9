"""Hardware, scaling, probe, callers and network of a found server -> the settings of a stack file. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bezel.conversion.inputs.found_server import Remark, remark
from bezel.planner.base.deployment import HEALTH_PATH, LIVENESS
from bezel.planner.base.names import ACCOUNT_LENGTH, is_own_label, resource_name
from bezel.planner.base.settings import ProbeSettings, Scaling
from bezel_base.text.redaction import is_secret
from bezel_catalog.option_values import as_float, as_int
from bezel_catalog.quantities import memory_text, parse_duration

if TYPE_CHECKING:
    from bezel.conversion.inputs.found_server import FoundServer
    from bezel_catalog import Accelerator

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([EPTGMKk]i?|)")
_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_PROBE = {
    "initialDelaySeconds": "initial_delay_seconds",
    "periodSeconds": "period_seconds",
    "timeoutSeconds": "timeout_seconds",
    "failureThreshold": "failure_threshold",
}
# Cloud Run's own values for what a service leaves out; the reference of run v2, 2026-11.
_PLATFORM_PROBE = {"initialDelaySeconds": 0, "periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3}
_PLATFORM_TIMEOUT, _PLATFORM_CONCURRENCY = 300, 80
_DEFAULT_ACCOUNT = re.compile(r"\d+-compute@developer\.gserviceaccount\.com")


def gib_of(text: str) -> float | None:
    """GiB of an amount such as `16Gi`, `32G`, `17179869184`; None for any other text."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or match[2] not in _UNITS:
        return None
    return float(match[1]) * _UNITS[match[2]] / 2**30


def vcpus_of(text: str) -> int | None:
    """Whole vCPUs of `4`, `4.0` or `4000m`; None for any other text."""
    milli = text.strip().removesuffix("m")
    number = as_float(milli)
    if number is None:
        return None
    number = number / 1000 if text.strip().endswith("m") else number
    return int(number) if number.is_integer() else None


def resource_settings(server: FoundServer, gpu: Accelerator | None, remarks: list[Remark]) -> dict[str, Any]:
    """`bezel:resources`: what differs from the accelerator's minimum."""
    settings: dict[str, Any] = {}
    cpu, gib = vcpus_of(server.cpu), gib_of(server.memory)
    if server.cpu and cpu is None:
        remarks.append(remark("not converted", "cpu", server.cpu, "expected a whole number of vCPUs.", ""))
    elif cpu and not (gpu and cpu == gpu.min_cpu):
        settings["cpu"] = cpu
    if server.memory and gib is None:
        remarks.append(remark("not converted", "memory", server.memory, "expected an amount of memory, e.g. 16Gi.", ""))
    elif gib:
        whole = -int(-gib // 1)
        if whole != gib:
            remarks.append(remark("changes", "memory", server.memory, f"a stack has whole GiB: {memory_text(whole)}."))
        if not (gpu and whole == gpu.min_memory_gib):
            settings["memory"] = memory_text(whole)
    if server.cpu_boost:
        settings["cpu_boost"] = True
    return settings


def scaling_settings(server: FoundServer, remarks: list[Remark]) -> dict[str, Any]:
    """`bezel:scaling`: what differs from the defaults."""
    settings: dict[str, Any] = {"min_instances": server.min_instances} if server.min_instances else {}
    if server.max_instances is None:
        _assume(server, remarks, "max_instances", 1, "the input sets no maximum, and each instance needs a GPU.")
    elif server.max_instances != Scaling.model_fields["max_instances"].default:
        settings["max_instances"] = server.max_instances
    if server.concurrency is not None:
        settings["request_concurrency"] = server.concurrency
    else:
        reason = f"the input does not set it, which is {_PLATFORM_CONCURRENCY} on Cloud Run."
        _assume(server, remarks, "request_concurrency", "twice max-num-seqs", reason)
    if (seconds := _timeout(server, remarks)) is not None:
        settings["request_timeout_seconds"] = seconds
    if server.zonal_redundancy or (server.gpu_type and server.zonal_redundancy is None):
        settings["zonal_redundancy"] = True
        if server.zonal_redundancy is None:
            reason = "the input does not say it, and Cloud Run reserves GPUs in another zone then, at a higher price."
            remarks.append(remark("assumed", "bezel:scaling.zonal_redundancy", "true", reason, "remove it to save."))
    return settings


def _timeout(server: FoundServer, remarks: list[Remark]) -> int | None:
    """Seconds of a request's limit; None where they are a stack's default, or unknown."""
    longest = Scaling.model_fields["request_timeout_seconds"].default
    if not server.timeout:
        reason = f"the input does not set it, which is {_PLATFORM_TIMEOUT} on Cloud Run: it would cut long responses."
        _assume(server, remarks, "request_timeout_seconds", longest, reason)
        return None
    seconds = as_int(server.timeout) if server.timeout.isdecimal() else parse_duration(server.timeout)
    if seconds is None:
        remarks.append(remark("not converted", "timeout", server.timeout, "expected a duration.", "write e.g. 300."))
    return None if seconds == longest else seconds


def _assume(server: FoundServer, remarks: list[Remark], name: str, value: object, reason: str) -> None:
    """Note an assumption about scaling, which only a service of Cloud Run has."""
    if server.on_cloud_run:
        remarks.append(remark("assumed", f"bezel:scaling.{name}", value, reason))


def probe_settings(server: FoundServer, remarks: list[Remark]) -> dict[str, Any]:
    """`bezel:probe`: what differs from the defaults. The input's own values where it has a probe."""
    _note_liveness(server, remarks)
    if not server.probe:
        if server.on_cloud_run:
            reason = f"the input has none: Cloud Run waits for the port alone; a stack asks for {HEALTH_PATH}."
            remarks.append(Remark("changes", "startup probe", "", reason))
        return {}
    settings: dict[str, Any] = {}
    path = server.probe.get("httpGet.path", "")
    if not (path or "httpGet.port" in server.probe):
        settings["kind"] = "tcp"
    elif path != HEALTH_PATH:
        reason = f"a stack asks for {HEALTH_PATH}, which answers once the model is loaded."
        remarks.append(remark("changes", "startup probe", path or "/", reason))
    for key, name in _PROBE.items():
        written = as_int(server.probe.get(key, _PLATFORM_PROBE[key]))
        if written is None:
            remarks.append(remark("not converted", f"startup probe, {key}", server.probe[key], "expected a number."))
        elif written != ProbeSettings.model_fields[name].default:
            settings[name] = written
    return settings


def _note_liveness(server: FoundServer, remarks: list[Remark]) -> None:
    planned = {key: str(LIVENESS[name]) for key, name in _PROBE.items()}
    differs = {key: value for key, value in server.liveness.items() if key in planned and value != planned[key]}
    if differs:
        texts = ", ".join(f"{key} {value}" for key, value in differs.items())
        reason = "a stack's liveness probe is the same for each: every 60 s, three failures."
        remarks.append(remark("changes", "liveness probe", texts, reason))


def access_settings(server: FoundServer) -> dict[str, Any]:
    """`bezel:access`: who may call it, and from where."""
    settings: dict[str, Any] = {}
    if server.invokers:
        settings["invokers"] = list(server.invokers)
    if server.public:
        settings["public"] = True
    if server.ingress and server.ingress != "all":
        settings["ingress"] = server.ingress
    return settings


def vpc_settings(server: FoundServer) -> dict[str, Any]:
    """`bezel:vpc`: the network that it sends through."""
    named = {"network": server.network, "subnetwork": server.subnetwork}
    settings: dict[str, Any] = {name: value for name, value in named.items() if value}
    if settings and server.egress == "all-traffic":
        settings["egress"] = server.egress
    if settings and server.tags:
        settings["tags"] = list(server.tags)
    return settings


def label_settings(server: FoundServer, chosen: str, remarks: list[Remark]) -> tuple[dict[str, str], str]:
    """`bezel:labels` without those that a stack sets itself, and the environment that one of those names.

    Args:
        server: What is converted.
        chosen: The environment where no label names one; "" for dev.
        remarks: Where a remark is added.
    """
    labels = {key: value for key, value in server.labels.items() if not is_own_label(key)}
    for key in [key for key, value in labels.items() if is_secret(key, value)]:
        del labels[key]
        remarks.append(remark("not converted", f"label {key}", None, "its value may be a secret.", hidden=True))
    environment = server.labels.get("environment", "")
    if environment in ("dev", "prod"):
        return labels, environment
    if chosen not in ("", "dev"):
        reason = "the input does not say it, and the limits of dev allow less; the service is protected from deletion."
        remarks.append(remark("assumed", "bezel:environment", chosen, reason))
    elif server.on_cloud_run:
        reason = "the input does not say it: nothing protects the service from deletion, as prod does."
        remarks.append(remark("assumed", "bezel:environment", "dev", reason, "for prod write bezel:environment: prod."))
    return labels, ""


def note_account(server: FoundServer, stack: str, remarks: list[Remark]) -> None:
    """Say that the server will run as the stack's own account."""
    planned = resource_name(stack, length=ACCOUNT_LENGTH)
    if not server.on_cloud_run or server.account.partition("@")[0] == planned:
        return
    account = server.account or "the project's default account"
    reason = f"a stack's server runs as an account of its own, {planned}, which may read its bucket and its secrets."
    repair = "" if not server.account or _DEFAULT_ACCOUNT.fullmatch(account) else "grant it what else it needs."
    remarks.append(remark("changes", "service account", account, reason, repair))
