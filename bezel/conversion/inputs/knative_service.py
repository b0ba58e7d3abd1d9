"""Cloud Run service in Knative's form, as `gcloud run services describe` and `replace` have it, into run v2's.

Source: reference of `run.googleapis.com/v1` and its annotations, 2026-11. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_base.json_documents import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

_RUN, _SCALE = "run.googleapis.com/", "autoscaling.knative.dev/"
_INGRESS = {
    "all": "INGRESS_TRAFFIC_ALL",
    "internal": "INGRESS_TRAFFIC_INTERNAL_ONLY",
    "internal-and-cloud-load-balancing": "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER",
}
_BUCKETS = "gcsfuse.run.googleapis.com"
# Annotations and labels that the platform sets, or that say nothing about what is served.
_PLATFORM = ("serving.knative.dev/", "client.knative.dev/", "cloud.googleapis.com/", _RUN, _SCALE)


def is_knative(document: Mapping[str, Any]) -> bool:
    """Whether a document is a service in Knative's form."""
    return str(document.get("apiVersion", "")).startswith("serving.knative.dev/") and document.get("kind") == "Service"


def as_run_service(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same service in run v2's description; an empty part for whatever is no map or list."""
    metadata, spec = _map(document, "metadata"), _map(document, "spec")
    template = _map(spec, "template")
    revision, annotations = _map(template, "spec"), _map(_map(template, "metadata"), "annotations")
    service_annotations, labels = _map(metadata, "annotations"), _map(metadata, "labels")
    name, region = metadata.get("name", ""), labels.get("cloud.googleapis.com/location", "")
    project = metadata.get("namespace", "")
    made: dict[str, Any] = {
        "name": f"projects/{project}/locations/{region}/services/{name}" if project and region else name,
        "labels": {key: value for key, value in labels.items() if not key.startswith(_PLATFORM)},
        "ingress": _INGRESS.get(str(service_annotations.get(f"{_RUN}ingress", "")), ""),
        "invokerIamDisabled": service_annotations.get(f"{_RUN}invoker-iam-disabled") == "true",
        "scaling": {
            "minInstanceCount": service_annotations.get(f"{_RUN}minScale"),
            "maxInstanceCount": service_annotations.get(f"{_RUN}maxScale"),
        },
        "template": {
            "scaling": {
                "minInstanceCount": annotations.get(f"{_SCALE}minScale"),
                "maxInstanceCount": annotations.get(f"{_SCALE}maxScale"),
            },
            "maxInstanceRequestConcurrency": revision.get("containerConcurrency"),
            "timeout": f"{revision['timeoutSeconds']}s" if revision.get("timeoutSeconds") else "",
            "serviceAccount": revision.get("serviceAccountName", ""),
            "nodeSelector": {"accelerator": _map(revision, "nodeSelector").get(f"{_RUN}accelerator", "")},
            "gpuZonalRedundancyDisabled": annotations.get(f"{_RUN}gpu-zonal-redundancy-disabled") == "true",
            "vpcAccess": _network(annotations),
            "containers": [_container(each, annotations) for each in _maps(revision, "containers")],
            "volumes": [_volume(each) for each in _maps(revision, "volumes")],
        },
        "traffic": [_target(each) for each in _maps(spec, "traffic")],
    }
    return made


def _map(inside: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = inside.get(key)
    return value if isinstance(value, dict) else {}


def _maps(inside: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = inside.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _network(annotations: Mapping[str, Any]) -> dict[str, Any]:
    text = str(annotations.get(f"{_RUN}network-interfaces", ""))
    try:
        interfaces = read_json(text) if text else []
    except ValueError:
        interfaces = []
    egress = str(annotations.get(f"{_RUN}vpc-access-egress", ""))
    first = interfaces[0] if isinstance(interfaces, list) and interfaces and isinstance(interfaces[0], dict) else None
    access: dict[str, Any] = {"egress": egress.upper().replace("-", "_")} if egress else {}
    return access | ({"networkInterfaces": [first]} if first else {})


def _container(container: Mapping[str, Any], annotations: Mapping[str, Any]) -> dict[str, Any]:
    boost = annotations.get(f"{_RUN}startup-cpu-boost") == "true"
    resources = {**_map(container, "resources")}
    resources.pop("requests", None)
    made = {**container, "resources": {**resources, "startupCpuBoost": boost}}
    made["env"] = [_variable(each) for each in _maps(container, "env")]
    return made


def _variable(variable: Mapping[str, Any]) -> dict[str, Any]:
    reference = _map(_map(variable, "valueFrom"), "secretKeyRef")
    if not reference:
        return {"name": variable.get("name", ""), "value": variable.get("value", "")}
    secret = {"secret": reference.get("name", ""), "version": reference.get("key", "latest")}
    return {"name": variable.get("name", ""), "valueSource": {"secretKeyRef": secret}}


def _volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    driver = _map(volume, "csi")
    if driver.get("driver") != _BUCKETS:
        return dict(volume)
    attributes = _map(driver, "volumeAttributes")
    options = str(attributes.get("mountOptions", ""))
    bucket = {
        "bucket": attributes.get("bucketName", ""),
        "readOnly": bool(driver.get("readOnly")),
        "mountOptions": [option for option in options.replace(";", ",").split(",") if option],
    }
    return {"name": volume.get("name", ""), "gcs": bucket}


def _target(target: Mapping[str, Any]) -> dict[str, Any]:
    kind = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST" if target.get("latestRevision") else ""
    return {"type": kind, "percent": target.get("percent", 0), "revision": target.get("revisionName", "latest")}
