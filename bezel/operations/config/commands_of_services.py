"""Command `gcloud beta run deploy` that asks for the same service as a request to Cloud Run's API. Pure.

Source: reference of `gcloud beta run deploy`, 2026-11. What the command has no flag for is named.
"""

from collections.abc import Mapping
from typing import Any

from bezel.operations.config.flags import Flags, list_value, pairs

_INGRESS = {
    "INGRESS_TRAFFIC_ALL": "all",
    "INGRESS_TRAFFIC_INTERNAL_ONLY": "internal",
    "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER": "internal-and-cloud-load-balancing",
}
_GPU = "nvidia.com/gpu"
# What the command does by itself.
_LATEST = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}
_PROBES = ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold")


def service_command(body: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The command, and the paths that none of its flags sets.

    Args:
        body: A service in run v2's description, with its whole name.
    """
    flags = Flags(body)
    _, project, _, region, _, name = str(flags.take("name")).split("/")
    flags.add("--project", project)
    flags.add("--region", region)
    _container(flags)
    _revision(flags)
    if (ingress := flags.take("ingress")) is not None:
        flags.add("--ingress", _INGRESS.get(ingress, ingress))
    if labels := flags.take("labels"):
        flags.add("--labels", pairs(labels))
    # A caller needs an identity either way; who may call is granted to members by a policy.
    if flags.take("invokerIamDisabled"):
        flags.add("--no-invoker-iam-check")
    else:
        flags.add("--no-allow-unauthenticated")
    if body.get("traffic") == [_LATEST]:
        flags.take("traffic")
    return flags.command("gcloud", "beta", "run", "deploy", name), flags.leftover_paths()


def _container(flags: Flags) -> None:
    one = ("template", "containers", 0)
    flags.take(*one, "name")  # gcloud names the only container itself
    flags.move("--image", *one, "image")
    if (command := flags.take(*one, "command")) is not None:
        flags.add("--command", list_value(command))
    if (arguments := flags.take(*one, "args")) is not None:
        flags.add("--args", list_value(arguments))
    plain, secret = {}, {}
    for variable in flags.take(*one, "env") or ():
        source = (variable.get("valueSource") or {}).get("secretKeyRef")
        if source:
            secret[variable["name"]] = f"{source['secret']}:{source.get('version', 'latest')}"
        else:
            plain[variable["name"]] = variable.get("value", "")
    if plain:
        flags.add("--set-env-vars", pairs(plain))
    if secret:
        flags.add("--set-secrets", pairs(secret))
    flags.take(*one, "ports", 0, "name")  # http1, the default
    flags.move("--port", *one, "ports", 0, "containerPort")
    limits = (*one, "resources", "limits")
    flags.move("--cpu", *limits, "cpu")
    flags.move("--memory", *limits, "memory")
    flags.move("--gpu", *limits, _GPU)
    # In the API, the absence of `cpuIdle` is false: CPU is always allocated.
    flags.add("--cpu-throttling" if flags.take(*one, "resources", "cpuIdle") else "--no-cpu-throttling")
    flags.switch("cpu-boost", *one, "resources", "startupCpuBoost", default=False)
    for probe, flag in (("startupProbe", "--startup-probe"), ("livenessProbe", "--liveness-probe")):
        values = {f"httpGet.{key}": flags.take(*one, probe, "httpGet", key) for key in ("path", "port")}
        values["tcpSocket.port"] = flags.take(*one, probe, "tcpSocket", "port")
        values |= {key: flags.take(*one, probe, key) for key in _PROBES}
        if present := {key: value for key, value in values.items() if value is not None}:
            flags.add(flag, pairs(present))
    for mount in flags.take(*one, "volumeMounts") or ():
        flags.add("--add-volume-mount", pairs({"volume": mount["name"], "mount-path": mount["mountPath"]}))


def _revision(flags: Flags) -> None:
    one = "template"
    for volume in flags.take(one, "volumes") or ():
        bucket = volume["gcs"]
        values = {"name": volume["name"], "type": "cloud-storage", "bucket": bucket["bucket"]}
        if bucket.get("readOnly"):
            values["readonly"] = "true"
        if options := bucket.get("mountOptions"):
            values["mount-options"] = ";".join(options)
        flags.add("--add-volume", pairs(values))
    flags.move("--gpu-type", one, "nodeSelector", "accelerator")
    if (disabled := flags.take(one, "gpuZonalRedundancyDisabled")) is not None:
        flags.add("--no-gpu-zonal-redundancy" if disabled else "--gpu-zonal-redundancy")
    flags.move("--min-instances", one, "scaling", "minInstanceCount")
    flags.move("--max-instances", one, "scaling", "maxInstanceCount")
    flags.move("--min", "scaling", "minInstanceCount")
    flags.move("--max", "scaling", "maxInstanceCount")
    flags.move("--concurrency", one, "maxInstanceRequestConcurrency")
    flags.move("--timeout", one, "timeout")
    flags.move("--service-account", one, "serviceAccount")
    if (environment := flags.take(one, "executionEnvironment")) is not None:
        flags.add("--execution-environment", str(environment).removeprefix("EXECUTION_ENVIRONMENT_").lower())
    interface = (one, "vpcAccess", "networkInterfaces", 0)
    flags.move("--network", *interface, "network")
    flags.move("--subnet", *interface, "subnetwork")
    if tags := flags.take(*interface, "tags"):
        flags.add("--network-tags", list_value(tags))
    if (egress := flags.take(one, "vpcAccess", "egress")) is not None:
        flags.add("--vpc-egress", str(egress).lower().replace("_", "-"))
