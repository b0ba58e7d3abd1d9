"""Requests and answers held against Google's discovery documents, as the installed google-api-python-client has them.

Pure but for reading the documents. Of localcloud it knows the recorded numbers of enum values, and nothing of its
checks: what it finds wrong, they let through.
"""

import base64
import binascii
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from bezel_localcloud.http.enums import names_of
from localcloud_support.discovery_documents import SOURCES, Json, Source, document, methods_of, path_of

RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
# google.rpc.Code -> HTTP status; 412 and 304 are Cloud Storage's.
STATUSES = {
    "INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "OUT_OF_RANGE": 400, "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403, "NOT_FOUND": 404, "ABORTED": 409, "ALREADY_EXISTS": 409, "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499, "INTERNAL": 500, "UNKNOWN": 500, "DATA_LOSS": 500, "UNIMPLEMENTED": 501, "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}  # fmt: skip
# The documents whose requests may say null anywhere: "remove this".
NULL_REMOVES = {"storage.v1", "compute.beta", "dns.v1", "dns.v1beta2"}
# What no document has and the published provider or Prometheus's clients send, by document and schema.
UNDOCUMENTED: dict[tuple[str, str], Json] = {
    ("compute.beta", "NetworkRoutingConfig"): {
        "deleteBgpAlwaysCompareMed": {"type": "boolean", "description": "Input only."}
    },
    ("monitoring.v1", "QuerySeriesRequest"): {
        "match": {"type": "array", "items": {"type": "string"}, "description": "Input only."}
    },
    ("run.v2", "GoogleCloudRunV2Probe"): {"successThreshold": {"type": "integer", "format": "int32"}},
    ("run.v2", "GoogleCloudRunV2Service"): {
        "tags": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Input only."}
    },
}
# What an operation or an error may hold as google.protobuf.Any: type -> (document, schema) or its fields.
ANYTHING = {
    "google.cloud.run.v2.Service": ("run.v2", "GoogleCloudRunV2Service"),
    "google.cloud.run.v2.Job": ("run.v2", "GoogleCloudRunV2Job"),
    "google.cloud.run.v2.Execution": ("run.v2", "GoogleCloudRunV2Execution"),
    "google.devtools.artifactregistry.v1.Repository": ("artifactregistry.v1", "Repository"),
    "google.devtools.artifactregistry.v1.OperationMetadata": ("artifactregistry.v1", "OperationMetadata"),
    "google.cloud.tpu.v2alpha1.QueuedResource": ("tpu.v2alpha1", "QueuedResource"),
    "google.cloud.tpu.v2alpha1.OperationMetadata": ("tpu.v2alpha1", "OperationMetadata"),
    "google.cloud.tpu.v2.QueuedResource": ("tpu.v2", "QueuedResource"),
    "google.cloud.tpu.v2.OperationMetadata": ("tpu.v2", "OperationMetadata"),
    "google.iam.v1.WorkloadIdentityPool": ("iam.v1", "WorkloadIdentityPool"),
    "google.iam.v1.WorkloadIdentityPoolProvider": ("iam.v1", "WorkloadIdentityPoolProvider"),
    "google.iam.v1.WorkloadIdentityPoolOperationMetadata": ("iam.v1", "WorkloadIdentityPoolOperationMetadata"),
    **{
        f"google.cloud.certificatemanager.v1.{name}": ("certificatemanager.v1", name)
        for name in ("Certificate", "CertificateMap", "CertificateMapEntry", "DnsAuthorization", "OperationMetadata")
    },
    "google.protobuf.Empty": ("artifactregistry.v1", "Empty"),
    "google.api.serviceusage.v1.EnableServiceResponse": ("serviceusage.v1", "EnableServiceResponse"),
    "google.api.serviceusage.v1.DisableServiceResponse": ("serviceusage.v1", "DisableServiceResponse"),
    "google.api.serviceusage.v1.BatchEnableServicesResponse": ("serviceusage.v1", "BatchEnableServicesResponse"),
    "google.api.serviceusage.v1.OperationMetadata": ("serviceusage.v1", "GoogleApiServiceusageV1OperationMetadata"),
    "google.cloud.aiplatform.v1.UploadModelResponse": ("aiplatform.v1", "GoogleCloudAiplatformV1UploadModelResponse"),
    "google.cloud.aiplatform.v1.UploadModelOperationMetadata": (
        "aiplatform.v1",
        "GoogleCloudAiplatformV1UploadModelOperationMetadata",
    ),
    "google.cloud.aiplatform.v1.DeleteOperationMetadata": (
        "aiplatform.v1",
        "GoogleCloudAiplatformV1DeleteOperationMetadata",
    ),
    "google.rpc.ErrorInfo": {"reason", "domain", "metadata"},
    "google.rpc.BadRequest": {"fieldViolations"},
    "google.rpc.QuotaFailure": {"violations"},
    "google.rpc.PreconditionFailure": {"violations"},
    "google.rpc.Help": {"links"},
    "google.logging.v2.WriteLogEntriesPartialErrors": {"logEntryErrors"},
}


@dataclass(frozen=True)
class Called:
    """The method that a request is for."""

    source: Source
    method: Json

    @property
    def id(self) -> str:
        return str(self.method["id"])


@cache
def _methods(source: Source) -> dict[tuple[str, int], list[tuple[str, Called]]]:
    """The methods by their verb and the number of slashes in their paths: few are left to be compared."""
    by_place = defaultdict(list)
    for method in methods_of(document(source.document)):
        path = path_of(source, method)
        by_place[method["httpMethod"], path.count("/")].append((path, Called(source, method)))
    return by_place


# A part of a path: a colon begins a custom method, except in a digest.
_SEGMENT = "(?:[^/:]+:[0-9a-f]{64,}|[^/:]+)"


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace(r"\{\}", _SEGMENT))


def method_of(verb: str, path: str) -> Called | None:
    """Google's method for a request to localcloud (path still encoded), None if it is none of Google's."""
    path = path.replace("/compute/beta/", "/compute/v1/").removeprefix("/upload").removeprefix("/download").rstrip("/")
    for source in SOURCES:
        if path.startswith(source.prefix):
            for template, method in _methods(source).get((verb, path.count("/")), []):
                if _pattern(template).fullmatch(path):
                    return method
    return None


def request_problems(call: Called, query: list[tuple[str, str]], body: object) -> list[str]:
    """What is wrong with a request that was accepted; `body` is None for none."""
    parameters = {name: spec for name, spec in call.method.get("parameters", {}).items() if spec["location"] == "query"}
    texts = []
    for name, value in query:
        spelling = name if name in parameters else _camel(name)
        if spelling in parameters:
            texts += (
                _scalar(_of_query(value, parameters[spelling]), parameters[spelling], f"?{name}", strict=False)
                if value
                else []
            )
        elif spelling not in parameters and name not in document(call.source.document)["parameters"]:
            texts.append(f"?{name}: {call.id} has no such parameter")
    if body is not None and "request" in call.method:
        texts += problems(body, {"$ref": call.method["request"]["$ref"]}, call.source.document, "body")
    return texts


def answer_problems(call: Called, status: int, content: bytes) -> list[str]:
    """What is wrong with an answer."""
    legacy = call.source.api in {"storage", "compute", "dns", "dns2"}
    if status in {204, 304, 308}:
        return [f"{status} with a body"] if content else []
    try:
        body = json.loads(content)
    except ValueError:
        return [f"{status}: expected JSON, got {content[:200]!r}"]
    if call.method.get("response", {}).get("$ref") == "HttpBody" and isinstance(body, dict) and "status" in body:
        return _prometheus_problems(status, body)
    if status >= 400:
        return error_problems(status, body, legacy=legacy)
    if "response" not in call.method:
        return [f"{call.id} has no answer, and there is one: {body}"] if body else []
    return problems(body, {"$ref": call.method["response"]["$ref"]}, call.source.document, "answer", answers=True)


def _prometheus_problems(status: int, body: Json) -> list[str]:
    """What is wrong with an answer of Prometheus's HTTP API, of which Google's document has the bytes alone."""
    fields, word = ({"status", "errorType", "error"}, "error") if status >= 400 else ({"status", "data"}, "success")
    return [] if set(body) == fields and body["status"] == word else [f"{status} with the fields {sorted(body)}"]


def error_problems(status: int, body: object, *, legacy: bool) -> list[str]:
    """What is wrong with the body of a refusal."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or set(body) != {"error"}:
        return [f"{status}: not an error: {body}"]
    problems = [] if error.get("code") == status else [f"code {error.get('code')} in an answer with status {status}"]
    problems += [] if isinstance(error.get("message"), str) and error["message"] else ["an error without a message"]
    is_refusal = str(error.get("message")).startswith(("localcloud does not serve ", "localcloud serves "))
    if is_refusal or any(entry.get("reason") == "notServedByLocalcloud" for entry in error.get("errors", [])):
        return problems + _not_served_problems(error)
    if legacy:
        entries = error.get("errors") or [{}]
        problems += [] if set(error) == {"code", "message", "errors"} else [f"fields {sorted(error)}"]
        return problems + [f"entry {e}" for e in entries if set(e) != {"message", "domain", "reason"}]
    problems += [] if set(error) <= {"code", "message", "status", "details"} else [f"fields {sorted(error)}"]
    if STATUSES.get(error.get("status", "")) != status:
        problems.append(f"{error.get('status')} is not {status}")
    for detail in error.get("details", []):
        problems += _anything(detail, "error.details")
    return problems


def _not_served_problems(error: Json) -> list[str]:
    """As `error_problems`, for localcloud's own refusal: both of Google's shapes, with the method and its API."""
    problems = [] if set(error) == {"code", "message", "errors", "status", "details"} else [f"fields {sorted(error)}"]
    problems += [] if str(error).count("notServedByLocalcloud") == 2 else ["no reason"]
    named = error["details"][0].get("metadata", {}) if error.get("details") else {}
    if (error.get("code"), error.get("status")) != (400, "FAILED_PRECONDITION"):
        problems.append(f"{error.get('code')} {error.get('status')} of a refusal as not served")
    return problems + ([] if set(named) == {"method", "service"} else [f"it names {sorted(named)}"])


def problems(value: object, schema: Json, name: str, where: str, *, answers: bool = False) -> list[str]:
    """What is wrong with a value under a schema of a document.

    Args:
        value: JSON.
        schema: A schema, or a reference to one.
        name: File name of the document.
        where: Path of the value.
        answers: Whether it is an answer: names in camelCase, whole numbers as the document says, nothing input only.
    """
    if "$ref" in schema:
        schema = document(name)["schemas"][schema["$ref"]]
    if value is None and name in NULL_REMOVES and not answers:
        return []
    if value == "" and "enum" in schema and name in NULL_REMOVES and not answers:
        return []  # as good as absent there, which the published provider relies on
    kind = schema.get("type", "object")
    if kind == "array" and isinstance(value, list):
        items = enumerate(value)
        return [p for n, item in items for p in problems(item, schema["items"], name, f"{where}[{n}]", answers=answers)]
    if kind == "object" and isinstance(value, dict):
        is_any = "@type" in schema.get("additionalProperties", {}).get("description", "")
        if is_any and where in {"answer.response", "answer.metadata"}:
            return _anything(value, where)
        return _object_problems(value, schema, name, where, answers=answers)
    if kind in {"array", "object"}:
        return [f"{where}: {value!r} is no {kind}"]
    if "enum" in schema and type(value) is int and not answers and name not in NULL_REMOVES:
        return [] if value in names_of(f"enum:{'|'.join(schema['enum'])}") else [f"{where}: {value} is not of its enum"]
    return _scalar(value, schema, where, strict=answers)


def _object_problems(value: Json, schema: Json, name: str, where: str, *, answers: bool) -> list[str]:
    texts, fields = [], schema.get("properties", {})
    fields = fields | UNDOCUMENTED.get((name, schema.get("id", "")), {})
    for key, item in value.items():
        inner = fields.get(key if answers or key in fields else _camel(key), schema.get("additionalProperties"))
        if inner is None and not answers and (item is None or item == []):
            continue  # no document says it, and the published provider relies on it
        if inner is None:
            texts.append(f"{where}.{key}: unknown")
        elif answers and _is_input_only(inner):
            texts.append(f"{where}.{key} is input only, and answered")
        elif item is not None or answers or (key not in fields and name not in NULL_REMOVES):
            texts += problems(item, inner, name, f"{where}.{key}", answers=answers)
    return texts


def _is_input_only(schema: Json) -> bool:
    return re.match(r"(Optional\. )?Input only", schema.get("description", "")) is not None


def _anything(value: Json, where: str) -> list[str]:
    kind = str(value.get("@type", "")).removeprefix("type.googleapis.com/")
    if kind not in ANYTHING:
        return [f"{where}: unknown type {value.get('@type')!r}"]
    fields, rest = ANYTHING[kind], {key: item for key, item in value.items() if key != "@type"}
    if isinstance(fields, set):
        return [f"{where}.{key}: unknown" for key in rest.keys() - fields]
    return _object_problems(rest, document(fields[0])["schemas"][fields[1]], fields[0], where, answers=True)


def _scalar(value: object, schema: Json, where: str, *, strict: bool) -> list[str]:
    kind, form = schema["type"], schema.get("format", "")
    if kind == "any":
        return []
    if kind == "boolean":
        fits = isinstance(value, bool)
    elif form in RANGES:
        fits = _is_whole(value, form, {"string": str, "integer": int}[kind] if strict else None)
    elif kind in {"number", "integer"}:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    else:
        fits = isinstance(value, str) and _FORMATS.get(form, lambda _: True)(value)
        fits = fits and value in schema.get("enum", [value])
    return [] if fits else [f"{where}: {value!r} is no {kind} {form}{' of its enum' if 'enum' in schema else ''}"]


def _is_whole(value: object, form: str, wanted: type | None) -> bool:
    least, most = RANGES[form]
    if isinstance(value, bool) or (wanted and type(value) is not wanted):
        return False
    return re.fullmatch("-?[0-9]+", str(value)) is not None and least <= int(str(value)) <= most


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return False
    return True


def _is_time(text: str) -> bool:
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", text, re.ASCII)
    try:
        return match is not None and datetime.fromisoformat(match[1]) is not None
    except ValueError:
        return False


_FORMATS = {
    "byte": _is_base64,
    "google-datetime": _is_time,
    "date-time": _is_time,
    "google-duration": lambda text: re.fullmatch(r"-?[0-9]{1,12}(\.[0-9]{1,9})?s", text) is not None,
}


def _of_query(value: str, spec: Json) -> object:
    if spec["type"] == "boolean":
        return {"true": True, "false": False}.get(value, value)
    if spec["type"] in {"integer", "number"} and (match := re.fullmatch(r"(-?[0-9]+)(\.0+)?", value)):
        return int(match[1])
    return value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
