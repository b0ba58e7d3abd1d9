"""Requests of the golden wire log as methods of Google's discovery documents, and what these do not know of them."""

import functools
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from pulumi_offline_support.discovery import discovery
from pulumi_offline_support.programs import GOLDEN

LOG: dict[str, dict[str, list[dict[str, Any]]]] = {
    token: {name: part for name, part in life.items() if name != "state"}
    for token, life in json.loads(GOLDEN.read_text()).items()
}
DOCUMENTS = {
    "/artifactregistry/v1/": "artifactregistry.v1",
    "/billingbudgets/v1/": "billingbudgets.v1",
    "/cloudkms/v1/": "cloudkms.v1",
    "/cloudscheduler/v1/": "cloudscheduler.v1",
    "/compute/v1/": "compute.v1",
    "/certificatemanager/v1/": "certificatemanager.v1",
    "/dns/v1/": "dns.v1",
    "/crm/v1/": "cloudresourcemanager.v1",
    "/iam/v1/": "iam.v1",
    "/logging/v2/": "logging.v2",
    "/monitoring/v1/": "monitoring.v1",
    "/monitoring/v3/": "monitoring.v3",
    "/run/v2/": "run.v2",
    "/secretmanager/v1/": "secretmanager.v1",
    "/serviceusage/v1/": "serviceusage.v1",
    "/serviceusage/v1beta1/": "serviceusage.v1beta1",
    "/storage/v1/": "storage.v1",
    "/upload/storage/v1/": "storage.v1",
}
# (request, what is odd) -> why it is sent nevertheless
ODD: dict[tuple[str, str], str] = {
    (
        "POST /compute/v1/projects/bezel-local/global/targetHttpsProxies/https/setQuicOverride",
        "no serverTlsPolicy in the body",
    ): "a null that the published provider puts into every call of a proxy, as recorded",
    (
        "POST /compute/v1/projects/bezel-local/regions/us-central1/networkEndpointGroups",
        "no serverlessDeployment in the body",
    ): "a null that the published provider sends, of the beta's document, as recorded",
    (
        "POST /artifactregistry/v1/projects/bezel-local/locations/us-central1/repositories",
        "no parameter repository_id",
    ): "the document has repositoryId; a field may be named either way (proto3 JSON)",
    (
        "GET /storage/v1/b/models/anywhereCaches/",
        "no such method",
    ): "the document has no slash at the end",
}


@functools.cache
def methods(name: str) -> list[tuple[str, re.Pattern[str], dict[str, Any]]]:
    """(HTTP method, pattern of the path below the version, method) of a document."""
    document = json.loads(
        files("googleapiclient").joinpath(f"discovery_cache/documents/{name}.json").read_text("utf-8")
    )
    common = {key: dict(value) for key, value in document["parameters"].items()}
    rows = []

    def walk(resource: dict[str, Any]) -> None:
        for method in resource.get("methods", {}).values():
            path = re.sub(r"^(?:dns/)?v\d\w*/", "", method.get("flatPath", method["path"]))
            pattern = re.sub(r"{[^}]+}", "[^/:]+", re.sub(r"([.+])", r"\\\1", path))
            rows.append(
                (method["httpMethod"], re.compile(pattern), {**method, "known": common | method.get("parameters", {})})
            )
        for inner in resource.get("resources", {}).values():
            walk(inner)

    walk(document)
    return rows


def strangers(body: Any, schema: dict[str, Any], document: str, path: str = "") -> Iterator[str]:
    """Keys of a body that its schema does not have."""
    if "$ref" in schema:
        schema = discovery(document)[schema["$ref"]]
    if isinstance(body, list):
        for item in body:
            yield from strangers(item, schema.get("items", {}), document, path)
    elif isinstance(body, dict):
        for key, value in body.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if inner is None:
                yield f"no {path}{key} in the body"
            else:
                yield from strangers(value, inner, document, f"{path}{key}.")


def odd(request: dict[str, Any]) -> list[str]:
    """What of a request the documents do not know."""
    verb, _, path = request["request"].partition(" ")
    prefix = max((prefix for prefix in DOCUMENTS if path.startswith(prefix)), key=len)
    document = DOCUMENTS[prefix]
    # The log has names of objects as they are; on the wire they are one segment of the path.
    below = re.sub(r"(?<=/o/).+", lambda name: quote(name[0], safe=""), path.removeprefix(prefix))
    fitting = [method for name, pattern, method in methods(document) if name == verb and pattern.fullmatch(below)]
    if not fitting:
        return ["no such method"]
    method = fitting[0]
    oddities = [f"no parameter {name}" for name in request["query"] if name not in method["known"]]
    body = request.get("body")
    if isinstance(body, dict):
        oddities += strangers(body, method.get("request", {}), document)
    return oddities


def requests(token: str) -> list[dict[str, Any]]:
    return [request for part in LOG[token].values() for request in part]
