"""Copy of Google's discovery documents for localcloud: `python -m tools.traffic.discovery_data` writes the files.

The documents are part of google-api-python-client, which only a developer installs; localcloud needs the messages that
callers send and the list of methods at run time. Owns the trimming and its notation. Leaves out the checks themselves
(packages/localcloud/bezel_localcloud/http/messages.py and methods.py).

Notation of a field or a query parameter: "string", "bool", "int32", "int64", "uint32", "uint64", "double", "bytes",
"timestamp", "duration", "mask", "any", "enum:A|B", "@Message"; "[]" before it is a list, "{}" a map, and "!" is output
only: it may be sent and means nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import tools.package_tests  # noqa: F401 - it finds the helpers
from localcloud_support.discovery_documents import (
    DOCUMENTS,
    SOURCES,
    Json,
    Source,
    all_versions,
    document,
    methods_of,
    path_of,
    upload_paths,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).parents[2] / "packages" / "localcloud" / "bezel_localcloud" / "data"
# APIs whose responses hold names of enum values only, as their clients expect: they are older than `$alt`.
WITHOUT_NUMBERS = frozenset({"compute", "dns", "dns2", "storage"})
# APIs that have no discovery document, or none under this name. Source: `gcloud services list --available`.
_WITHOUT_DOCUMENT = {
    "autoscaling.googleapis.com": "Cloud Autoscaling API",
    "bigquerystorage.googleapis.com": "BigQuery Storage API",
    "cloudapis.googleapis.com": "Google Cloud APIs",
    "cloudquotas.googleapis.com": "Cloud Quotas API",
    "containerfilesystem.googleapis.com": "Container File System API",
    "containerscanning.googleapis.com": "Container Scanning API",
    "source.googleapis.com": "Cloud Source Repositories API",
    "sql-component.googleapis.com": "Cloud SQL",
    "storage-api.googleapis.com": "Google Cloud Storage JSON API",
    "storage-component.googleapis.com": "Cloud Storage",
    "telemetry.googleapis.com": "Telemetry API",
}
# Fields that no document has and the published provider sends all the same, with a value that is not empty: Google
# takes them. Source: google-beta services/compute/resource_compute_network.go (expandComputeNetworkRoutingConfig) and
# services/cloudrunv2/resource_cloud_run_v2_service.go (expandCloudRunV2ServiceTemplateContainersContainers
# ReadinessProbe; expandCloudRunV2ServiceTags). Prometheus's HTTP API has `match[]` in place of `match`.
_UNDOCUMENTED = {
    "compute.NetworkRoutingConfig": {"deleteBgpAlwaysCompareMed": "bool"},
    "dashboards.QuerySeriesRequest": {"match": "[]string"},
    "run.GoogleCloudRunV2Probe": {"successThreshold": "int32"},
    "run.GoogleCloudRunV2Service": {"tags": "{}string"},
}
# Results of operations, by API: messages that no method returns itself.
_RESULTS = {
    "certificatemanager": ("Certificate", "CertificateMap", "CertificateMapEntry", "DnsAuthorization"),
    "iam": ("WorkloadIdentityPool", "WorkloadIdentityPoolProvider"),
    "run": ("GoogleCloudRunV2Service", "GoogleCloudRunV2Job", "GoogleCloudRunV2Execution", "GoogleCloudRunV2Revision"),
    "artifactregistry": ("Repository",),
    "serviceusage": ("EnableServiceResponse", "DisableServiceResponse", "BatchEnableServicesResponse"),
    "tpu": ("QueuedResource", "Node"),
    "tpu2": ("QueuedResource", "Node"),
}


def served_methods() -> Json:
    """The content of methods.json: the served methods, and the APIs by the beginnings of their paths."""
    served: list[Json] = []
    services: Json = {}
    for source in SOURCES:
        definitions = document(source.document)
        services[source.prefix.split("/")[1]] = urlsplit(definitions["rootUrl"]).hostname
        served += [_method(source, m, definitions) for m in methods_of(definitions) if m["id"] in source.serves]
    return {"source": _source_text(), "services": dict(sorted(services.items())), "served": served}


def other_methods() -> Json:
    """The content of other_methods.json: of every version of the served APIs, the methods that are not served."""
    served = {f"{method['http']} {method['path']}" for method in served_methods()["served"]}
    others: Json = {}
    for source in all_versions():
        for method in methods_of(document(source.document)):
            line = f"{method['httpMethod']} {path_of(source, method)}"
            if line not in served:
                for each in (line, *_upload_lines(source, method)):
                    others.setdefault(each, method["id"])
    return {"source": _source_text(all_versions()), "others": dict(sorted(others.items()))}


def request_messages() -> Json:
    """The content of messages.json: the messages in requests of the served methods."""
    messages: dict[str, dict[str, str]] = {}
    for source in SOURCES:
        definitions = document(source.document)
        roots = [m["request"]["$ref"] for m in methods_of(definitions) if m["id"] in source.serves and "request" in m]
        messages |= condense(definitions, roots, source.api)
    for name, fields in _UNDOCUMENTED.items():
        messages[name] = dict(sorted((messages[name] | fields).items()))
    return {"source": _source_text(), "messages": messages}


def response_messages() -> Json:
    """The content of responses.json: of each message in responses, the fields that are enum values or lead to some."""
    messages: dict[str, dict[str, str]] = {}
    for source in SOURCES:
        if source.api in WITHOUT_NUMBERS:
            continue
        definitions = document(source.document)
        roots = [m["response"]["$ref"] for m in methods_of(definitions) if m["id"] in source.serves and "response" in m]
        # The results of operations are messages of the methods' own services: each may be one.
        roots += [name for name in definitions["schemas"] if name in _RESULTS.get(source.api, ())]
        messages |= condense(definitions, roots, source.api)
    return {"source": _source_text(), "messages": _with_enums(messages)}


def services() -> Json:
    """The content of services.json: the APIs that a project can enable, with their titles."""
    titles = dict(_WITHOUT_DOCUMENT)
    for path in sorted(DOCUMENTS.glob("*.json")):
        definitions = json.loads(path.read_text())
        host = urlsplit(definitions.get("rootUrl", "")).hostname or ""
        if host.endswith(".googleapis.com") and host != "www.googleapis.com":
            titles[host] = definitions["title"]
    return {"source": "discovery documents of google-api-python-client", "titles": dict(sorted(titles.items()))}


def _with_enums(messages: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The messages without the fields, and then without the messages, that hold no enum value at any depth."""
    kept: dict[str, dict[str, str]] = {name: {} for name in messages}
    grown = True
    while grown:
        grown = False
        for name, fields in messages.items():
            for field, kind in fields.items():
                bare = kind.lstrip("![]{}")
                inner = f"{name.partition('.')[0]}.{bare[1:]}" if bare.startswith("@") else ""
                if field not in kept[name] and (bare.startswith("enum:") or kept.get(inner)):
                    kept[name][field] = kind.removeprefix("!")
                    grown = True
    return {name: dict(sorted(fields.items())) for name, fields in sorted(kept.items()) if fields}


def _upload_lines(source: Source, method: Json) -> Iterator[str]:
    """Verb and path of each upload, at the plain address and below the API's prefix."""
    for path in upload_paths(method):
        for prefix in ("", source.prefix.rstrip("/")):
            yield f"{method['httpMethod']} {prefix}{path}"


def condense(definitions: Json, roots: list[str], api: str) -> dict[str, dict[str, str]]:
    """The messages of a discovery document that the root messages use, as `api.Message` -> fields."""
    fields_of: dict[str, dict[str, str]] = {}
    waiting = [(name, definitions["schemas"][name]) for name in roots]
    while waiting:
        name, schema = waiting.pop()
        if f"{api}.{name}" in fields_of:
            continue
        fields = fields_of[f"{api}.{name}"] = {}
        for field, definition in sorted(schema.get("properties", {}).items()):
            inner: list[tuple[str, Json]] = []
            kind = _kind(definition, f"{name}.{field}", inner)
            fields[field] = ("!" if definition.get("readOnly") else "") + kind
            waiting += [(other, schema or definitions["schemas"][other]) for other, schema in inner]
    return dict(sorted(fields_of.items()))


def _kind(definition: Json, place: str, inner: list[tuple[str, Json]]) -> str:
    """The notation of a definition; messages in it are added to `inner`, those without a name with their schema."""
    if "$ref" in definition:
        inner.append((definition["$ref"], {}))
        return f"@{definition['$ref']}"
    if definition["type"] == "array":
        return f"[]{_kind(definition['items'], place, inner)}"
    if definition["type"] == "object" and "properties" in definition:
        inner.append((place, definition))
        return f"@{place}"
    if definition["type"] == "object":
        return f"{{}}{_kind(definition['additionalProperties'], place, inner)}"
    return _scalar(definition)


def _scalar(definition: Json) -> str:
    if "enum" in definition:
        return "enum:" + "|".join(definition["enum"])
    formats = {
        "byte": "bytes",
        "google-datetime": "timestamp",
        "date-time": "timestamp",
        "google-duration": "duration",
        "google-fieldmask": "mask",
        "float": "double",
    }
    form: str = definition.get("format", "")
    if form in {"int32", "int64", "uint32", "uint64"} or form in formats:
        return formats.get(form, form)
    kind: str = definition["type"]
    return {"boolean": "bool", "number": "double", "integer": "int32"}.get(kind, kind)


def _method(source: Source, method: Json, definitions: Json) -> Json:
    query = {
        name: ("[]" if definition.get("repeated") else "") + _scalar(definition)
        for name, definition in sorted(method.get("parameters", {}).items())
        if definition["location"] == "query"
    }
    required = [name for name in query if method["parameters"][name].get("required")]
    fields_of: Json = {"id": method["id"], "http": method["httpMethod"], "path": path_of(source, method)}
    fields_of |= {"version": definitions["version"], "query": query}
    fields_of |= {"required": required} if required else {}
    # A method whose whole request is the body may get the names of its path there too, as Go's packages send them.
    in_path = [name for name, of in sorted(method.get("parameters", {}).items()) if of["location"] == "path"]
    fields_of |= {"bound": in_path} if "request" in method and source.api not in WITHOUT_NUMBERS else {}
    for side in ("request", "response"):
        if side in method:
            fields_of[side] = f"{source.api}.{method[side]['$ref']}"
    return fields_of


def _source_text(sources: tuple[Source, ...] = SOURCES) -> str:
    revisions = [f"{source.document} revision {document(source.document)['revision']}" for source in sources]
    return "Google's discovery documents: " + ", ".join(revisions)


def to_text(content: Json) -> str:
    """The text of a data file."""
    return json.dumps(content, indent=1) + "\n"


def main() -> None:
    """Write the files."""
    (DATA / "messages.json").write_text(to_text(request_messages()))
    (DATA / "methods.json").write_text(to_text(served_methods()))
    (DATA / "other_methods.json").write_text(to_text(other_methods()))
    (DATA / "responses.json").write_text(to_text(response_messages()))
    (DATA / "services.json").write_text(to_text(services()))


if __name__ == "__main__":
    main()
