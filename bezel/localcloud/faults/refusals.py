"""Responses of servers that refuse requests for a while, in each server's own words. Pure.

Shapes: google.rpc.Status for the APIs, the older error list for Cloud Storage, Google's front end's page for a service.
"""

import json

from bezel.localcloud.core.errors import ApiError, error_info
from bezel.localcloud.core.paths import PROJECT_NUMBER
from bezel.localcloud.faults.registry import Fault

Headers = list[tuple[bytes, bytes]]

_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_WORDS = {
    400: "Request contains an invalid argument.",
    401: "Request had invalid authentication credentials.",
    403: "The caller does not have permission.",
    404: "Requested entity was not found.",
    409: "The operation was aborted.",
    412: "Precondition check failed.",
    500: "Internal error encountered.",
    501: "Operation is not implemented, or supported, or enabled.",
    502: "The server encountered a temporary error and could not complete your request.",
    503: "The service is currently unavailable.",
    504: "Deadline expired before operation could complete.",
}
# First part of a path here -> the API's name.
_APIS = {"crm": "cloudresourcemanager", "upload": "storage"}


def refusal(fault: Fault, at: str, path: str) -> tuple[int, Headers, bytes]:
    """Status, headers (without the length) and body of the response to one struck request.

    Args:
        fault: Of the kind server-errors or rate-limited.
        at: "api", "token" or "service".
        path: Path of the request.
    """
    limited = fault.kind == "rate-limited"
    status = 429 if limited else int(fault.number("status"))
    headers = [(b"retry-after", f"{fault.number('retry_after'):g}".encode())] if limited else []
    if at == "service":
        page = f"<html><head><title>{status}</title></head><body>{_page_words(status)}</body></html>\n"
        return status, [*headers, (b"content-type", b"text/html; charset=UTF-8")], page.encode()
    if at == "token":
        body = {"error": "internal_failure", "error_description": _page_words(status)}
        return status, [*headers, (b"content-type", b"application/json")], json.dumps(body).encode()
    error = _rate_limited(path) if limited else _unwell(status)
    legacy = path.startswith(("/storage/", "/upload/", "/compute/"))
    return status, [*headers, (b"content-type", b"application/json")], json.dumps(error.body(legacy=legacy)).encode()


def _unwell(status: int) -> ApiError:
    otherwise = 500 if status >= 500 else 400
    return ApiError(_CODES.get(status, _CODES[otherwise]), _WORDS.get(status, _WORDS[otherwise]), status=status)


def _rate_limited(path: str) -> ApiError:
    first = path.split("/")[1]
    service = f"{_APIS.get(first, first)}.googleapis.com"
    text = (
        f"Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service '{service}' for "
        f"consumer 'project_number:{PROJECT_NUMBER}'."
    )
    metadata = {"service": service, "consumer": f"projects/{PROJECT_NUMBER}", "quota_limit": "RequestsPerMinute"}
    return ApiError("RESOURCE_EXHAUSTED", text, [error_info("RATE_LIMIT_EXCEEDED", metadata)])


def _page_words(status: int) -> str:
    return "Rate exceeded." if status == 429 else _WORDS.get(status, _WORDS[500 if status >= 500 else 400])
