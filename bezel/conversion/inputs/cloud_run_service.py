"""Reader of a Cloud Run service in run v2's description, as the API answers.

Source: discovery document of run v2, 2026-11. Leaves the form that gcloud describes to `knative_service`. Pure.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bezel.conversion.inputs.found_server import FoundServer, Mount, remark
from bezel_base.errors import Problem, UserError
from bezel_base.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Mapping

FORM = "Cloud Run service"
NAME = re.compile(r"projects/([^/]+)/locations/([^/]+)/services/([^/]+)")
_GPU = "nvidia.com/gpu"
_INGRESS = {
    "INGRESS_TRAFFIC_ALL": "all",
    "INGRESS_TRAFFIC_INTERNAL_ONLY": "internal",
    "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER": "internal-and-cloud-load-balancing",
}
# What the platform adds to its answers, and what holds of every service of a stack.
_OUTPUTS = (
    *("uid", "generation", "createTime", "updateTime", "creator", "lastModifier", "client", "clientVersion", "etag"),
    *("conditions", "terminalCondition", "uri", "urls", "trafficStatuses", "latestReadyRevision", "annotations"),
    *("latestCreatedRevision", "observedGeneration", "reconciling", "launchStage", "deleteTime", "expireTime"),
    *("satisfiesPzs", "description", "defaultUriDisabled"),
)
_OF_TEMPLATE = ("annotations", "labels", "revision", "executionEnvironment", "healthCheckDisabled")
_LATEST = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
_PROBE = ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold")


def read_service(document: Mapping[str, Any], members: Mapping[str, list[str]] | None = None) -> FoundServer:
    """The server that a service runs.

    Args:
        document: The service.
        members: Its IAM policy, by role; None where it was not read.

    Raises:
        UserError: It has no container.
    """
    fields = Fields(document)
    match = NAME.fullmatch(name := fields.text("name"))
    server = FoundServer(form=FORM, on_cloud_run=True, name=match[3] if match else name.rpartition("/")[2])
    if match:
        server.project, server.region = match[1], match[2]
    for output in _OUTPUTS:
        fields.take(output)
    for output in _OF_TEMPLATE:
        fields.take("template", output)
    _read_traffic(server, fields)
    server.ingress = _INGRESS.get(ingress := fields.text("ingress"), ingress)
    server.labels = fields.mapping("labels")
    if fields.take("invokerIamDisabled"):
        server.public = True
    _read_revision(server, fields)
    _read_containers(server, fields, _volumes(server, fields))
    _read_members(server, members)
    for path, value in fields.leftovers():
        if value not in (None, "", False):  # as left out
            server.leave(path, value, "no setting of a stack file says it.")
    return server


def _read_traffic(server: FoundServer, fields: Fields) -> None:
    targets = [target for target in fields.maps("traffic") if target.get("percent")]
    if any(target.get("type") != _LATEST for target in targets):
        shares = ", ".join(f"{target.get('revision', 'latest')} {target['percent']} %" for target in targets)
        reason = "a deploy sends all traffic to the newest revision."
        server.remarks.append(remark("changes", "traffic", shares, reason))


def _read_revision(server: FoundServer, fields: Fields) -> None:
    one = "template"
    for name, key in (("min_instances", "minInstanceCount"), ("max_instances", "maxInstanceCount")):
        of_revision, of_service = fields.number(one, "scaling", key), fields.number("scaling", key)
        setattr(server, name, of_revision if of_service is None else of_service)
    if (manual := fields.number("scaling", "manualInstanceCount")) is not None:
        server.min_instances = server.max_instances = manual
        server.leave("scaling.manualInstanceCount", manual, "the number of a stack's instances follows its requests.")
    fields.take("scaling", "scalingMode")
    server.concurrency = fields.number(one, "maxInstanceRequestConcurrency")
    server.timeout = fields.text(one, "timeout")
    server.account = fields.text(one, "serviceAccount")
    server.gpu_type = fields.text(one, "nodeSelector", "accelerator")
    disabled = fields.take(one, "gpuZonalRedundancyDisabled")
    server.zonal_redundancy = not disabled if server.gpu_type else None
    interface = (one, "vpcAccess", "networkInterfaces", 0)
    server.network, server.subnetwork = fields.text(*interface, "network"), fields.text(*interface, "subnetwork")
    server.tags = tuple(fields.texts(*interface, "tags"))
    server.egress = fields.text(one, "vpcAccess", "egress").lower().replace("_", "-")


def _volumes(server: FoundServer, fields: Fields) -> dict[str, Mount]:
    volumes = {}
    for volume in fields.maps("template", "volumes"):
        name, bucket = str(volume.get("name", "")), volume.get("gcs")
        if not isinstance(bucket, dict):
            kind = next((key for key in volume if key != "name"), "")
            server.leave(f"template.volumes.{name}", kind, "a stack mounts its bucket of weights alone.")
            continue
        options = tuple(map(str, bucket.get("mountOptions") or ()))
        volumes[name] = Mount(str(bucket.get("bucket", "")), "", options, bool(bucket.get("readOnly")))
    return volumes


def _read_containers(server: FoundServer, fields: Fields, volumes: dict[str, Mount]) -> None:
    containers = fields.maps("template", "containers")
    if not containers:
        consequence = "it has no container, so what it serves is not known."
        raise UserError(Problem("template.containers", None, consequence, "give a whole service, as the API answers."))
    chosen = next((each for each in containers if each.get("ports")), containers[0])
    for each in containers:
        if each is not chosen:
            name = each.get("name") or each.get("image")
            collects = "/cloud-run-gmp-sidecar" in str(each.get("image"))
            repair = "set `observability.metrics: true`." if collects else "deploy it as a service of its own."
            server.leave("template.containers", name, "a stack's service has one container.", repair)
    container = Fields(chosen)
    container.take("name")
    container.take("buildInfo")
    server.image = container.text("image")
    server.tokens = (*container.texts("command"), *container.texts("args"))
    _read_variables(server, container)
    container.take("ports", 0, "name")
    server.port = container.text("ports", 0, "containerPort")
    limits = ("resources", "limits")
    server.cpu, server.memory = container.text(*limits, "cpu"), container.text(*limits, "memory")
    server.gpus = container.number(*limits, _GPU)
    container.take("resources", "cpuIdle")
    server.cpu_boost = bool(container.take("resources", "startupCpuBoost"))
    server.probe, server.liveness = _probe(container, "startupProbe"), _probe(container, "livenessProbe")
    server.mounts = tuple(
        replace(mount, path=str(each.get("mountPath", "")))
        for each in container.maps("volumeMounts")
        if (mount := volumes.get(str(each.get("name"))))
    )
    for path, value in container.leftovers():
        server.leave(f"template.containers.{path}", value, "no setting of a stack file says it.")


def _read_variables(server: FoundServer, container: Fields) -> None:
    for variable in container.maps("env"):
        name, source = str(variable.get("name", "")), variable.get("valueSource")
        reference = source.get("secretKeyRef") if isinstance(source, dict) else None
        if isinstance(reference, dict):
            secret = str(reference.get("secret", "")).rpartition("/")[2]
            server.secrets[name] = (secret, str(reference.get("version", "latest")))
        else:
            server.variables[name] = str(variable.get("value", ""))


def _probe(container: Fields, name: str) -> dict[str, str]:
    values = {f"httpGet.{key}": container.text(name, "httpGet", key) for key in ("path", "port")}
    values["tcpSocket.port"] = container.text(name, "tcpSocket", "port")
    values |= {key: container.text(name, key) for key in _PROBE}
    return {key: value for key, value in values.items() if value}


def _read_members(server: FoundServer, members: Mapping[str, list[str]] | None) -> None:
    if members is None:
        return
    everyone = {"allUsers", "allAuthenticatedUsers"}
    invokers = members.get("roles/run.invoker", [])
    server.public = bool(server.public or everyone.intersection(invokers))
    server.invokers = tuple(sorted(set(invokers) - everyone))
    for role in sorted(set(members) - {"roles/run.invoker"}):
        reason = "a stack grants its callers alone; the grant stays as it is."
        server.leave(f"IAM policy, {role}", ", ".join(members[role]), reason)
